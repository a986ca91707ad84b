"""Verdicts: intervals of a family of comparisons, corrected for their number, and what they show.

All comparisons of one metric by one factor are one family, corrected by Holm's step-down rule (Holm
1979, doi:10.2307/4615733): the k-th smallest of m p values is tested at alpha / (m - k + 1), and
its interval has that confidence; from the first that fails on, the level stays. So an interval
excludes 1 exactly where Holm's rule rejects; that all intervals of a family hold their ratio at
once is a little less likely than the confidence says.

Equivalence is a family of its own, with its own order: two one-sided tests of the margin's ends
(Schuirmann 1987, doi:10.1007/BF01068419), whose larger p counts. Its Holm level is the confidence
at which an interval must lie within the margin; an equivalent comparison shows that interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import chdtri, stdtr, stdtrit

from netbench.analysis.boots import BOOTED
from netbench.analysis.comparison import CAMPAIGN, Comparison
from netbench.analysis.intervals import ratio_confidence
from netbench.analysis.metrics import describe
from netbench.model import Repeat

FIXED = (*BOOTED, CAMPAIGN)  # units whose number nobody chooses by looking at results
MOST_RUNS = 10_000  # no larger number of runs is named as what would reach a width
ENOUGH_FREEDOM = 25  # of a deviation from which a number of runs is told
RANGE = (0.05, 0.95)  # upper tails of chi-squared: the range of a deviation that holds 90%
ALIKE = 1.5  # deviations within this factor are pooled
SHARED = 0.25  # correlation of the variances of two differences to one baseline, 0.5 squared


def tested(empty: Comparison, d: float, error: float, freedom: float) -> Comparison:
    """The comparison with its ratio and p, from the mean log difference and its standard error;
    freedom: of Student's t.
    """
    t = math.inf if error == 0 and d else 0.0 if error == 0 else d / error
    p = float(2 * stdtr(freedom, -abs(t)))
    return empty.but(ratio=math.exp(d), p=p, error=error, freedom=freedom)


def corrected(family: Sequence[Comparison], repeat: Repeat) -> list[Comparison]:
    """Give each comparison of one family its interval, verdict and needed n; order is kept."""
    different = _levels(family, [c.p for c in family], repeat)
    equivalent = _levels(family, [_p_outside(c) for c in family], repeat)
    comparisons = [
        c if math.isnan(c.p) else judged(c, different[i], equivalent.get(i))
        for i, c in enumerate(family)
    ]
    spreads = _Spreads(comparisons)
    return [
        c.but(needed=needed) if (needed := _needed(c, spreads, repeat)) else c for c in comparisons
    ]


def _levels(family: Sequence[Comparison], p: Sequence[float], repeat: Repeat) -> dict[int, float]:
    """The confidence of the interval that decides each test, by Holm's rule; p: two-sided, NaN for
    what is not tested.
    """
    levels: dict[int, float] = {}
    known = sorted((i for i, each in enumerate(p) if not math.isnan(each)), key=lambda i: p[i])
    left, failed = len(known), False
    for i in known:
        by_boot = family[i].unit in FIXED  # their number is not chosen by looking
        levels[i] = (
            1 - (1 - repeat.confidence) / left if by_boot else ratio_confidence(repeat, left)
        )
        failed = failed or p[i] > 1 - levels[i]
        left -= 0 if failed else 1
    return levels


def _p_outside(c: Comparison) -> float:
    """Twice the larger p of the two one-sided tests that the ratio lies below the margin's upper
    end and above its lower one: at most 1 - confidence exactly where the interval of that
    confidence lies within the margin. NaN without a margin.
    """
    if c.margin is None or math.isnan(c.p):
        return math.nan
    d = math.log(c.ratio)
    room = min(math.log1p(c.margin) - d, d - math.log1p(-c.margin))
    if c.error == 0:
        return 0.0 if room >= 0 else 1.0
    return float(min(1.0, 2 * stdtr(c.freedom, -room / c.error)))


def judged(comparison: Comparison, level: float, within: float | None = None) -> Comparison:
    """The comparison with its verdict, and the interval that shows it: at `level`, or at `within`
    where it is the interval at that confidence which says whether the ratio lies in the margin.
    """
    shown = at_level(comparison, level)
    if within is None:
        return shown
    inside = at_level(comparison, within)
    if "equivalent" not in (shown.verdict, inside.verdict):
        return shown
    return inside


def at_level(comparison: Comparison, level: float) -> Comparison:
    """The comparison with its interval of confidence `level`, and what that alone shows."""
    d = math.log(comparison.ratio)
    half = _quantile(comparison.freedom, level) * comparison.error
    low, high = math.exp(d - half), math.exp(d + half)
    known = comparison.better
    better = describe(comparison.metric).better if known is None else known
    verdict = verdict_of(low, high, better, comparison.margin)
    return comparison.but(low=low, high=high, corrected=level, verdict=verdict)


def could_turn(comparison: Comparison, error: float, freedom: float) -> bool:
    """Whether a verdict would be another one with this standard error."""
    wider = at_level(comparison.but(error=error, freedom=freedom), comparison.corrected)
    return wider.verdict != comparison.verdict


def _quantile(freedom: float, confidence: float) -> float:
    """Two-sided quantile of Student's t."""
    return float(stdtrit(freedom, (1 + confidence) / 2))


