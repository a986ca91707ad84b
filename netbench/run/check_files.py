"""Whether the sender can read a source, and the receiver write a sink."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import PurePosixPath

from netbench.base.errors import EngineError
from netbench.engine.worker import Worker
from netbench.model import Transfer
from netbench.run import job
from netbench.run.finding import Finding


def check_files(
    transfer: Transfer, sender: Worker, receiver: Worker, own_sinks: Collection[tuple[str, str]]
) -> Iterator[Finding]:
    """Findings about a transfer's files. `own_sinks`: sinks (host, path) that the campaign made
    itself. Errors: those of losing a worker.
    """
    if transfer.source.kind == "file":
        yield from _readable(sender, transfer.source.path)
    if transfer.sink.path and is_character_device(receiver, transfer.sink.path):
        return
    for path in job.sink_paths(transfer):
        if (receiver.host, path) not in own_sinks:
            yield from _writable(receiver, path, transfer.sink.overwrite)


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


def _readable(worker: Worker, path: str) -> Iterator[Finding]:
    host = worker.host
    if not _test(worker, "-e", path):
        yield Finding(
            "error",
            host,
            f"source: {path} does not exist, or its folder is not accessible",
            "check the path on the sender and its permissions",
        )
    elif not _test(worker, "-r", path):
        yield Finding(
            "error",
            host,
            f"source: {path} is not readable by the worker's user",
            "change its permissions, or use another file",
        )
    elif not _test(worker, "-b", path) and not _test(worker, "-f", path):
        yield Finding(
            "error",
            host,
            f"source: {path} is neither a file nor a block device",
            "use a file on the sender",
        )
    elif _test(worker, "-f", path) and not _test(worker, "-s", path):
        yield Finding("error", host, f"source: {path} is empty", "use a file with data in it")


def _writable(worker: Worker, path: str, overwrite: bool) -> Iterator[Finding]:
    host = worker.host
    folder = str(PurePosixPath(path).parent)
    if _test(worker, "-d", path):
        yield Finding("error", host, f"sink: {path} is a folder", "name a file in it")
    elif _test(worker, "-L", path):
        yield Finding(
            "error", host, f"sink: {path} is a symbolic link", "name the file that it points to"
        )
    elif _test(worker, "-e", path) and not overwrite:
        yield Finding(
            "error",
            host,
            f"sink: {path} exists",
            "choose another path, or write {file: ..., overwrite: true}",
        )
    elif not _test(worker, "-w", path if _test(worker, "-e", path) else folder):
        yield Finding(
            "error",
            host,
            f"sink: {path} is not writable by the worker's user",
            "use a file in a writable folder of the receiver",
        )
