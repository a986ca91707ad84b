"""Converged cells whose runs are not independent. Signs of drift or memory in cells that are
precise nevertheless.
"""

from __future__ import annotations

from netbench.base.units import count, listed
from netbench.read.cautions.rule import CautionRule, Cautions, Evidence
from netbench.stats.series import instabilities

NAMED = 3


class Dependence(CautionRule):
    """Runs of a converged cell drift or follow each other."""

    name = "dependence"
    severity = 160
    reads = "the metrics of `repeat`, of each converged cell in order of execution"
    shows = "the sign in each cell, with its test"
    remedy = "the interval is too narrow: run longer or warm up longer, or find what switches"

    def report(self, evidence: Evidence) -> Cautions:
        for metric in evidence.result.repeat.metrics:
            signs = [
                (evidence.label(c.cell, c.pair), sign)
                for c, _, values in evidence.values(metric)
                if c.status == "converged"
                for sign in instabilities(values)
            ]
            if signs:
                where = tuple(dict.fromkeys(label for label, _ in signs))
                yield self.caution(
                    f"The runs of {count(len(where), 'converged cell')} are not independent in"
                    f" {metric}.",
                    where,
                    listed([f"{label} {sign}" for label, sign in signs], NAMED),
                )
