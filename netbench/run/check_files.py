"""What is at a path of a host, and which programs it has."""

from __future__ import annotations

from netbench.base.errors import EngineError
from netbench.engine.worker import Worker


def _test(worker: Worker, *words: str) -> bool:
    """Whether test(1) says so on the host."""
    try:
        worker.operate("exec", ["test", *words])
    except EngineError:
        return False
    return True


def is_character_device(worker: Worker, path: str) -> bool:
    """Whether a path on the host is a device such as /dev/null: all streams may write it. Errors:
    Lost.
    """
    return _test(worker, "-c", path)


def has_program(worker: Worker, program: str) -> bool:
    """Whether the worker can start a program by this name. Errors: Lost."""
    if "/" in program:
        return _test(worker, "-x", program)
    try:
        worker.operate("exec", ["sh", "-c", 'command -v "$1" >/dev/null', "sh", program])
    except EngineError:
        return False
    return True
