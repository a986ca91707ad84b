"""Raw counters of one side of a record: values at the edges of the window, and their differences.

A counter that is absent gives None: never 0, never a guess.
"""

from __future__ import annotations

from typing import Any

from netbench.record import SideCounters

NO_COUNTERS = SideCounters(host="")
"""A side of a run that did not get so far."""


def window_seconds(side: SideCounters) -> float | None:
    """Length of the measured window of one side in seconds; None when its edges are not there or
    not in order.
    """
    edges = side.time_ns
    if edges is None or edges[1] <= edges[0]:
        return None
    return float(edges[1] - edges[0]) * 1e-9


def difference(opening: Any, closing: Any) -> float:
    """Difference of a counter's values at two edges.

    Lists hold one number a stream and are summed. Whole numbers are subtracted exactly.
    """
    if isinstance(opening, (list, tuple)):
        return sum(closing) - sum(opening)  # type: ignore[no-any-return]
    return closing - opening  # type: ignore[no-any-return]


def delta(side: SideCounters, meter: str, name: str) -> float | None:
    """Closing less opening value of a counter, over all streams; None when it is absent, or went
    backwards (it was reset).
    """
    counters = side.meters.get(meter)
    edges = counters.get(name) if counters else None
    if edges is None:
        return None
    change = difference(edges[0], edges[1])
    return change if change >= 0 else None
