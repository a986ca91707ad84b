"""CPUs that the workers of each host may use."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from netbench.engine.worker import Worker
from netbench.errors import EngineError

STATUS = "/proc/self/status"
SIBLINGS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


@dataclass(frozen=True)
class Cpus:
    """CPUs of one host: those that its worker may use, and for each the CPUs of the same core."""

    allowed: Sequence[int]
    siblings: Mapping[int, Sequence[int]]


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """CPU numbers of a list as the kernel writes it (`0-3,8`), in order. Source: cpuset(7), "List
    format".
    """
    cpus: list[int] = []
    for part in text.strip().split(","):
        low, _, high = part.partition("-")
        if low:
            cpus += range(int(low), int(high or low) + 1)
    return tuple(cpus)


class HostCpus:
    """CPUs of each host, read once a boot."""

    def __init__(self) -> None:
        self._by_boot: dict[tuple[str, str], Cpus] = {}

    def of(self, worker: Worker) -> Cpus:
        """CPUs of the worker's host. Errors: EngineError; those of losing the worker."""
        key = worker.host, worker.hello.boot_id
        if key not in self._by_boot:
            self._by_boot[key] = _read(worker)
        return self._by_boot[key]


def _read(worker: Worker) -> Cpus:
    status, _ = worker.operate("file", STATUS)
    allowed = parse_cpu_list(
        next(
            line.split(":")[1]
            for line in status.splitlines()
            if line.startswith("Cpus_allowed_list:")
        )
    )
    siblings: dict[int, tuple[int, ...]] = {}
    for cpu in allowed:
        with contextlib.suppress(EngineError):
            siblings[cpu] = parse_cpu_list(worker.operate("file", SIBLINGS.format(cpu))[0])
    return Cpus(allowed, siblings)
