"""What the processes used: counters of rusage added up over the ok runs of each cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from netbench.analysis.counters import SIDES, window_seconds

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

    def add(self, record: Mapping[str, Any]) -> None:
        """Take in the record of a run."""
        cell, pair = str(record["cell"]), str(record["pair"])
        for who in SIDES:
            side = record.get(who) or {}
            sums = self._sums.setdefault((cell, pair, who), {})
            window = window_seconds(side)
            measured = {} if window is None else {"seconds": (0, window)}
            for name, (opening, closing) in ((side.get("rusage") or {}) | measured).items():
                if closing < opening:
                    continue  # the counter was reset
                runs_and_total = sums.get(name)
                if runs_and_total is None:
                    runs_and_total = sums[name] = [0, 0]
                runs_and_total[0] += 1
                runs_and_total[1] += closing - opening

    def totals(self) -> dict[UsageKey, Used]:
        """The sums so far."""
        return {
            (*key, name): Used(int(runs), total)
            for key, sums in self._sums.items()
            for name, (runs, total) in sums.items()
        }