def verdict_of(low: float, high: float, better: int, margin: float | None) -> str:
    """One of VERDICTS for a ratio's interval.

    `better`: 1 when more is better, -1 when less is; with 0 a difference is inconclusive.
    """
    if margin is not None and 1 - margin <= low and high <= 1 + margin:
        return "equivalent"
    if low <= 1 <= high or better == 0:
        return "inconclusive"
    return "better" if (low > 1) == (better > 0) else "worse"


def _needed(c: Comparison, family: _Spreads, repeat: Repeat) -> tuple[int, int] | None:
    """The range of n at which an inconclusive comparison's interval is as narrow as asked; None
    where it is already, or where the data cannot tell: with fewer than ENOUGH_FREEDOM degrees of
    freedom, boots or builds as units, or beyond MOST_RUNS.
    """
    if c.verdict != "inconclusive" or math.isnan(c.low) or c.unit in FIXED or not c.sd > 0:
        return None
    sd, freedom = family.pooled(c)
    room = math.log1p(repeat.precision)
    if freedom < ENOUGH_FREEDOM or _quantile(c.freedom, c.corrected) * c.error <= room:
        return None
    inflation = c.error * math.sqrt(c.n) / c.sd if c.against is None else 1.0
    samples = 1 if c.against is None else 2
    spreads = (sd * inflation * math.sqrt(freedom / chdtri(freedom, q)) for q in RANGE)
    low, high = (reaching(spread, c.corrected, room, samples) for spread in spreads)
    return (max(low, c.n + 1), high) if low and high and high > c.n else None


class _Spreads:
    """The deviations of a family of comparisons."""

    def __init__(self, family: Sequence[Comparison]) -> None:
        several = [c for c in family if c.n > 1]
        self._unit = np.array([c.unit for c in several])
        self._sd, self._freedom = np.array([(c.sd, c.freedom) for c in several]).reshape(-1, 2).T

    def pooled(self, c: Comparison) -> tuple[float, float]:
        """The deviation of a unit's log difference and its degrees of freedom, from all comparisons
        with much the same deviation. Those share their baseline, so that they count less.
        """
        alike = (c.sd / ALIKE < self._sd) & (self._sd < c.sd * ALIKE) & (self._unit == c.unit)
        free, sd = self._freedom[alike], self._sd[alike]
        together = float(free.sum())
        variance = float((free * sd**2).sum()) / together
        return math.sqrt(variance), together / (1 + (len(sd) - 1) * SHARED)


def reaching(sd: float, confidence: float, room: float, samples: int = 1) -> int | None:
    """The smallest n whose interval has a half-width (of the log ratio) of at most `room`.

    sd: of a paired difference, or with two samples the root of the sum of their variances. None
    beyond MOST_RUNS.
    """
    for n in _candidates():
        if _quantile(samples * (n - 1), confidence) * sd / math.sqrt(n) <= room:
            return n
    return None


def _candidates() -> list[int]:
    """2, 3, 4 ... in steps of at most 2%, to MOST_RUNS."""
    n, sizes = 2, []
    while n <= MOST_RUNS:
        sizes.append(n)
        n += max(1, n // 50)
    return sizes
