"""Hosts that changed during the campaign, or are one kernel."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import datetime

import numpy as np

from netbench.base.units import listed
from netbench.facts.comparison import change, same
from netbench.facts.registry import BY_NAME
from netbench.read.cautions.rule import NAMED, Caution, Cautions, Evidence, caution
from netbench.read.counters import edges_of
from netbench.read.epochs import OF_KERNEL, Epochs
from netbench.read.grounds import host_meter
from netbench.read.stack import Runs
from netbench.stats.by_boot import KERNEL

WAYS = {"tx_bytes": "sent", "rx_bytes": "received"}
MISSING, LATE, WRITTEN = 0.05, 2.0, 1.0  # a share, and seconds
VARYING = ("boot_id", "uptime", "load", "temperature", "memory_free", "time")  # by nature


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


def _bytes(runs: Runs) -> Iterator[tuple[tuple[str, str], np.ndarray]]:
    sender, receiver = runs.record.sender, runs.record.receiver
    if runs.record.status == "ok" and sender and receiver and not receiver.tool:
        began = np.array([datetime.fromisoformat(one["started"]).timestamp() for one in runs.said])
        there = (sender, "tx", "out"), (receiver, "rx", "in")
        ways = (*there, (receiver, "tx", "out"), (sender, "rx", "in"))
        for n, (side, way, to) in enumerate(ways[: 2 if sender.host == receiver.host else 4]):
            moved = np.asarray(edges_of(side, "flow", "bytes")[1], float) + 0 * began
            segments = np.asarray(edges_of(side, "tcp", f"segments_{to}")[1], float)
            headers = 40 * segments  # of IP and TCP
            own = moved if n < 2 else np.nan  # requests have none, but answers
            sent = np.where(np.isnan(moved), headers, own)
            yield (side.host, f"{way}_bytes"), np.stack([began, sent])


@caution(
    208,
    remedy="write the one that carries them as its `interface:` (a host with several is named once"
    " for each), or correct routes and ARP (arp_ignore)",
    observe=_bytes,
)
def other_way(evidence: Evidence) -> Cautions:
    """A host's data interface, which settings are made on, saw less than 95% of what the host sent
    or received; in short campaigns less still, since drivers may count up to 2 s late. Of requests
    and answers the headers of their packets count; of `crr`, `cc` and tools nothing does.
    """
    blocks: dict[tuple[str, str], list[tuple[str, float, float, int]]] = {}
    for entry in evidence.result.noise:
        end, took = datetime.fromisoformat(entry.time).timestamp(), entry.ns[1] - entry.ns[0]
        for name, (before, after) in entry.counters.items():
            link, _, way = name.rpartition(".")
            if (seen := after - before) >= 0:  # else made anew
                blocks.setdefault((entry.host, way), []).append((link, end, took / 1e9, seen))
    for host, way in filter(blocks.__contains__, evidence.saw):
        (name, *_), *rows = zip(*sorted(blocks[host, way]), strict=True)
        ends, took, each = np.array(rows)
        began, moved = np.hstack(evidence.saw[host, way])
        at = np.searchsorted(ends, began).clip(max=len(ends) - 1)
        # Of a block whose controller was killed nobody knows; a reading is written down later.
        there = (began <= ends[at]) & (began >= ends[at] - took[at] - WRITTEN)
        sent, saw = float(np.nansum(moved[there])), float(each.sum())
        if sent - saw > sent * max(MISSING, LATE / max(took.sum(), LATE)):
            evidence_text = (
                f"it {WAYS[way]} at least {sent / 1e9:.3g} GB, of which {name} saw {saw / sent:.0%}"
            )
            what = f"Not all data of {host} go by {name}, which settings are made on."
            yield Caution(what, (host,), evidence_text)


@caution(110, kinds=("facts",), remedy="keep these facts equal, or sweep what changes them")
def changed_facts(evidence: Evidence) -> Cautions:
    """A fact that does not decide about pooling changed during the campaign."""
    result = evidence.result
    pooling = Epochs(result.hosts, result.handled, result.plan.pairs).names
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
                    and name not in pooling[host]
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
    names = Epochs(result.hosts, result.handled, result.plan.pairs).names
    for host in result.hosts:
        by_kernel = {result.kernel_of(entry): entry.known for entry in result.in_force(host)}
        by_kernel.pop("", None)
        for (one, was), (other, now) in itertools.pairwise(by_kernel.items()):
            changed = [
                name
                for name in names[host]
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
