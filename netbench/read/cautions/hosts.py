"""Hosts that are no real machines, changed during the campaign, or did something else beside it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from netbench.base.units import listed
from netbench.facts.comparison import change, same
from netbench.facts.registry import BY_NAME
from netbench.read.cautions.rule import NAMED, Caution, Cautions, Evidence, caution
from netbench.read.epochs import OF_KERNEL, Epochs
from netbench.read.grounds import host_meter
from netbench.read.stack import Runs
from netbench.stats.by_boot import KERNEL

VARYING = ("boot_id", "uptime", "load", "temperature", "memory_free", "time")  # by nature


@caution(
    55, remedy="take differences of the stack from it; what a packet costs on a wire needs a card"
)
def virtual_link(evidence: Evidence) -> Cautions:
    """The data link is virtual: packets stay whole, up to 64 KiB with TSO, and meet no card."""
    result, drivers = evidence.result, ("veth", "tun")
    linked = [
        host
        for host, entries in result.hosts.items()
        if entries and entries[-1].facts.get("nic_driver") in drivers
    ]
    if linked:
        yield Caution(
            "The data link is virtual: what TSO would have a card do is left undone, and packets"
            " are as large as the interface passes them.",
            tuple(linked),
            "the fact `nic_driver`",
        )


@caution(205, remedy="find out what else changed it, and put it back by hand where it matters")
def left_changed(evidence: Evidence) -> Cautions:
    """After everything was put back, sysctls of the network or of memory, or numbers of an
    interface, were not as before the first change, and no setting accounts for that.
    """
    for left in evidence.result.left_changed:
        changes = [f"{name} {was} -> {now}" for name, (was, now) in left.values.items()]
        yield Caution(
            f"{left.host} was not left as it was: {listed(sorted(left.values), NAMED, ', ')}.",
            (left.host,),
            listed(changes, NAMED, "; "),
        )


@caution(110, kinds=("facts",), remedy="keep these facts equal, or sweep what changes them")
def changed_facts(evidence: Evidence) -> Cautions:
    """A fact that does not decide about pooling changed during the campaign."""
    result = evidence.result
    pooling = Epochs(result.hosts, result.handled).names
    for host, entries in result.hosts.items():
        # entries of a host on one kernel, that follow each other
        for kernel in dict.fromkeys(result.kernels.values()) or ("",):
            alike = [entry for entry in entries if result.kernel_of(entry) == kernel]
            for before, after in itertools.pairwise(alike):
                was, now = before.known, after.known
                changed = [
                    name
                    for name in was
                    if name in now
                    and name not in pooling
                    and not same(name, was[name], now[name])
                    and not _may_change(name, result.factors)
                ]
                if changed:
                    names, run = listed(changed, NAMED, ", "), after.from_run
                    when = " between boots" if run is None else f" before run {run}"
                    yield Caution(
                        f"{names} of {host} changed{when}; no run is excluded for that.",
                        (host,),
                        "; ".join(change(name, was[name], now[name]) for name in changed[:NAMED]),
                        f"keep {names} equal, or sweep what changes it",
                        kind="facts",
                    )


def _may_change(name: str, swept: tuple[str, ...]) -> bool:
    """Whether a fact changes by itself, or by what the campaign sweeps."""
    fact = BY_NAME.get(name)
    by_itself = name.startswith(VARYING) or (fact is not None and fact.varies)
    of_swept = name in swept or (fact is not None and fact.setting in swept)
    return by_itself or of_swept or (KERNEL in swept and name.startswith(OF_KERNEL))


@caution(100, remedy="hold it equal by settings: a comparison of these kernels includes all that")
def kernels(evidence: Evidence) -> Cautions:
    """A host differs under two swept kernels in more than the kernel."""
    result = evidence.result
    names = Epochs(result.hosts, result.handled).names
    for host, entries in result.hosts.items():
        by_kernel = {result.kernel_of(entry): entry.known for entry in entries}
        by_kernel.pop("", None)
        for (one, was), (other, now) in itertools.pairwise(by_kernel.items()):
            changed = [
                name
                for name in names
                if name in was and name in now and was[name] != now[name]
                if not name.startswith(OF_KERNEL)
                # a driver whose version is the kernel's release is part of the kernel
                and (was[name], now[name]) != (was.get(KERNEL), now.get(KERNEL))
            ]
            if changed:
                yield Caution(
                    f"On {host}, {one} and {other} differ in more than the kernel:"
                    f" {listed(changed, NAMED, ', ')}.",
                    (host,),
                    "; ".join(change(name, was[name], now[name]) for name in changed[:NAMED]),
                )


def _beside(runs: Runs) -> Iterator[tuple[str, set[str]]]:
    if others := {other for raw in runs.said for other in raw["concurrent"] or ()}:
        yield runs.record.pair, others


@caution(
    12,
    remedy="overlap: round, in which no kernel is used twice, for CPU with softirq",
    observe=_beside,
)
def side_by_side(evidence: Evidence) -> Cautions:
    """Pairs on one kernel ran side by side: meters of the whole kernel were not read."""
    kernel = {host: known[-1].boot_id for host, known in evidence.result.hosts.items() if known}
    kernels_of = {
        pair: {kernel[host] for host in pair.split(">") if host in kernel}
        for pair in evidence.result.plan.pairs
    }
    where = tuple(
        pair
        for pair, beside in evidence.saw.items()
        if any(kernels_of.get(pair, set()) & kernels_of.get(o, set()) for o in set().union(*beside))
    )
    if where:
        yield Caution(
            "Pairs on one kernel ran side by side, so meters of the whole kernel were not read: CPU"
            " is that of the processes (rusage), without softirq work that others did for them.",
            where,
            "equal boot ids",
        )


@caution(
    10,
    remedy="read system_cpu for the whole cost, by a meter of whole kernels (cpuidle, procstat,"
    " soak); two hosts tell the sides apart",
)
def shared(evidence: Evidence) -> Cautions:
    """Sender and receiver share one kernel: CPU of a side is that of its process alone."""
    if pairs := tuple(pair for pair, is_shared in evidence.result.shared.items() if is_shared):
        meter = host_meter(evidence.result, "system_cpu")
        whole = f"read system_cpu (by {meter})" if meter else "add cpuidle or soak to `meters:`"
        yield Caution(
            "Sender and receiver share one kernel: CPU of a side is that of its process (rusage),"
            " without softirq work that others did for it.",
            pairs,
            "equal boot ids",
            f"{whole} for the whole cost; two hosts tell the sides apart",
        )
