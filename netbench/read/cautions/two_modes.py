"""Runs that lie in two modes. One caution for each pair and metric."""

from __future__ import annotations

from netbench.base.units import listed
from netbench.read.cautions.rule import CautionRule, Cautions, Evidence
from netbench.read.cells import modes_of

NAMED = 4


class TwoModes(CautionRule):
    """Runs of a pair lie in two modes, seen over all its cells: a mean is between them, and a cell
    may have runs of one mode by chance. No cell counts as converged.
    """

    name = "modes"
    severity = 175
    reads = "the metrics of `repeat`, of all cells of a pair"
    shows = "of each cell, how many runs are in which mode, and the modes' means"
    remedy = (
        "find what switches (which CPU serves the interrupt, which queue a port number falls on):"
        " sweep or fix `pin` and ports; else many more runs, and judge the modes apart"
    )

    def report(self, evidence: Evidence) -> Cautions:
        for (pair, metric), modes in modes_of(evidence.result).items():
            labels = {cell: evidence.label(cell, pair) for cell in modes.cells}
            yield self.caution(
                f"{modes.share:.0%} of the {modes.runs} runs lie {1 - modes.ratio:.0%} apart from"
                f" the others in {metric}: two modes, of which a mean tells little.",
                labels.values(),
                listed([f"{labels[cell]}: {each}" for cell, each in modes.cells.items()], NAMED),
            )
