"""A comparison: the ratio of two means with its interval and verdict, and its sentence: "tso=on
moves 84.1% more than tso=off, 95% interval 80.2 to 88.1%".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from netbench.analysis.intervals import NAN
from netbench.analysis.words import bounds, change, times

VERDICTS = ("better", "worse", "equivalent", "inconclusive")


@dataclass(frozen=True)
class Comparison:
    """One level against the baseline, in one context (levels of the other factors) and pair.

    `ratio`, `low`, `high`: level over baseline; NaN when unknown. `p`: two-sided, of ratio 1,
    uncorrected. `n` pairs of `unit` (`block` or `boot`); where nothing is paired, `n` and `against`
    are the units (`run` or `boot`) of level and of baseline. `error` is the standard error of the
    mean log difference, with `freedom` degrees; `sd` the deviation that it comes from. `needed`:
    total n (of each, if not paired) that would settle an inconclusive one, None when unknown or
    beyond MOST_RUNS. `why`: why there is no interval.
    """

    factor: str
    level: str
    baseline: str
    context: Mapping[str, str]
    pair: str
    metric: str
    n: int
    unit: str = "block"
    ratio: float = NAN
    low: float = NAN
    high: float = NAN
    p: float = NAN
    confidence: float = NAN  # of the family
    corrected: float = NAN  # of this interval alone, after widening and Holm's correction
    sd: float = NAN  # of the log differences
    error: float = NAN
    freedom: float = NAN
    against: int | None = None  # None: paired
    margin: float | None = None
    verdict: str = "inconclusive"
    needed: int | None = None
    why: str = ""
    better: int | None = None  # whether more is; None: as the metric of that name has it

    @property
    def names(self) -> tuple[str, str]:
        """Level and baseline in words, with the factor; those of two results say enough."""
        if self.against is not None:
            return self.level, self.baseline
        return f"{self.factor}={self.level}", f"{self.factor}={self.baseline}"

    @property
    def sentence(self) -> str:
        """The comparison in words, without its context."""
        return _sentence(self)


def _verb(metric: str) -> tuple[str, str]:
    """The words for a metric: (verb, object)."""
    bare, _, meter = metric.partition(".")
    by = f", by {meter}" if meter else ""
    who, _, what = bare.partition("_")
    if bare == "throughput":
        return "moves", ""
    on = {"sender": " on the sender", "receiver": " on the receiver", "system": ""}.get(who, "")
    thing = {
        "cpu": "CPU",
        "demand": "CPU per KB",
        "user_cpu": "user CPU",
        "kernel_cpu": "kernel CPU",
    }.get(what)
    if thing:
        return "uses", f" {thing}{on}{by}"
    return {"retransmits": ("retransmits", ""), "steps": ("makes", " steps")}.get(
        bare, ("has", f" {bare}{by}")
    )


def _sentence(c: Comparison) -> str:
    """One comparison as a sentence, without its context (the other factors' levels)."""
    does, thing = _verb(c.metric)
    level, baseline = c.names
    if math.isnan(c.ratio):
        return f"{level} against {baseline}{' in' + thing if thing else ''}: no comparison, {c.why}"
    if math.isnan(c.low):
        return f"{level} {does} {change(c.ratio)}{thing} than {baseline}, but {c.why}: inconclusive"
    interval = f"{_percent(c)} interval {_short(c)}{', unpaired' if c.against is not None else ''}"
    if c.verdict == "equivalent":
        return (
            f"{level} {does} as much{thing} as {baseline}, within the margin of {c.margin:.2%}:"
            f" {interval}".replace(".00%", "%")
        )
    claim = f"{level} {does} {change(c.ratio)}{thing} than {baseline}, {interval}"
    if c.verdict != "inconclusive":
        return claim + times(c.ratio)
    each = "" if c.against is None else " of each"
    more = (
        f"about {c.needed} {c.unit}s{each} would settle it"
        if c.needed
        else f"more {c.unit}s than can be run would be needed"
    )
    return f"{claim}: inconclusive, {more}"


def _percent(c: Comparison) -> str:
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
