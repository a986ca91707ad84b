"""Pairs on one kernel that ran side by side."""

from __future__ import annotations

from collections.abc import Iterator

from netbench.read.cautions.rule import Caution, CautionRule, Evidence
from netbench.read.stack import Runs


class SideBySide(CautionRule):
    """What is of the whole kernel was of all of them."""

    name = "side_by_side"
    severity = 12
    about = "Pairs on one kernel ran side by side: meters of the whole kernel were not read."
    reads = "`concurrent` of records, boot ids of the hosts"
    shows = "how many pairs ran beside one on its kernel, at most"
    remedy = "overlap: round, in which no kernel is used twice, for CPU with softirq"

    def __init__(self) -> None:
        self.beside: dict[str, set[tuple[str, ...]]] = {}

    def observe(self, runs: Runs) -> None:
        beside = {tuple(raw["concurrent"]) for raw in runs.said if raw["concurrent"]}
        if beside:
            self.beside.setdefault(runs.record.pair, set()).update(beside)

    def report(self, evidence: Evidence) -> Iterator[Caution]:
        kernel = {host: known[-1].boot_id for host, known in evidence.result.hosts.items() if known}
        kernels = {
            pair: {kernel[host] for host in pair.split(">") if host in kernel}
            for pair in evidence.result.plan.pairs
        }
        most = {
            pair: max(
                sum(not kernels[pair].isdisjoint(kernels.get(other, ())) for other in others)
                for others in beside
            )
            for pair, beside in self.beside.items()
            if pair in kernels
        }
        if where := [pair for pair, number in most.items() if number]:
            yield self.caution(
                "Pairs on one kernel ran side by side. Meters of the whole kernel (procstat,"
                " cpuidle, soak, softirq, perf, psi, energy) would have counted all of them, and"
                " were not read: CPU is that of the processes (rusage), without softirq.",
                where,
                f"equal boot ids; {max(most.values())} beside one of them at most",
            )
