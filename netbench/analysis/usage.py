"""What the processes used: counters of rusage added up over the ok runs of each cell."""

from __future__ import annotations

from dataclasses import dataclass

from netbench.analysis.counters import window_seconds
from netbench.record import SIDES, Record

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
        self._sums: dict[tuple[str, str, str], dict[str, list[float]]] = {}  # runs and total

    def add(self, record: Record) -> None:
        """Take in the record of a run."""
        for who in SIDES:
            side = record.side(who)
            if side is None:
                continue
            sums = self._sums.setdefault((record.cell, record.pair, who), {})
            window = window_seconds(side)
            if window is not None:
                _add(sums, "seconds", window)
            for name, (opening, closing) in side.meters.get("rusage", {}).items():
                if closing >= opening:  # else the counter was reset
                    _add(sums, name, closing - opening)

    def totals(self) -> dict[UsageKey, Used]:
        """The sums so far."""
        return {
            (*key, name): Used(int(runs), total)
            for key, sums in self._sums.items()
            for name, (runs, total) in sums.items()
        }


def _add(sums: dict[str, list[float]], name: str, amount: float) -> None:
    runs_and_total = sums.get(name)
    if runs_and_total is None:
        sums[name] = [1, amount]
    else:
        runs_and_total[0] += 1
        runs_and_total[1] += amount
