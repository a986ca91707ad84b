"""Accepting hosts that were booted: their links are up, their clocks run as fast as this machine's,
and their facts are those of earlier boots of the same kernel.

A kernel that has measured its clock source wrongly, as one under emulation now and then does while
the machine below it is busy, keeps that rate for its whole boot. All its rates would be wrong by as
much.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from netbench.base.errors import EngineError, HostError
from netbench.engine.clock import CLOCK, CLOCK_RATE, now_ns
from netbench.facts.comparison import change, differences, remedy
from netbench.model import Campaign
from netbench.plan.plan import Boot
from netbench.result.files import HostEntry, Hosts
from netbench.run.host_facts import read_all
from netbench.run.worker_pool import WorkerPool

READY_SECONDS, READY_PAUSE = 30.0, 0.5  # until links and services of a booted host are there
OF_NETBENCH = ("engine", "layout")  # facts that no boot changes
LOOK_SECONDS = 1.0  # between two looks: with 10 ms a look, errors above 3% are seen
STEP_NS = 10**7  # of /proc/uptime
UPTIME = "/proc/uptime"


class Look(NamedTuple):
    """A host's clock, in ns, and this machine's before and after it was read."""

    before: int
    there: int
    after: int


def look(read: Callable[[], str]) -> Look:
    """Look at a clock; `read` gives what /proc/uptime says there."""
    before = now_ns()
    text = read()
    after = now_ns()
    try:
        return Look(before, round(float(text.split()[0]) * 1e9), after)
    except (IndexError, ValueError, OverflowError) as error:
        raise HostError(f"/proc/uptime is no time there: {text[:40]!r}") from error


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


def wait_until_ready(
    campaign: Campaign, pool: WorkerPool, stored: Hosts, boot: Boot
) -> tuple[dict[str, HostEntry], str]:
    """Wait until the hosts are ready: what was read of them, and what is still wrong after 30 s, or
    with their clocks ("": nothing). `stored`: the entries of facts.json of all boots so far.
    Errors: EngineError; Lost.
    """
    deadline = time.monotonic() + READY_SECONDS
    while True:
        entries = {
            host: replace(entry, on=boot.kernel, build=boot.build)
            for host, entry in read_all(campaign, pool).items()
        }
        why = why_not_ready(campaign, pool, stored, entries)
        if not why:
            return entries, why_clocks_differ(pool)
        if time.monotonic() >= deadline:
            return entries, why
        time.sleep(READY_PAUSE)


def why_not_ready(
    campaign: Campaign, pool: WorkerPool, stored: Hosts, entries: Mapping[str, HostEntry]
) -> str:
    """The first host that lacks its data address, or has other facts than in an earlier boot of its
    kernel, in words, or "".
    """
    for host, entry in entries.items():
        try:
            address = campaign.hosts[host].data_address(campaign.ip)
            pool.host_worker(host).operate("interface", address)
        except EngineError as error:
            return str(error)
        of = entry.on, entry.build
        alike = [each for each in stored.get(host, ()) if (each.on, each.build) == of]
        begun = [each for each in alike if each.boot == alike[-1].boot][:1]  # as that boot began
        if begun and (why := _differences(campaign, begun[0], entry)):
            return f"{host}: {why}"
    return ""


def _differences(campaign: Campaign, earlier: HostEntry, entry: HostEntry) -> str:
    """Facts that differ from those of an earlier boot, apart from what the campaign sets; or ""."""
    handled = [key for key in campaign.handled if key != "kernel"]
    changes = [
        change(*one) + remedy(one[0])
        for one in differences(earlier.known, entry.known, handled)
        if not one[0].startswith(OF_NETBENCH)
    ]
    return f"otherwise than in boot {earlier.boot}: {'; '.join(changes)}" if changes else ""
