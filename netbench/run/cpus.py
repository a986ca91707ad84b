"""CPUs that the workers of each host may use."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from netbench.base.errors import EngineError, HostError
from netbench.engine.bounds import CPUS_MAX
from netbench.engine.worker import Worker

STATUS = "/proc/self/status"
SIBLINGS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


@dataclass(frozen=True)
class Cpus:
    """CPUs of one host: those that its worker may use, and for each the CPUs of the same core."""

    allowed: Sequence[int]
    siblings: Mapping[int, Sequence[int]]


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """CPU numbers of a list as the kernel writes it (`0-3,8`), in order. Source: cpuset(7), "List
    format". Errors: ValueError for what is none.
    """
    cpus: set[int] = set()
    for part in text.strip().split(","):
        low, _, high = part.partition("-")
        if int(high or low or 0) >= CPUS_MAX:
            raise ValueError(f"a list of CPUs beyond {CPUS_MAX}: {text[:40]!r}")
        if low:
            cpus |= set(range(int(low), int(high or low) + 1))
    return tuple(sorted(cpus))


class HostCpus:
    """CPUs of each host, read once a boot."""

    def __init__(self) -> None:
        self._by_boot: dict[tuple[str, str], Cpus] = {}

    def of(self, worker: Worker) -> Cpus:
        """CPUs of the worker's host. Errors: EngineError; HostError; those of losing the
        worker.
        """
        key = worker.host, worker.hello.boot_id
        if key not in self._by_boot:
            try:
                self._by_boot[key] = _read(worker)
            except (ValueError, StopIteration) as error:
                what = f"its list of CPUs cannot be read ({str(error) or 'it is empty'})"
                raise HostError(f"{worker.host}: {what}; see {STATUS} there") from error
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
