"""What a run moves while it lasts, from the samples that its sender sends meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from netbench.engine.binding import Vector
from netbench.run import readings
from netbench.run.ends import End

REPORT_NS = 10**9


@dataclass(frozen=True)
class Second:
    """About a second of a run: `begin` and `end` in seconds since its window opened, `bytes` that
    were sent, `retransmits` of its streams (None where the kernel does not say).
    """

    run: int
    begin: float
    end: float
    bytes: int
    retransmits: int | None


Told = Callable[[Second], None]


@contextmanager
def told(sender: End, run: int, sample: int, tell: Told) -> Iterator[None]:
    """Tell each second of a run whose sender takes samples every `sample` ns, which is when its
    window opened before the first.
    """
    catalogue = sender.worker.catalogue
    first: readings.Line = {}
    opened = 0

    def take(vectors: Sequence[Vector]) -> None:
        nonlocal first, opened
        lines = [
            line for line in readings.sample_lines("", vectors, catalogue) if _total(line, "flow")
        ]
        if lines and not first:
            first, opened = lines[0], lines[0]["ns"] - sample
        if not lines or lines[-1] is first:
            return
        last = lines[-1]
        begin, end = ((line["ns"] - opened) / 1e9 for line in (first, last))
        sent, again = (_moved(first, last, meter) for meter in ("flow", "tcp"))
        if sent is not None:
            tell(Second(run, begin, end, sent, again))
        first = last

    sender.worker.sampled = take
    try:
        yield
    finally:
        sender.worker.sampled = None


_COUNTERS = {"flow": "bytes", "tcp": "retransmits"}


def _total(line: readings.Line, meter: str) -> list[int] | None:
    """A counter of each stream; None where a sample has none."""
    values: list[int] | None = line.get(meter, {}).get(_COUNTERS[meter])
    return values


def _moved(first: readings.Line, last: readings.Line, meter: str) -> int | None:
    """By how much a counter has moved over all streams."""
    before, after = _total(first, meter), _total(last, meter)
    return None if before is None or after is None else sum(after) - sum(before)
