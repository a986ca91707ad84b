"""Facts that changed during the campaign, though runs are pooled all the same. Between entries of a
host that follow each other on one kernel.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from netbench.base.units import listed
from netbench.facts.comparison import change, same
from netbench.facts.registry import BY_NAME
from netbench.read.cautions.rule import CautionRule, Cautions, Evidence
from netbench.read.epochs import OF_KERNEL, Epochs
from netbench.result.files import HostEntry
from netbench.stats.by_boot import KERNEL

NAMED = 4
VARYING = ("boot_id", "uptime", "load", "temperature", "memory_free", "time")  # by nature


class ChangedFacts(CautionRule):
    """A fact that does not decide about pooling changed during the campaign."""

    name = "changed_facts"
    kinds = ("facts",)
    severity = 110
    reads = "facts.json, without facts that vary by nature and those that the campaign sweeps"
    shows = "each changed fact with both values"
    remedy = "keep these facts equal, or sweep what changes them"

    def report(self, evidence: Evidence) -> Cautions:
        epochs = Epochs(evidence.result.hosts, evidence.result.handled)
        for host, entries in evidence.result.hosts.items():
            for before, after in _consecutive(entries, evidence):
                was, now = before.known, after.known
                changed = [
                    name
                    for name in was
                    if name in now
                    and not same(name, was[name], now[name])
                    and _is_odd(name, evidence, epochs)
                ]
                if changed:
                    names = listed(changed, NAMED, ", ")
                    yield self.caution(
                        f"{names} of {host} changed{_when(after)}; no run is excluded for that.",
                        (host,),
                        "; ".join(change(name, was[name], now[name]) for name in changed[:NAMED]),
                        remedy=f"keep {names} equal, or sweep what changes it",
                        kind="facts",
                    )


def _consecutive(
    entries: Sequence[HostEntry], evidence: Evidence
) -> Iterator[tuple[HostEntry, ...]]:
    """Entries that follow each other on one kernel; those of boots without a run are left out where
    kernels are swept.
    """
    for kernel in dict.fromkeys(evidence.result.kernels.values()) or ("",):
        yield from itertools.pairwise(e for e in entries if evidence.result.kernel_of(e) == kernel)


def _is_odd(name: str, evidence: Evidence, epochs: Epochs) -> bool:
    """Whether a fact should not have changed, and pooling does not depend on it."""
    swept = set(evidence.result.factors)
    fact = BY_NAME.get(name)
    by_itself = name.startswith(VARYING) or (fact is not None and fact.varies)
    by_sweep = (
        name in swept
        or (fact is not None and fact.setting in swept)
        or (KERNEL in swept and name.startswith(OF_KERNEL))
    )
    return not by_itself and not by_sweep and name not in epochs.names


def _when(entry: HostEntry) -> str:
    return " between boots" if entry.from_run is None else f" before run {entry.from_run}"
