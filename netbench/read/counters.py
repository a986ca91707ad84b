"""Raw counters of one side of a record: values at the edges of the window, and their differences.

A counter that is absent is NaN, and so is all that follows from it: never 0, never a guess. In the
record of several runs (`stack.Runs`) a number is an array, and what one run of them lacks is NaN.
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


def where(condition: Number, value: Number) -> Number:
    """The value where a condition holds, else NaN."""
    if isinstance(condition, np.ndarray):
        is_object = isinstance(value, np.ndarray) and value.dtype == object
        numbers = value.astype(float) if is_object else value
        return numbers if condition.all() else np.where(condition, numbers, math.nan)
    return value if condition else math.nan


def either(value: Number, other: Number) -> Number:
    """The value; the other where there is none."""
    if isinstance(value, np.ndarray):
        return np.where(np.isnan(value.astype(float)), other, value)
    return other if math.isnan(value) else value


def is_known(value: Number) -> bool:
    """Whether there is a number, of several runs of any of them."""
    if isinstance(value, np.ndarray):
        return not np.isnan(value.astype(float)).all()
    return not math.isnan(value)


def total(value: Number) -> Number:
    """A counter's value at an edge, over all streams: lists hold one number a stream."""
    return sum(value) if isinstance(value, list) else value


def edges_of(side: SideCounters, meter: str, name: str) -> tuple[Number, Number]:
    """The opening and the closing value of a counter, over all streams."""
    opening, closing = side.meters.get(meter, {}).get(name, (math.nan, math.nan))
    return total(opening), total(closing)


def difference(side: SideCounters, meter: str, name: str) -> Number:
    """Closing less opening value of a counter; whole numbers are subtracted exactly."""
    opening, closing = edges_of(side, meter, name)
    return closing - opening


def delta(side: SideCounters, meter: str, name: str) -> Number:
    """The same; NaN where it went backwards (it was reset)."""
    change = difference(side, meter, name)
    return where(change >= 0, change)


def steady(side: SideCounters, meter: str, name: str) -> Number:
    """The value of a counter that is equal at both edges, else NaN."""
    opening, closing = edges_of(side, meter, name)
    return where(opening == closing, opening)


def window_seconds(side: SideCounters) -> Number:
    """Length of a side's window in seconds; NaN where its edges are not there, in order."""
    if side.time_ns is None:
        return math.nan
    length = side.time_ns[1] - side.time_ns[0]
    return where(length > 0, length * 1e-9)
