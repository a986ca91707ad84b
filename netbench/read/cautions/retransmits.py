"""Segments that TCP sent again. The network, not the method, may bound the transfer."""

from __future__ import annotations

from netbench.base.units import count
from netbench.read.cautions.rule import CautionRule, Cautions, Evidence


class Retransmits(CautionRule):
    """The sender retransmitted: the network may bound the transfer."""

    name = "retransmits"
    severity = 70
    reads = "the metric `retransmits` of ok runs"
    shows = "segments in all and in the worst run"
    remedy = (
        "look for drops (`ethtool -S`, `nstat`), check flow control and ring sizes, or send less"
        " with rate"
    )

    def report(self, evidence: Evidence) -> Cautions:
        runs = evidence.result.ok
        if "retransmits" not in runs:
            return
        lossy = runs[runs["retransmits"] > 0]
        if len(lossy):
            total, most = int(lossy["retransmits"].sum()), int(lossy["retransmits"].max())
            yield self.caution(
                "The sender retransmitted.",
                evidence.labels_of(lossy),
                f"{count(total, 'segment')} in {len(lossy)} of {count(len(runs), 'run')}, most in"
                f" one run {most}",
            )
