"""Comparisons in words: "sendfile moves 84.1% more than readwrite, 95% interval 80.2 to 88.1%"."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from netbench.analysis.compare import Comparison

MOST = 900  # percent that are still said as such
TIMES = 2.0  # from that factor on a ratio is also said as "n times"


def percent(ratio: float) -> float:
    """A ratio as the change in percent: 1.841 -> 84.1, 0.34 -> -66."""
    return (ratio - 1) * 100


def change(ratio: float) -> str:
    """A ratio in words: 1.841 -> `84.1% more`, 0.34 -> `66.0% less`."""
    return f"{_digits(abs(percent(ratio)))}% {'more' if ratio >= 1 else 'less'}"


def times(ratio: float) -> str:
    """A large ratio as a factor: 0.34 -> ` (2.9 times)`, since 1 / 0.34 = 2.9; "" for a
    small one.
    """
    factor = max(ratio, 1 / ratio)
    return f" ({factor:.1f} times)" if factor >= TIMES else ""


def amount(ratio: float) -> str:
    """Both: 0.34 -> `66.0% less (2.9 times)`."""
    return change(ratio) + times(ratio)


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


def verb(metric: str) -> tuple[str, str]:
    """How a metric is said: (verb, object)."""
    bare, _, meter = metric.partition(".")
    by = f", by {meter}" if meter else ""
    who, _, what = bare.partition("_")
    if bare == "throughput":
        return "moves", ""
    on = {"sender": " on the sender", "receiver": " on the receiver", "system": ""}.get(who, "")
    said = {
        "cpu": "CPU",
        "demand": "CPU per KB",
        "user_cpu": "user CPU",
        "kernel_cpu": "kernel CPU",
    }.get(what)
    if said:
        return "uses", f" {said}{on}{by}"
    return {"retransmits": ("retransmits", ""), "steps": ("makes", " steps")}.get(
        bare, ("has", f" {bare}{by}")
    )


def sentence(c: Comparison) -> str:
    """One comparison as a sentence, without its context (the other factors' levels)."""
    does, thing = verb(c.metric)
    if math.isnan(c.ratio):
        return (
            f"{c.level} against {c.baseline}{' in' + thing if thing else ''}: no comparison,"
            f" {c.why}"
        )
    if math.isnan(c.low):
        return (
            f"{c.level} {does} {change(c.ratio)}{thing} than {c.baseline}, but {c.why}:"
            " inconclusive"
        )
    interval = f"{c_percent(c)} interval {_short(c)}{', unpaired' if c.against is not None else ''}"
    if c.verdict == "equivalent":
        return (
            f"{c.level} {does} as much{thing} as {c.baseline}, within the margin of {c.margin:.2%}:"
            f" {interval}".replace(".00%", "%")
        )
    told = f"{c.level} {does} {change(c.ratio)}{thing} than {c.baseline}, {interval}"
    if c.verdict != "inconclusive":
        return told + times(c.ratio)
    each = "" if c.against is None else " of each"
    more = (
        f"about {c.needed} {c.unit}s{each} would settle it"
        if c.needed
        else f"more {c.unit}s than can be run would be needed"
    )
    return f"{told}: inconclusive, {more}"


def c_percent(c: Comparison) -> str:
    """The confidence of a comparison's interval: `95%`, `98.3%`."""
    return f"{c.confidence * 100:.3g}%"


def _short(c: Comparison) -> str:
    """The interval without a direction where the sentence has already said it."""
    text = bounds(c.low, c.high)
    same = (c.low >= 1) == (c.high >= 1)
    return (
        text.removesuffix(" more").removesuffix(" less")
        if same and c.verdict != "equivalent"
        else text
    )
