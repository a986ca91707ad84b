"""What disturbed blocks."""

from __future__ import annotations

from collections.abc import Iterator

from netbench.base.units import said_of
from netbench.read.cautions.rule import Caution, CautionRule, Evidence
from netbench.read.noise_labels import disturbances


class Noise(CautionRule):
    """One caution for each kind of disturbance and place."""

    name = "noise"
    severity = 60
    about = "Something else used a host, its clock or its network during blocks."
    reads = "samples/noise.jsonl: counters and gauges before and after each block"
    shows = "the counters that moved, and in which block most"
    remedy = "stop what else runs; see the remedy of each kind of disturbance"

    def report(self, evidence: Evidence) -> Iterator[Caution]:
        if not evidence.result.noise:
            return
        runs = evidence.result.runs
        ends = runs["pair"].astype(str).str.split(">")
        for disturbance in disturbances(evidence.result.noise, evidence.ticks):
            on_host = ends.map(lambda names, hosts=disturbance.hosts: not hosts.isdisjoint(names))
            labelled = int((on_host & runs["block"].isin(disturbance.blocks)).sum())
            yield self.caution(
                f"{disturbance.what}; the"
                f" {said_of(labelled, 'run', 'there are labelled, and count')}.",
                sorted(disturbance.hosts),
                disturbance.evidence,
                remedy=disturbance.remedy,
            )
