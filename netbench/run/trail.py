"""What became of a campaign's runs, for who watches it: counts, the last of them, and those that
are not ok. What a record costs does not grow with those before it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from typing import NamedTuple

from netbench.plan.plan import Key
from netbench.result.record import Record

RECENT = 512  # runs whose throughput is kept
LAST_BAD = 16  # runs that are not ok, with their reasons


class Bad(NamedTuple):
    """A run that is not ok."""

    run: int
    cell: str
    pair: str
    status: str
    reason: str


class Trail:
    """`counts`: records by status. `recent`: throughput of the last ok runs, in Gb/s. `bad`: the
    last runs that are not ok. `failed`: of each cell and pair, block and boot of its failed runs.
    `last`: the record that was added last.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.recent: deque[float] = deque(maxlen=RECENT)
        self.bad: deque[Bad] = deque(maxlen=LAST_BAD)
        self.failed: dict[Key, list[tuple[int, int]]] = {}
        self.last: Record | None = None

    def add(self, record: Record) -> None:
        """Take in a record."""
        self.counts[record.status] += 1
        self.last = record
        if record.status == "ok":
            return
        self.bad.append(Bad(record.run, record.cell, record.pair, record.status, record.reason))
        if record.status == "failed":
            places = self.failed.setdefault((record.cell, record.pair), [])
            places.append((record.block, record.boot))

    def failures(self, key: Key) -> Sequence[tuple[int, int]]:
        """Block and boot of the failed runs of a cell on a pair."""
        return self.failed.get(key, ())
