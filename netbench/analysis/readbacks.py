"""Settings as read back: what was asked, what the kernel said, and what moved along."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from netbench.analysis.counters import SIDES


@dataclass(frozen=True)
class Readback:
    """A setting as asked and as the kernel said, as words ("" for none), in so many `runs` of a
    (cell, pair, side).

    `after` is what it read after the run where that was something else, "" where it was not.
    """

    cell: str
    pair: str
    side: str
    name: str
    asked: str
    read: str
    runs: int
    after: str = ""


class ReadbackTally:
    """Counts equal read-backs together: they rarely differ between the runs of a cell."""

    def __init__(self) -> None:
        self._distinct: dict[tuple[str, str], list[list[Any]]] = {}
        # by cell and pair: each distinct `settings` of a record, and its number of runs

    def add(self, record: Mapping[str, Any]) -> None:
        """Take in the record of a run."""
        settings = record.get("settings")
        if not settings:
            return
        distinct = self._distinct.setdefault((str(record["cell"]), str(record["pair"])), [])
        for known in distinct:
            if known[0] == settings:
                known[1] += 1
                return
        distinct.append([settings, 1])

    def _each(self) -> Iterator[tuple[str, str, Mapping[str, Any], int]]:
        for (cell, pair), distinct in self._distinct.items():
            for settings, runs in distinct:
                yield cell, pair, settings, runs

    def readbacks(self) -> list[Readback]:
        """Every read-back so far."""
        return [
            Readback(cell, pair, side, name, asked, read, runs, after)
            for cell, pair, settings, runs in self._each()
            for side in SIDES
            for name, words in (settings.get(side) or {}).items()
            for asked, read, after in [
                [_word(words.get(when)) for when in ("asked", "read", "after")]
            ]
        ]

    def moved(self) -> dict[tuple[str, str, str], int]:
        """What changed with a setting though nobody asked: (cell, pair, change in words) ->
        runs.
        """
        runs_of: dict[tuple[str, str, str], int] = {}
        for cell, pair, settings, runs in self._each():
            for what, change in (settings.get("moved") or {}).items():
                key = (cell, pair, f"{what} {_change(change)}".strip())
                runs_of[key] = runs_of.get(key, 0) + runs
        return runs_of


def _word(value: Any) -> str:
    """A setting's value as text; "" for none."""
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def _change(change: Any) -> str:
    """From what to what a setting changed, in words; another version's form as it is."""
    if isinstance(change, list) and len(change) == 2:
        return f"from {_word(change[0])} to {_word(change[1])}"
    return _word(change)
