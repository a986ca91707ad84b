"""Runs whose method did not do what its name says. One caution for each proof counter that broke
its rule.
"""

from __future__ import annotations

from netbench.base.units import count
from netbench.read.cautions.rule import CautionRule, Cautions, Evidence


class Mechanism(CautionRule):
    """A method's proof counters show that its mechanism was not used."""

    name = "mechanism"
    severity = 210
    reads = "`proof` of records, by the flags `must_move` and `must_not_move` of the counters"
    shows = "the number of such runs, of all ok runs"
    remedy = (
        "do not read these cells as the cost of this method; `netbench check` says what the host"
        " lacks"
    )

    def report(self, evidence: Evidence) -> Cautions:
        runs = evidence.result.ok
        marked = runs[runs["engaged"] != ""]
        # how far a counter moved differs from run to run
        alike = marked["engaged"].astype(str).str.replace(r" counted \d+", " moved", regex=True)
        for reason, group in marked.groupby(alike, sort=True):
            what = (
                f"The mechanism did not engage in {count(len(group), 'run')} ({reason}). These runs"
                " count; their cells are marked."
            )
            yield self.caution(
                what,
                evidence.labels_of(group),
                f"{len(group)} of {count(len(runs), 'ok run')}",
            )
