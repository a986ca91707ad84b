"""What the processes used: counters of rusage added up over the ok runs of each cell."""

from __future__ import annotations

import operator
from dataclasses import dataclass

from netbench.analysis.counters import window_seconds
from netbench.record import SIDES, Record, SideCounters

UsageKey = tuple[str, str, str, str]
"""Cell, pair, side and counter; the counter `seconds` is the measured window."""


@dataclass(frozen=True)
class Used:
    """A counter of what one side used, over the `runs` of a (cell, pair) that have it."""

    runs: int
    total: float

    @property
    def mean(self) -> float:
        return self.total / self.runs


@dataclass
class _Sum:
    runs: int
    amounts: list[float]


class UsageTally:
    """Adds up rusage and the measured window of each run that counts."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str, str, tuple[str, ...]], _Sum] = {}
        # by cell, pair, side and the names of the counters that the runs have

    def add(self, record: Record) -> None:
        """Take in the record of a run."""
        for who in SIDES:
            side = record.side(who)
            if side is None:
                continue
            names, amounts = _amounts(side)
            key = record.cell, record.pair, who, names
            total = self._sums.get(key)
            if total is None:
                self._sums[key] = _Sum(1, amounts)
            else:
                total.runs += 1
                total.amounts = list(map(operator.add, total.amounts, amounts))

    def totals(self) -> dict[UsageKey, Used]:
        """The sums so far."""
        used: dict[UsageKey, Used] = {}
        for (cell, pair, side, names), total in self._sums.items():
            for name, amount in zip(names, total.amounts, strict=True):
                before = used.get((cell, pair, side, name), Used(0, 0))
                used[cell, pair, side, name] = Used(before.runs + total.runs, before.total + amount)
        return used


def _amounts(side: SideCounters) -> tuple[tuple[str, ...], list[float]]:
    """Names and amounts: the window, and each counter but those that were reset."""
    rusage = side.meters.get("rusage", {})
    names, amounts = tuple(rusage), [closing - opening for opening, closing in rusage.values()]
    if amounts and min(amounts) < 0:
        kept = {name: amount for name, amount in zip(names, amounts, strict=True) if amount >= 0}
        names, amounts = tuple(kept), list(kept.values())
    window = window_seconds(side)
    return (names, amounts) if window is None else (("seconds", *names), [window, *amounts])
