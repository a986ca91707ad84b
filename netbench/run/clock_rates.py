"""Whether the clocks of booted hosts run as fast as this machine's.

A kernel that has measured its clock source wrongly, as one under emulation now and then does while
the machine below it is busy, keeps that rate for its whole boot. All its rates would be wrong by as
much.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from netbench.engine.bounds import CLOCK, CLOCK_RATE, now_ns
from netbench.run.worker_pool import WorkerPool

LOOK_SECONDS = 1.0  # between two looks: with 10 ms a look, errors above 3% are seen
STEP_NS = 10**7  # of /proc/uptime
UPTIME = "/proc/uptime"


@dataclass(frozen=True)
class Look:
    """A host's clock, in ns, and this machine's before and after it was read."""

    before: int
    there: int
    after: int


def look(read: Callable[[], str]) -> Look:
    """Look at a clock; `read` gives what /proc/uptime says there."""
    before = now_ns()
    text = read()
    return Look(before, round(float(text.split()[0]) * 1e9), now_ns())


def rates(first: Look, second: Look) -> tuple[float, float]:
    """The least and the greatest speed of a clock that two looks allow, over this machine's."""
    passed = second.there - first.there
    longest, shortest = second.after - first.before, second.before - first.after
    return (passed - STEP_NS) / longest, (passed + STEP_NS) / max(shortest, 1)


def why_wrong(first: Mapping[str, Look], second: Mapping[str, Look]) -> str:
    """The host whose clock surely runs at another rate than this machine's, in words, or ""."""
    for host in first:
        low, high = rates(first[host], second[host])
        if low > 1 + CLOCK_RATE or high < 1 - CLOCK_RATE:
            return f"{host}: its clock runs {low:.2f} to {high:.2f} times as fast as here{CLOCK}"
    return ""


def why_clocks_differ(pool: WorkerPool) -> str:
    """Look at the clocks of all hosts twice, 1 s apart: as why_wrong. Errors: EngineError; Lost."""
    first = _looks(pool)
    time.sleep(LOOK_SECONDS)
    return why_wrong(first, _looks(pool))


def _looks(pool: WorkerPool) -> dict[str, Look]:
    looks: dict[str, Look] = {}

    def one(host: str) -> None:
        worker = pool.host_worker(host)
        looks[host] = look(lambda: worker.operate("file", UPTIME)[0])

    pool.each(one)
    return looks
