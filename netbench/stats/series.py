"""Signs that runs of one cell are not independent draws from one distribution: drift,
autocorrelation, outliers.

Each test's error rate is low on purpose (they are asked of every cell) and simulated in
tests/unit/analysis/test_cautions.py.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort

import numpy as np

from netbench.stats import special
from netbench.stats.intervals import Numbers

ALPHA = 0.002  # chance that a test speaks up about a sound cell
OUTLIER = (
    6.0  # robust standard deviations, for many values; more for few, whose MAD is itself uncertain
)
FEWEST = 8  # values: with fewer a test can't tell anything at ALPHA


def drift(values: Numbers) -> tuple[float, float]:
    """Kendall's tau of the values against their order, and its two-sided p value (normal
    approximation with ties).

    Mann 1945, doi:10.2307/1907187; variance with ties as in Kendall, Rank Correlation Methods,
    1970. p is 1 below FEWEST values.
    """
    n = len(values)
    if n < FEWEST:
        return 0.0, 1.0
    s = _concordance(values)
    ties = np.unique(values, return_counts=True)[1].astype(float)
    variance = (n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    if variance <= 0:
        return 0.0, 1.0
    z = (abs(s) - 1) / math.sqrt(variance) if s else 0.0
    return s / (n * (n - 1) / 2), float(2 * special.ndtr(-z))


def _concordance(values: Numbers) -> int:
    """Over all pairs in their order, +1 where the later value is greater, -1 where it is less."""
    total, before = 0, list[float]()
    for value in values.tolist():
        greater = len(before) - bisect_right(before, value)
        total += bisect_left(before, value) - greater
        insort(before, value)
    return total


def autocorrelation(values: Numbers) -> tuple[float, float]:
    """Lag-1 autocorrelation r and the p of r > 0 (t test of r, Cox 1966); 1 below FEWEST values."""
    n = len(values)
    x = values - values.mean()
    power = float((x * x).sum())
    if n < FEWEST or power == 0:
        return 0.0, 1.0
    r = float((x[1:] * x[:-1]).sum()) / power
    t = (r + 1 / n) / math.sqrt((1 - r * r) / n)
    return r, float(special.stdtr(n - 2, -t)) if t > 0 else 1.0


def outliers(values: Numbers) -> list[int]:
    """Places of values further than OUTLIER x (1 + 10/n) robust deviations (1.4826 MAD) from the
    median.

    They are named, never dropped.
    """
    if len(values) < FEWEST:
        return []
    middle = np.median(values)
    spread = 1.4826 * float(np.median(np.abs(values - middle)))
    if spread == 0:
        return []
    return [
        int(i)
        for i in np.flatnonzero(np.abs(values - middle) > OUTLIER * (1 + 10 / len(values)) * spread)
    ]


def instabilities(values: Numbers) -> list[str]:
    """What is wrong with the order or shape of a cell's values, in words; else empty."""
    signs = []
    tau, p = drift(values)
    if p < ALPHA:
        signs.append(
            f"{'rises' if tau > 0 else 'falls'} over time (Kendall's tau {tau:+.2f}, p {p:.1g})"
        )
    r, p = autocorrelation(values)
    if p < ALPHA:
        signs.append(f"follows the run before it (lag-1 autocorrelation {r:.2f}, p {p:.1g})")
    return signs
