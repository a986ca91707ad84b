"""Numbers as text: as many digits as the interval supports, the same in all forms of a report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from netbench.base.units import count as count
from netbench.stats.intervals import Interval

if TYPE_CHECKING:  # it imports pandas
    from netbench.report.blocks import Value

MISSING = "-"
ROUNDING = 1e-12  # of doubles, relative


def decimals(half_width: float) -> int:
    """Digits after the point so that the half-width has two significant ones."""
    return max(0, 1 - math.floor(math.log10(half_width))) if half_width > 0 else 0


def parts(interval: Interval) -> tuple[str, str]:
    """A mean and its half-width: ("18.00", "0.15"); the half-width is "" where there is none, and
    both bounds, "(0.1 to 3.2)", where these are not equally far; of runs that are too few for an
    interval all of them, "(0.7, 0.9)".
    """
    if math.isnan(interval.mean):
        return MISSING, ""
    if not interval.known:
        runs = ", ".join(number(each) for each in interval.runs)
        return number(interval.mean), f"({runs})" if runs else ""
    if interval.half_width <= abs(interval.mean) * ROUNDING:
        return number(interval.mean), "0"
    return _parts(interval, decimals(interval.half_width))


def _parts(interval: Interval, digits: int) -> tuple[str, str]:
    if interval.skewed:
        digits = max(digits, decimals(interval.mean - interval.low))
        mean, low, high = (f"{x:.{digits}f}" for x in (interval.mean, interval.low, interval.high))
        return mean, f"({low} to {high})"
    return f"{interval.mean:.{digits}f}", f"{interval.half_width:.{digits}f}"


def number(value: float) -> str:
    """Four significant digits, no power of ten for what one can count: 17.91, 0.0123, 123456."""
    if value == 0:
        return "0"
    if not math.isfinite(value):
        return MISSING
    digits = 3 - math.floor(math.log10(abs(value)))
    return f"{value:.{max(0, digits)}f}" if digits < 9 else f"{value:.4g}"


def words(value: Value) -> str:
    """Any value of a table as text."""
    if value is None:
        return MISSING
    if isinstance(value, Interval):
        return joined(parts(value))
    return number(value) if isinstance(value, float) else str(value)


def joined(mean_and_half: tuple[str, str]) -> str:
    """`18.00 ±0.15`, `0.4 (0.1 to 3.2)`, or the mean alone."""
    mean, half = mean_and_half
    if half.startswith("("):
        return f"{mean} {half}"
    return f"{mean} ±{half}" if half else mean


def column_parts(values: Sequence[Value]) -> list[tuple[str, str]]:
    """A column of a table: intervals with equally many digits, as many as the middle one of their
    half-widths supports.

    Up to two more where the least half-width would else be told as 0.
    """
    halves = sorted(
        v.half_width
        for v in values
        if isinstance(v, Interval) and v.known and v.half_width > abs(v.mean) * ROUNDING
    )
    middle = decimals(halves[len(halves) // 2]) if halves else 0
    digits = max(middle, min(decimals(halves[0]) - 1, middle + 2)) if halves else None
    texts = []
    for value in values:
        if isinstance(value, Interval) and value.known and digits is not None:
            texts.append(_parts(value, digits))
        else:
            texts.append(parts(value) if isinstance(value, Interval) else (words(value), ""))
    return texts


def share(value: float) -> str:
    """A fraction in percent: 0.025 -> `2.5%`, 0.95 -> `95%`."""
    return f"{value * 100:.3g}%"


def signed(change: Interval) -> str:
    """A change in whole numbers: `+84 ±12`."""
    if not change.known:
        return f"{change.mean:+.0f}"
    return f"{change.mean:+.0f} ±{change.half_width:.0f}"
