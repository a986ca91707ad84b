"""What the processes used: counters of rusage added up over the ok runs of each cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from netbench.read.counters import window_seconds
from netbench.result.record import SIDES, Record

Numbers = npt.NDArray[Any]
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


class UsageTally:
    """Adds up rusage and the measured window of each run that counts."""

    def __init__(self) -> None:
        self._used: dict[UsageKey, Used] = {}

    def add(self, record: Record) -> None:
        """Take in the record of several runs."""
        for who in SIDES:
            side = record.side(who)
            window = window_seconds(side) if side else None
            if side and window is not None:
                self._add((record.cell, record.pair, who, "seconds"), window)
            for name, (opening, closing) in side.meters.get("rusage", {}).items() if side else ():
                self._add((record.cell, record.pair, who, name), closing - opening)

    def _add(self, key: UsageKey, amounts: Numbers) -> None:
        """Add what each run used; of a counter that was reset that is below 0, or NaN."""
        counted = amounts[amounts >= 0].tolist()
        if counted:
            before = self._used.get(key, Used(0, 0))
            self._used[key] = Used(before.runs + len(counted), sum(counted, before.total))

    def totals(self) -> dict[UsageKey, Used]:
        """The sums so far."""
        return self._used
