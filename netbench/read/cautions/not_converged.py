"""Cells that stopped for another reason than precision. One caution for each status of cells:
unstable, max, interrupted.
"""

from __future__ import annotations

from collections.abc import Sequence

from netbench.base.units import count, said_of
from netbench.read.cautions.rule import CautionRule, Cautions, Evidence
from netbench.read.cells import CellResult

SIGNS_NAMED = 3


class NotConverged(CautionRule):
    """Cells have wider intervals than the campaign asked for, or too few runs."""

    name = "not_converged"
    kinds = ("unstable", "max", "interrupted")
    severity = 180
    reads = "the status of cells, and their intervals in the metrics of `repeat`"
    shows = "the widest interval, the precision that was asked for, signs of instability"
    remedy = "raise repeat.max, transfer.duration or limit; find what changes during the campaign"

    def report(self, evidence: Evidence) -> Cautions:
        repeat = evidence.result.repeat
        in_boots = "boots (the table of boots says what that buys)"
        more = in_boots if evidence.result.in_boots else "max"
        for status, what, remedy in (
            (
                "unstable",
                "are not precise enough, with runs that are not independent",
                "find what changes during the campaign; longer runs",
            ),
            (
                "max",
                "did not reach the precision that was asked for",
                f"raise repeat.{more} or transfer.duration, or accept a wider interval",
            ),
            ("interrupted", f"have fewer than {count(repeat.min, 'run')}", "resume the campaign"),
        ):
            cells = [
                c
                for c in evidence.cells
                if c.status == status and (c.n or status != "interrupted" or not c.reasons)
            ]
            if not cells or (status == "max" and repeat.max == 1):
                continue  # where one run was asked for, no precision was
            out_of_time = evidence.result.ended == "limit" and status != "unstable"
            because = ": the time limit was reached" if out_of_time else ""
            yield self.caution(
                f"{said_of(len(cells), 'cell', what)}{because}.",
                evidence.labels((c.cell, c.pair) for c in cells),
                _widest(evidence, cells),
                remedy="raise limit, or run fewer or shorter cells" if out_of_time else remedy,
                kind=status,
            )


def _widest(evidence: Evidence, cells: Sequence[CellResult]) -> str:
    """The widest interval of the cells, what was asked for, and what makes them unstable."""
    repeat = evidence.result.repeat
    widths = [
        (c.intervals[metric].precision, metric)
        for c in cells
        for metric in repeat.metrics
        if metric in c.intervals and c.intervals[metric].known
    ]
    widest = max(widths, default=None)
    of = " of the ratio to the baseline" if evidence.result.compare else ""
    text = (
        f"widest ±{widest[0]:.1%} ({widest[1]}), " if widest else ""
    ) + f"asked ±{repeat.precision:.1%}{of}"
    signs = sorted({sign for c in cells for sign in c.signs})[:SIGNS_NAMED]
    return "; ".join((text, *signs))
