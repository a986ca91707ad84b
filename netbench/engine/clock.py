"""Whether the clock of a run's host can be believed, by the times that its worker sends."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Sequence

from netbench.base.errors import ProtocolError
from netbench.engine.binding import Edge, Vector

CLOCK_RATE = 0.01  # two clocks differ by less: adjtimex(2) slews by 0.05%, and crystals err less
CLOCK_STEP_NS = 10**7  # of coarse clocks
CLOCK = "; is its clock source stable? See there: dmesg | grep -i clocksource"


def now_ns() -> int:
    """The controller's clock: no date, never set, and it goes on while this machine sleeps."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def check_times(vectors: Sequence[Vector], samples: Sequence[Vector], began: int) -> None:
    """The clock of a run's host, by a run that was prepared at `began` (now_ns).

    Errors: ProtocolError for a window that closes before it opens, for samples that run backwards,
    and for times that are further apart than the run took.
    """
    _check_window(vectors)
    times = [sample.ns for sample in samples]
    if any(later < earlier for earlier, later in itertools.pairwise(times)):
        raise ProtocolError(f"the times of the worker's samples run backwards{CLOCK}")
    times += [vector.ns for vector in vectors if vector.ns]
    span, took = max(times, default=0) - min(times, default=0), now_ns() - began
    if span > took * (1 + CLOCK_RATE) + CLOCK_STEP_NS:
        raise ProtocolError(
            f"the worker's times span {span / 1e9:.1f} s, but its run took {took / 1e9:.1f} s"
            f" here{CLOCK}"
        )


def _check_window(vectors: Iterable[Vector]) -> None:
    edges = [
        (vector.row, vector.ns) for vector in vectors if vector.edge == Edge.OPEN and vector.ns
    ]
    opened = dict(edges)
    for vector in vectors:
        if vector.edge == Edge.CLOSE and vector.ns < opened.get(vector.row, 0):
            raise ProtocolError(f"the worker's window closes before it opens{CLOCK}")
