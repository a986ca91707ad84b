"""A baseline that differs from itself. One caution for all chosen metrics."""

from __future__ import annotations

from netbench.read.cautions.rule import CautionRule, Cautions, Evidence
from netbench.read.control import control_family, holds
from netbench.stats.words import signed


class Control(CautionRule):
    """A control differs from its baseline, though both are the same: what is called a difference
    may be none.
    """

    name = "control"
    severity = 184
    reads = (
        "runs of cells that end in `,control` and of their baselines, in the metrics of `repeat`"
    )
    shows = "of each such control the ratio to its baseline, corrected for their number (Holm)"
    remedy = (
        "believe no difference of that size; find what a run leaves behind for the next one, or"
        " what changes during the campaign; more and longer runs"
    )

    def report(self, evidence: Evidence) -> Cautions:
        result = evidence.result
        places, told = [], []
        for metric in result.repeat.metrics:
            for c in control_family(result, metric):
                if c.low > 0 and not holds(c):
                    cell = next(
                        each.cell
                        for each in result.controls
                        if all(each.factors.get(k, "") == level for k, level in c.context.items())
                    )
                    places.append((cell, c.pair))
                    told.append(
                        f"{metric} {signed(c.ratio)}%, {signed(c.low)} to {signed(c.high)}%"
                    )
        if told:
            yield self.caution(
                "The baseline differs from itself, measured a second time as a control.",
                evidence.labels(places),
                "; ".join(told),
            )
