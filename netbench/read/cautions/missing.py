"""Runs without a throughput. A run that moved data must have a throughput."""

from __future__ import annotations

from netbench.base.units import count, said_of
from netbench.read.cautions.rule import CautionRule, Cautions, Evidence


class Missing(CautionRule):
    """An ok run moved data, but its throughput could not be computed."""

    name = "missing"
    severity = 190
    reads = "the metrics `throughput` and `steps` of ok runs"
    shows = "the number of such runs, of all ok runs"
    remedy = "see samples/, and the tool's pattern"

    def report(self, evidence: Evidence) -> Cautions:
        runs = evidence.result.ok
        if "throughput" not in runs:
            return
        no_steps = runs["steps"].isna() if "steps" in runs else True
        lacking = runs[runs["throughput"].isna() & no_steps]
        if len(lacking):
            what = said_of(
                len(lacking),
                "ok run",
                "have no throughput: their counters, or a tool's output, could not be read.",
            )
            yield self.caution(
                what,
                evidence.labels_of(lacking),
                f"{len(lacking)} of {count(len(runs), 'ok run')}",
            )
