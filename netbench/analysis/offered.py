"""Offered load: cells whose throughput was fixed by `rate:`. What was fixed is no finding; the
question is what it cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from netbench.analysis.cells import CellResult
from netbench.analysis.result import Result
from netbench.units import count, parse_rate

KEY, METRIC = "rate", "throughput"
HELD = 0.98  # of the rate: a cell that moved so much of it was held back by nothing else
Place = tuple[str, str]
"""(cell, pair)"""


def word(result: Result, factors: Mapping[str, str]) -> str:
    """The rate of a cell as written: of its factors, else of the campaign's transfer; "" without
    one.
    """
    written = factors.get(KEY) or (result.asked or {}).get(f"transfer.{KEY}", "")
    return "" if written == "none" else str(written)


def holds(result: Result, cell: CellResult) -> bool:
    """Whether a cell has a rate, and moved as much."""
    moved, written = cell.intervals.get(METRIC), word(result, cell.factors)
    if moved is None or not written:
        return False
    try:
        return moved.mean * 1e9 >= HELD * parse_rate(written)
    except ValueError:  # a damaged campaign.yaml: no rate is known
        return False


def free(result: Result, cells: Iterable[CellResult]) -> list[CellResult]:
    """The cells whose throughput no rate held back."""
    return [cell for cell in cells if METRIC in cell.intervals and not holds(result, cell)]


def fixed(result: Result, cells: Iterable[CellResult], factor: str) -> set[Place]:
    """The cells whose throughput says nothing of the levels of a factor: they, and all that they
    are compared with, hold their rate.
    """
    contexts: dict[tuple[str, ...], list[CellResult]] = {}
    for cell in cells:
        others = (cell.factors.get(name, "") for name in result.swept if name != factor)
        contexts.setdefault((cell.pair, *others), []).append(cell)
    return {
        (cell.cell, cell.pair)
        for context in contexts.values()
        if not free(result, context)
        for cell in context
    }


def told(result: Result, cells: Sequence[CellResult]) -> str:
    """What a rate did: one sentence; "" where no cell has one."""
    measured = [cell for cell in cells if METRIC in cell.intervals]
    paced = [cell for cell in measured if word(result, cell.factors)]
    if not paced:
        return ""
    rates = " and ".join(dict.fromkeys(word(result, cell.factors) for cell in paced))
    held = sum(holds(result, cell) for cell in paced)
    if held == len(paced):
        all_paced = len(paced) == len(measured)
        who = "every cell" if all_paced else f"the {count(len(paced), 'cell')} with a rate"
        return f"Throughput was fixed by rate: {rates}, which {who} moved."
    return (
        f"Throughput was limited by rate: {rates}; {held} of {len(paced)} cells moved as much, the"
        " others less."
    )
