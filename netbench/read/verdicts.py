"""Verdicts: intervals of a family of comparisons, corrected for their number, and what they show.

All comparisons of one metric by one factor are one family, corrected by Holm's step-down rule (Holm
1979, doi:10.2307/4615733): the k-th smallest of m p values is tested at alpha / (m - k + 1), and
its interval has that confidence; from the first that fails on, the level stays. So an interval
excludes 1 exactly where Holm's rule rejects, and the promise is of verdicts: any of a family is
false as seldom as the confidence says. It is not of intervals: all of a family hold their ratio at
once in 90 to 92% of campaigns where single ones do in 95%.

Equivalence is a family of its own, with its own order: two one-sided tests of the margin's ends,
each at the same share of errors (Schuirmann 1987, doi:10.1007/BF01068419). It is shown where the
interval that leaves that share out at either end (90% for one comparison at 95%) lies within the
margin; an equivalent comparison shows that interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from netbench.model import Repeat
from netbench.read.metrics import describe
from netbench.stats import special
from netbench.stats.by_boot import BOOTED
from netbench.stats.comparison import Comparison
from netbench.stats.intervals import Numbers, ratio_confidence, t_quantile

Some = Numbers | float


def tested(empty: Comparison, d: float, error: float, freedom: float) -> Comparison:
    """The comparison with its ratio and p, from the mean log difference and its standard error."""
    p = float(p_different(d, error, freedom))
    return empty.but(ratio=math.exp(d), p=p, error=error, freedom=freedom)


def p_different(d: Some, error: Some, freedom: Some) -> Numbers:
    """Two-sided p of a log difference of 0."""
    return np.asarray(2 * special.stdtr(freedom, -np.abs(_t(d, error))))


def p_outside(d: Some, error: Some, freedom: Some, margin: float) -> Numbers:
    """Twice the larger p of the two one-sided tests that the ratio lies below the margin's upper
    end and above its lower one: at most 1 - confidence exactly where the interval of that
    confidence lies within the margin.
    """
    room = np.minimum(math.log1p(margin) - d, d - math.log1p(-margin))
    return np.asarray(np.minimum(1.0, 2 * special.stdtr(freedom, -_t(room, error))))


def _t(d: Some, error: Some) -> Numbers:
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.divide(d, error)
    return np.where(np.isnan(t), 0.0, t)


def corrected(family: Sequence[Comparison], repeat: Repeat) -> list[Comparison]:
    """Give each comparison of one family its interval and verdict; order is kept."""

    def outside(c: Comparison) -> float:
        if c.margin is None or math.isnan(c.p):
            return math.nan
        return float(p_outside(math.log(c.ratio), c.error, c.freedom, c.margin))

    if not family:
        return []
    fixed = all(c.unit in BOOTED for c in family)  # their number is not chosen by looking
    levels = [
        holm(np.array(p), partial(ratio_confidence, repeat, sides=sides, fixed=fixed)).tolist()
        for sides, p in ((2, [c.p for c in family]), (1, [outside(c) for c in family]))
    ]
    return [
        c if math.isnan(c.p) else judged(c, *mine) for c, *mine in zip(family, *levels, strict=True)
    ]


def holm(p: Numbers, confidence: Callable[[int], float]) -> Numbers:
    """The confidence of the interval that decides each test of families along the last axis, by
    Holm's rule; p: two-sided, NaN for what is not tested; confidence: that of so many tests at
    once.
    """
    size = p.shape[-1]
    order = np.argsort(p, axis=-1)  # NaN last
    tested = np.count_nonzero(~np.isnan(p), axis=-1, keepdims=True)
    levels = np.array([confidence(max(left, 1)) for left in range(size + 1)])
    at = levels[np.maximum(tested - np.arange(size), 0)]
    fails = np.take_along_axis(p, order, axis=-1) > 1 - at
    first = np.where(fails.any(axis=-1), fails.argmax(axis=-1), size)[..., None]
    at = np.take_along_axis(at, np.minimum(np.arange(size), first), axis=-1)
    adjusted = np.empty(p.shape)
    np.put_along_axis(adjusted, order, at, axis=-1)
    return adjusted


def judged(comparison: Comparison, level: float, within: float = math.nan) -> Comparison:
    """The comparison with its verdict, and the interval that shows it: at `level`, or at `within`
    where that lies in the margin.
    """
    if comparison.margin is not None and not math.isnan(within):
        inside = at_level(comparison, within)
        if 1 - comparison.margin <= inside.low and inside.high <= 1 + comparison.margin:
            share = 2 * (1 - comparison.confidence)
            return inside.but(verdict="equivalent", confidence=1 - share)
    shown = at_level(comparison, level)
    known = comparison.better
    better = describe(comparison.metric).better if known is None else known
    if shown.low <= 1 <= shown.high or better == 0:
        return shown.but(verdict="inconclusive")
    return shown.but(verdict="better" if (shown.low > 1) == (better > 0) else "worse")


def at_level(comparison: Comparison, level: float) -> Comparison:
    """The comparison with its interval of confidence `level`."""
    d = math.log(comparison.ratio)
    half = t_quantile(comparison.freedom, level) * comparison.error
    return comparison.but(low=math.exp(d - half), high=math.exp(d + half), corrected=level)


def stands(comparison: Comparison, d: float, error: float, freedom: float) -> bool:
    """Whether a verdict would be the same with this log difference and standard error."""
    c = comparison.but(ratio=math.exp(d), error=error, freedom=freedom)
    within = c.corrected if c.verdict == "equivalent" else math.nan
    again = judged(c, c.corrected, within)
    return again.verdict == comparison.verdict
