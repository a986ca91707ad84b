"""Offered load: cells whose throughput `rate:` has fixed; the question is what it cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from netbench.base.units import count, parse_rate
from netbench.model import Compare
from netbench.read.cells import CellResult
from netbench.read.result import Result
from netbench.stats.closing import groups

KEY, METRIC = "rate", "throughput"
BOTH = (METRIC, "sent")  # each side's own window: one that was held up may lie beside the other
TOLERANCE = 0.02  # a run or a cell that is no further from its rate holds it
Place = tuple[str, str]
"""(cell, pair)"""


def word(result: Result, factors: Mapping[str, str]) -> str:
    """The rate of a cell as written: of its factors, else of the transfer; "" without one."""
    written = factors.get(KEY) or (result.asked or {}).get(f"transfer.{KEY}", "")
    return "" if written == "none" else str(written)


def rate_of(result: Result, factors: Mapping[str, str]) -> int | None:
    """The rate of a cell in bits per second; None without one."""
    written = word(result, factors)
    try:
        return parse_rate(written) if written else None
    except ValueError:  # a damaged campaign.yaml: no rate is known
        return None


def holds(result: Result, cell: CellResult) -> bool:
    """Whether a cell has a rate, and each side moved as much, neither less nor more; of an open
    loop, whether what was due was answered.
    """
    rate, known = rate_of(result, cell.factors), cell.intervals
    if {"offered", "transactions"} <= known.keys():
        return abs(known["transactions"].mean / known["offered"].mean - 1) <= TOLERANCE
    if rate is None or METRIC not in known:
        return False
    moved = [known[name].mean * 1e9 / rate for name in BOTH if name in known]
    return all(abs(each - 1) <= TOLERANCE for each in moved)


def free(result: Result, cells: Iterable[CellResult]) -> list[CellResult]:
    """The cells whose throughput no rate fixed."""
    return [cell for cell in cells if METRIC in cell.intervals and not holds(result, cell)]


def fixed(result: Result, cells: Iterable[CellResult], factor: str) -> set[Place]:
    """The cells whose throughput says nothing of the levels of a factor: they, and all that they
    are compared with, hold their rate.
    """
    at = {cell.place: cell for cell in cells}
    factors = {place: cell.factors for place, cell in at.items()}
    contexts = groups(factors, result.swept, Compare(factor, ""))
    together = [[at[place] for place in context] for context in contexts]
    return {cell.place for each in together if not free(result, each) for cell in each}


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
        return f"Throughput was fixed by rate: {rates}, which {who} moved within {TOLERANCE:.0%}."
    return (
        f"Throughput was limited by rate: {rates}; {held} of {len(paced)} cells moved as much, the"
        f" others less or more than {TOLERANCE:.0%} from it."
    )
