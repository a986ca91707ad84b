"""Raw counters of one side of a record: values at the edges of the window, and their differences.

A counter that is absent gives None: never 0, never a guess. In the record of several runs
(`stack.Runs`) a number is an array, and what one run of them lacks is NaN.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from netbench.result.record import SideCounters

NO_COUNTERS = SideCounters(host="")
"""A side of a run that did not get so far."""
Number = Any
"""A number of one run, or an array with one of each of several."""


def where(condition: Number, value: Number) -> Number | None:
    """The value where a condition holds; of one run None where it does not."""
    if isinstance(condition, np.ndarray):
        numbers = value.astype(float) if value.dtype == object else value
        return numbers if condition.all() else np.where(condition, numbers, math.nan)
    return value if condition else None


def either(value: Number | None, other: Number | None) -> Number | None:
    """The value; the other where there is none."""
    if value is None or other is None:
        return other if value is None else value
    return np.where(np.isnan(value), other, value) if isinstance(value, np.ndarray) else value


def window_seconds(side: SideCounters) -> Number | None:
    """Length of the measured window of one side in seconds; None when its edges are not there or
    not in order.
    """
    if side.time_ns is None:
        return None
    length = side.time_ns[1] - side.time_ns[0]
    return where(length > 0, length * 1e-9)


def difference(opening: Number, closing: Number) -> Number:
    """Difference of a counter's values at two edges.

    Lists hold one number a stream and are summed. Whole numbers are subtracted exactly.
    """
    if isinstance(opening, (list, tuple)):
        return sum(closing) - sum(opening)
    return closing - opening


def delta(side: SideCounters, meter: str, name: str) -> Number | None:
    """Closing less opening value of a counter, over all streams; None when it is absent, or went
    backwards (it was reset).
    """
    counters = side.meters.get(meter)
    edges = counters.get(name) if counters else None
    if edges is None:
        return None
    change = difference(edges[0], edges[1])
    return where(change >= 0, change)
