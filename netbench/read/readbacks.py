"""Settings as read back: what was asked, what the kernel said, and what moved along."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from netbench.read.stack import Runs
from netbench.result.record import SIDES

Settings = dict[str, Any]
"""`settings` of a record as JSON."""
BUFFERS = ("send_buffer", "receive_buffer", "socket_buffer")
"""Settings whose size the kernel changes while bytes flow where none is asked for."""


class Readback(NamedTuple):
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

    @property
    def is_outcome(self) -> bool:
        """Whether it says what the kernel made of a run, rather than what the run was to be."""
        return self.name in BUFFERS and not self.asked


class ReadbackTally:
    """Counts equal read-backs together: they rarely differ between the runs of a cell."""

    def __init__(self) -> None:
        self._distinct: dict[tuple[str, str], list[tuple[Settings, list[int]]]] = {}
        # by cell and pair: settings as JSON, each with the number of its runs

    def add(self, runs: Runs) -> None:
        """Take in the settings of runs."""
        distinct = self._distinct.setdefault((runs.record.cell, runs.record.pair), [])
        for raw in runs.said:
            if settings := raw["settings"]:
                for known, times in distinct:
                    if known == settings:
                        times[0] += 1
                        break
                else:
                    distinct.append((settings, [1]))

    def _each(self) -> Iterator[tuple[str, str, Settings, int]]:
        for (cell, pair), distinct in self._distinct.items():
            for settings, (runs,) in distinct:
                yield cell, pair, settings, runs

    def readbacks(self) -> list[Readback]:
        """Every read-back so far."""
        rows = []
        for cell, pair, settings, runs in self._each():
            for side in SIDES:
                for name, note in settings[side].items():
                    asked, read, after = (_word(note.get(k)) for k in ("asked", "read", "after"))
                    rows.append(Readback(cell, pair, side, name, asked, read, runs, after))
        return rows

    def moved(self) -> dict[tuple[str, str, str], int]:
        """What changed together with a setting, unasked, by cell, pair and change in words."""
        runs_of: dict[tuple[str, str, str], int] = {}
        for cell, pair, settings, runs in self._each():
            for what, (before, after) in settings["moved"].items():
                key = cell, pair, f"{what} from {before} to {after}"
                runs_of[key] = runs_of.get(key, 0) + runs
        return runs_of


def _word(value: Any) -> str:
    """A setting's value as text; "" for none."""
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)
