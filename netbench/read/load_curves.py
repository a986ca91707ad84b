"""Latency by offered load: open loops that differ in rate alone, and the knee of their curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from netbench.model import Compare
from netbench.read.cells import CellResult
from netbench.read.offered import KEY, TOLERANCE
from netbench.read.result import Result
from netbench.stats.closing import groups

OFFERED, ANSWERED = "offered", "transactions"
STEEP = 10
KNEE = (
    f"the first rate of which less than {1 - TOLERANCE:.0%} was answered in time, by the whole"
    f" interval of transactions, or whose p99 is over {STEEP} times that of the lowest rate"
)


class LoadCurve(NamedTuple):
    """Cells in order of the load that was offered, at least two."""

    cells: Sequence[CellResult]

    @property
    def knee(self) -> CellResult | None:
        """The cell that KNEE describes; None where all rates were served."""
        least = self.cells[0].intervals["p99"].mean
        for cell in self.cells:
            known = cell.intervals
            least_answered = (1 - TOLERANCE) * known[OFFERED].mean
            if known[ANSWERED].high < least_answered or known["p99"].mean > STEEP * least:
                return cell
        return None


def load_curves(result: Result, cells: Sequence[CellResult]) -> list[LoadCurve]:
    """The curves of a result that sweeps the rate of requests, of each pair and each combination of
    other levels one. Cells without a p99 are not on them.
    """
    if KEY not in result.swept:
        return []
    needed = {OFFERED, ANSWERED, "p50", "p99"}
    at = {cell.place: cell for cell in cells if needed <= cell.intervals.keys()}
    factors = {place: cell.factors for place, cell in at.items()}
    return [
        LoadCurve(sorted(map(at.__getitem__, places), key=lambda c: c.intervals[OFFERED].mean))
        for places in groups(factors, result.swept, Compare(KEY, ""))
        if len(places) > 1
    ]
