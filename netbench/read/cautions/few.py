"""Cells with so few runs that an interval says little."""

from __future__ import annotations

from netbench.base.units import said_of
from netbench.read.cautions.rule import CautionRule, Cautions, Evidence

ENOUGH = 5


class Few(CautionRule):
    """With few runs the interval rests on the assumption of normal noise; one run has none."""

    name = "few"
    severity = 140
    about = f"A cell has fewer than {ENOUGH} runs."
    reads = "the number of ok runs of each cell, where the run is the unit"
    shows = "where n is found"
    remedy = f"raise repeat.min to {ENOUGH} or more"

    def report(self, evidence: Evidence) -> Cautions:
        for low, high, what in (
            (1, 1, "have one run, which has no interval"),
            (2, ENOUGH - 1, f"have fewer than {ENOUGH} runs"),
        ):
            cells = [c for c in evidence.cells if low <= c.n <= high and c.unit == "run"]
            if cells:
                yield self.caution(
                    f"{said_of(len(cells), 'cell', what)}.",
                    evidence.labels((c.cell, c.pair) for c in cells),
                    "n is in the table of cells",
                )
