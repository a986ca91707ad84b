"""The profiler: what the helpers of a pair's kernels sample while a transfer moves data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from netbench.base.errors import ProtocolError
from netbench.engine.binding import SAME
from netbench.engine.worker import Worker
from netbench.result.profile_files import Folded, KernelProfile, ProfileSide
from netbench.run.ends import End, Ends
from netbench.run.sampled import Sampled, fold, parse
from netbench.run.worker_pool import WorkerPool
from netbench.run.worker_symbols import find_symbol

PARTS_MAX = 256  # of a report, a quarter of a MiB each
NUMBERS = ("frequency", "cpus", "samples", "lost", "throttles", "kernel_symbols")
HELPER_LABEL = "netbench helper"


@dataclass(frozen=True)
class Sampling:
    """One kernel that is sampled: by which helper, and for which sides."""

    side: ProfileSide
    helper: Worker
    ends: tuple[End, ...]


class Profiler:
    """Samples the kernels of a pair. Errors of every method: EngineError where a host cannot, or
    may not, sample; Lost.
    """

    def __init__(self, pool: WorkerPool, ends: Ends, frequency: int) -> None:
        self._pool = pool
        self._frequency = frequency
        self._samplings = [
            Sampling(side, pool.helper(of[0].host.name), of) for side, of in _kernels(ends)
        ]

    def prepare(self) -> None:
        """Open events and read symbols: what takes time, before data moves."""
        for one in self._samplings:
            _order(one.helper, f"ready {self._frequency}")

    def begin(self) -> None:
        """Sample from now on."""
        for one in self._samplings:
            _order(one.helper, "on")

    def end(self) -> None:
        """Sample no longer."""
        for one in self._samplings:
            _order(one.helper, "off")

    def read(self) -> Mapping[ProfileSide, tuple[KernelProfile, Folded]]:
        """What was sampled, by side."""
        return {one.side: _read(one, self._labels(one)) for one in self._samplings}

    def _labels(self, one: Sampling) -> dict[int, str]:
        """Processes of netbench by pid, with what they are."""
        movers: dict[int, str] = {end.worker.hello.pid: end.side for end in one.ends}
        return {one.helper.hello.pid: HELPER_LABEL} | movers


def _kernels(ends: Ends) -> Sequence[tuple[ProfileSide, tuple[End, ...]]]:
    """Each kernel of a pair once, with the ends that are on it."""
    if ends.sender.worker.hello.boot_id == ends.receiver.worker.hello.boot_id:
        return [("system", (ends.sender, ends.receiver))]
    return [("sender", (ends.sender,)), ("receiver", (ends.receiver,))]


def _order(helper: Worker, what: str) -> None:
    helper.operate("profile", "sampling", what)


def _read(one: Sampling, labels: Mapping[int, str]) -> tuple[KernelProfile, Folded]:
    sampled = parse(_report(one.helper), one.helper.host)
    find = partial(find_symbol, one.helper.hello.architecture)
    return _described(one.helper.host, sampled), fold(sampled, labels, find)


def _report(helper: Worker) -> str:
    """The helper's whole report."""
    parts: list[str] = []
    while part := helper.operate("profile", str(len(parts)))[0]:
        parts.append(part)
        if len(parts) > PARTS_MAX:
            raise ProtocolError(f"{helper.host}: the helper's profile has no end{SAME}")
    return "".join(parts)


def _described(host: str, sampled: Sampled) -> KernelProfile:
    """Errors: ProtocolError for a report without what it must have."""
    try:
        event = sampled.head["event"]
        if event not in ("cycles", "cpu-clock"):
            raise ValueError(event)
        begin, end = sampled.number("begin"), sampled.number("end")
        if not 0 < begin < end < 2**63:
            raise ValueError(f"{begin} to {end}")
        numbers = [sampled.number(name) for name in NUMBERS]
        if min(numbers) < 0 or max(numbers) >= 2**63:
            raise ValueError(str(numbers))
    except (KeyError, ValueError) as error:
        raise ProtocolError(f"{host}: the helper's profile lacks {error}{SAME}") from error
    frequency, cpus, samples, lost, throttles, symbols = numbers
    counted: Literal["cycles", "cpu-clock"] = "cycles" if event == "cycles" else "cpu-clock"
    return KernelProfile(
        host, counted, frequency, (begin, end), cpus, samples, lost, throttles, symbols
    )
