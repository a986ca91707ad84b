"""Ratios in words: "84.1% more", "66.0% less (2.9 times)", "80.2 to 88.1% more"."""

from __future__ import annotations

import math

MOST = 900  # percent; above, a change is given as a factor
TIMES = 2.0  # from this factor on a ratio is also given as "n times"

SMALL = 0.1  # percent; below, a signed change has two digits after the point


def percent(ratio: float) -> float:
    """A ratio as the change in percent: 1.841 -> 84.1, 0.34 -> -66."""
    return (ratio - 1) * 100


def change(ratio: float) -> str:
    """A ratio in words: 1.841 -> `84.1% more`, 0.34 -> `66.0% less`."""
    return f"{_digits(abs(percent(ratio)))}% {'more' if ratio >= 1 else 'less'}"


def times(ratio: float) -> str:
    """A large ratio as a factor: 0.34 -> ` (2.9 times)`; "" for a small one."""
    factor = max(ratio, 1 / ratio)
    return f" ({factor:.1f} times)" if factor >= TIMES else ""


def amount(ratio: float) -> str:
    """Both: 0.34 -> `66.0% less (2.9 times)`."""
    return change(ratio) + times(ratio)


def signed(ratio: float) -> str:
    """A ratio as the change in percent with its sign: `+0.1`, `-0.03`."""
    change = percent(ratio)
    digits = 2 if abs(change) < SMALL else 1
    return f"{round(change, digits) + 0.0:+.{digits}f}"


def _digits(value: float) -> str:
    """One digit after the point; two below 1%. What is not quite 100 is not rounded to it."""
    if 99.9 < value < 100:
        return "over 99.9"
    return f"{value:.2f}" if value < 1 else f"{value:.1f}"


def bounds(low: float, high: float) -> str:
    """An interval of a ratio in percent, from the smaller change to the larger where both point the
    same way: `80.2 to 88.1%`.
    """
    a, b = percent(low), percent(high)
    more = f"{_digits(b)}% more" if b < MOST else f"over {MOST // 100 + 1} times as much"
    if a >= 0:
        return (
            f"{_digits(a)} to {_digits(b)}% more" if b < MOST else f"{_digits(a)}% more to {more}"
        )
    if b <= 0:
        return f"{_digits(-b)} to {_digits(-a)}% less"
    return f"{_digits(-a)}% less to {more}"


def in_short(ratio: float, low: float, high: float, factors: bool) -> tuple[str, str]:
    """A change and its interval, in percent or as factors: `+5.1%`, `(+2.0 to +8.3%)`; `3.33x`,
    `(3.03 to 3.67)`; "" for what is not known.
    """
    if math.isnan(ratio):
        return "", ""
    if factors:
        change, low_end, high_end = (f"{x:#.3g}".rstrip(".") for x in (ratio, low, high))
        change, interval = f"{change}x", f"({low_end} to {high_end})"
    else:
        change, interval = f"{signed(ratio)}%", f"({signed(low)} to {signed(high)}%)"
    return change, "" if math.isnan(low) else interval
