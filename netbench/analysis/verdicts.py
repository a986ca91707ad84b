"""Verdicts: intervals of a family of comparisons, corrected for their number, and what they show.

All comparisons of one metric by one factor are one family, corrected by Holm's step-down rule (Holm
1979, doi:10.2307/4615733): the k-th smallest of m p values is tested at alpha / (m - k + 1), and
its interval has that confidence; from the first that fails on, the level stays. So an interval
excludes 1 exactly where Holm's rule rejects; that all intervals of a family hold their ratio at
once is a little less likely than the confidence says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from scipy.special import stdtr, stdtrit

from netbench.analysis.comparison import Comparison
from netbench.analysis.intervals import sequential_confidence
from netbench.analysis.metrics import describe
from netbench.model import Repeat

MOST_RUNS = 10_000  # no larger number of runs is named as what would settle a comparison


def tested(empty: Comparison, d: float, error: float, freedom: float) -> Comparison:
    """The comparison with its ratio and p, from the mean log difference and its standard error;
    freedom: of Student's t.
    """
    t = math.inf if error == 0 and d else 0.0 if error == 0 else d / error
    p = float(2 * stdtr(freedom, -abs(t)))
    return replace(empty, ratio=math.exp(d), p=p, error=error, freedom=freedom)


def corrected(family: Sequence[Comparison], repeat: Repeat) -> list[Comparison]:
    """Give each comparison of one family its interval, verdict and needed n; order is kept."""
    known = sorted(
        (i for i, c in enumerate(family) if not math.isnan(c.p)), key=lambda i: family[i].p
    )
    widened = sequential_confidence(repeat.confidence, repeat.min, repeat.max)
    comparisons = list(family)
    left, failed = len(known), False
    for i in known:
        whole = (
            repeat.confidence if family[i].unit == "boot" else widened
        )  # the number of boots is not chosen by looking
        alpha = (1 - whole) / left
        comparisons[i] = judged(family[i], 1 - alpha)
        failed = failed or family[i].p > alpha
        left -= 0 if failed else 1
    return comparisons


def judged(comparison: Comparison, level: float) -> Comparison:
    """The comparison with its interval at `level`, its verdict, and for an inconclusive one the n
    that would settle it.
    """
    d = math.log(comparison.ratio)
    half = _quantile(comparison.freedom, level) * comparison.error
    low, high = math.exp(d - half), math.exp(d + half)
    known = comparison.better
    better = describe(comparison.metric).better if known is None else known
    verdict = verdict_of(low, high, better, comparison.margin)
    samples = 1 if comparison.against is None else 2
    needed = (
        settling(d, comparison.sd, level, comparison.margin, samples)
        if verdict == "inconclusive"
        else None
    )
    return replace(comparison, low=low, high=high, corrected=level, verdict=verdict, needed=needed)


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


def settling(
    d: float, sd: float, confidence: float, margin: float | None, samples: int = 1
) -> int | None:
    """The smallest n whose interval, were mean and spread as seen, would lie beyond 0 or wholly
    inside the margin.

    sd: of a paired difference, or with two samples the root of the sum of their variances. None
    beyond MOST_RUNS.
    """
    room = abs(d)
    if margin is not None:
        room = (
            max(room, math.log1p(margin) - d, 0.0)
            if d >= 0
            else max(room, d - math.log1p(-margin), 0.0)
        )
    if room <= 0:
        return None
    for n in _candidates():
        if _quantile(samples * (n - 1), confidence) * sd / math.sqrt(n) < room:
            return n
    return None


def _candidates() -> list[int]:
    """2, 3, 4 ... in steps of at most 2%, to MOST_RUNS."""
    n, sizes = 2, []
    while n <= MOST_RUNS:
        sizes.append(n)
        n += max(1, n // 50)
    return sizes
