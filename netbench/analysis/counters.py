"""Raw counters of one side of a record: values at the edges of the window, and their differences.

A counter that is absent gives None: never 0, never a guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SIDES = ("sender", "receiver")


def window_seconds(side: Mapping[str, Any]) -> float | None:
    """Length of the measured window of one side in seconds; None when its edges are not both there
    or not in order.
    """
    edges = side.get("time_ns")
    if edges is None or len(edges) != 2 or edges[1] <= edges[0]:
        return None
    return float(edges[1] - edges[0]) * 1e-9


def difference(opening: Any, closing: Any) -> float:
    """Difference of a counter's values at two edges.

    Lists hold one number a stream and are summed. Whole numbers are subtracted exactly.
    """
    if isinstance(opening, (list, tuple)):
        return sum(closing) - sum(opening)  # type: ignore[no-any-return]
    return closing - opening  # type: ignore[no-any-return]


def delta(side: Mapping[str, Any], group: str, name: str) -> float | None:
    """Closing less opening value of a counter, over all streams; None when it is absent, or went
    backwards (it was reset).
    """
    counters = side.get(group)
    edges = counters.get(name) if counters else None
    if edges is None:
        return None
    change = difference(edges[0], edges[1])
    return change if change >= 0 else None
