"""Cells as matrices: the levels of one method down, those of another across, all else equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from netbench.read.cells import CellResult
from netbench.read.result import Result
from netbench.read.shown_levels import NO_TOOL, shown

METHODS = ("send", "receive", "tool")
"""Factors that name a way to move bytes."""
COPIES = ("dd", "cp", "cat")
"""Tools that copy on one host: nothing is sent."""


def copies_here(result: Result, cell: CellResult) -> bool:
    """Whether the tool of a cell, of its own or of the campaign, copies on one host."""
    written = (result.asked or {}).get("transfer.tool", "")
    return cell.factors.get("tool", written) in COPIES


class Pivot(NamedTuple):
    """The cells of one pair and one context. `down` and `across` are factors with the levels that
    have a cell; `cells` are by both levels.
    """

    down: str
    across: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    pair: str
    context: Mapping[str, str]
    cells: Mapping[tuple[str, str], CellResult]

    def where(self, with_pair: bool) -> list[str]:
        """The levels that all cells of the matrix have, and where that tells, their pair."""
        levels = [f"{k}={shown(v)}" for k, v in self.context.items() if (k, v) != ("tool", NO_TOOL)]
        return [self.pair, *levels] if with_pair else levels


def pivots(result: Result, cells: Sequence[CellResult]) -> list[Pivot]:
    """The matrices of a result in the order of its cells: those of two levels or more each way, of
    the first two factors that name methods and are swept over several levels.
    """
    levels = {
        name: {cell.factors[name] for cell in result.cells if name in cell.factors}
        for name in METHODS
        if name in result.swept
    }
    factors = [name for name, each in levels.items() if len(each) > 1][:2]
    if len(factors) < 2:
        return []
    together: dict[tuple[str, tuple[tuple[str, str], ...]], list[CellResult]] = {}
    for cell in cells:
        if set(factors) <= cell.factors.keys():
            others = tuple((k, v) for k, v in cell.factors.items() if k not in factors)
            together.setdefault((cell.pair, others), []).append(cell)
    down, across = factors
    tables = []
    for (pair, others), cells_here in together.items():
        rows, columns = (
            tuple(dict.fromkeys(cell.factors[factor] for cell in cells_here)) for factor in factors
        )
        if len(rows) > 1 and len(columns) > 1:
            at = {(cell.factors[down], cell.factors[across]): cell for cell in cells_here}
            tables.append(Pivot(down, across, rows, columns, pair, dict(others), at))
    return tables
