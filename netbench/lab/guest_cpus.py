"""The CPUs of a guest on those of this machine: QEMU says which thread runs which (QEMU's "QMP
Reference Manual", query-cpus-fast), and each gets one (sched_setaffinity(2)).
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from netbench.base.errors import LabError

_SECONDS = 20.0


def pin(monitor: socket.socket, cpus: Sequence[int]) -> None:
    """Run each of a guest's CPUs on one of `cpus`, and the emulator's other threads on any of them.
    `monitor` is connected to its QMP. Errors: LabError.
    """
    try:
        threads = vcpu_threads(monitor)
        for task in Path(f"/proc/{threads[0]}/task").iterdir():
            os.sched_setaffinity(int(task.name), cpus)
        for thread, cpu in zip(threads, cpus, strict=True):
            os.sched_setaffinity(thread, {cpu})
    except (OSError, ValueError, LookupError) as error:
        raise LabError(
            f"cannot pin a guest's CPUs to {', '.join(map(str, cpus))}: {error}"
        ) from error


def vcpu_threads(monitor: socket.socket) -> list[int]:
    """The threads of a guest's CPUs, in their order. Errors: OSError, ValueError, LookupError."""
    monitor.settimeout(_SECONDS)
    with monitor.makefile("rw", encoding="utf-8") as stream:
        stream.readline()  # the greeting
        _ask(stream, "qmp_capabilities")
        entries = _ask(stream, "query-cpus-fast")
    return [entry["thread-id"] for entry in sorted(entries, key=lambda e: int(e["cpu-index"]))]


def _ask(stream: Any, command: str) -> Any:
    stream.write(json.dumps({"execute": command}) + "\n")
    stream.flush()
    while line := stream.readline():
        answer = json.loads(line)
        if "return" in answer:
            return answer["return"]
        if "error" in answer:
            raise ValueError(f"{command}: {answer['error'].get('desc')}")
    raise ValueError(f"{command}: QEMU has closed its monitor")
