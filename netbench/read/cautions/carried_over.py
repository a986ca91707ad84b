"""Runs that depend on the run before them. The surest pair of levels of each pair of hosts and
metric.
"""

from __future__ import annotations

from netbench.read.carry_over import ALPHA, carried_over
from netbench.read.cautions.rule import CautionRule, Cautions, Evidence


class CarriedOver(CautionRule):
    """Runs of a level differ with the level of the run before: something outlives a run, such as
    what TCP keeps of an address, a warm cache or a hot CPU.
    """

    name = "carry_over"
    severity = 165
    reads = "the metrics of `repeat` in order of execution, and the levels of the run before"
    shows = "the difference with its interval, corrected for the number of levels"
    remedy = (
        "hold `sysctl.net.ipv4.tcp_no_metrics_save: 1` in `settings`, lengthen `transfer.warmup`,"
        " or compare the two levels in a campaign without the one that carries"
    )

    def report(self, evidence: Evidence) -> Cautions:
        for c in carried_over(evidence.result):
            yield self.caution(
                f"{c.metric} of {c.factor}={c.level} is {c.ratio - 1:+.1%} in runs that came after"
                f" {c.factor}={c.before}, against those after other levels.",
                (c.pair,),
                f"{c.low - 1:+.1%} to {c.high - 1:+.1%}, {c.n} such runs; chance of such a finding"
                f" {ALPHA:.0%} for all levels together",
            )
