"""Runs that follow the run before them: how much wider the interval of their mean must be.

What a machine does to a whole block cancels in the differences within blocks (with an
autoregression of 0.9 of the machine a paired t is wrong in 5.1%). What is left, a level whose own
runs follow each other, is estimated from these differences alone, or from a cell's own runs where
nothing is compared: the lag-1 correlation r of n residuals, freed of its bias -(1 + 4 rho) / n
(Kendall 1954, doi:10.2307/2332503). It widens an interval only on evidence: where the estimate
exceeds EVIDENCE times its error squared (0.18 for 30 runs, 0.31 for 20, 1.1 for 10), and else
counts as 0. So independent runs pay for it a few percent of their width at most, and where n runs
cannot tell, a verdict that the estimate would turn is flagged (compare.py). Each series speaks for
itself: what was seen of it stays when others go on. `make bench PARTS=truth` has what this holds.

For a process of first order the variance of a mean of n runs is `_ratio` times that of independent
ones, and their sample variance is too small; n / ratio is the effective number of runs.
"""

from __future__ import annotations

import numpy as np

from netbench.stats.intervals import Interval, Means, Numbers, means_of

FEWEST = 8  # values: fewer say next to nothing of their order
EVIDENCE = 4.0
DOUBT = 1.28  # errors above 0: independent runs show such an estimate in a tenth of cases
SHARED = 0.25  # correlation of the squares of two differences to one baseline, 0.5 squared
MOST = 0.6  # what lies above is a trend, which no effective number of runs describes


def followed(values: Numbers) -> Means:
    """Means along the last axis, of values in order, their errors widened on evidence."""
    estimate, error = correlations(values)
    return widened(means_of(values), np.where(estimate > EVIDENCE * error**2, estimate, 0.0))


def in_common(estimate: Numbers, error: Numbers) -> Numbers:
    """The correlation that the series of a family (the last axis) tell together, where that is a
    sign at all, else 0. They share a baseline, so that more of them tell less than as many of their
    own would.
    """
    weights = 1 / error**2
    total, known = weights.sum(axis=-1), np.count_nonzero(weights, axis=-1)
    mean = (weights * estimate).sum(axis=-1) / np.where(known, total, 1.0)
    sign = mean * np.sqrt(total / (1 + np.maximum(known - 1, 0) * SHARED)) > DOUBT
    return np.where(sign, mean, 0.0)


def widened(plain: Means, rho: Numbers) -> Means:
    """The means of series with these correlations."""
    rho, n = np.clip(rho, 0.0, MOST), max(plain.n, 2)
    ratio = _ratio(rho, n)
    inflation = np.sqrt(ratio * (n - 1) / (n - ratio))
    return Means(plain.n, plain.mean, plain.sd, inflation * plain.error, (n - 1) / ratio)


def correlations(values: Numbers) -> tuple[Numbers, Numbers]:
    """Of each series (the last axis) the lag-1 correlation, below 0 too, and its standard error: 0
    and infinite for fewer than FEWEST values and for equal ones.
    """
    n = values.shape[-1]
    if n < FEWEST:
        return np.zeros(values.shape[:-1]), np.full(values.shape[:-1], np.inf)
    residuals = values - values.mean(axis=-1, keepdims=True)
    squares = (residuals**2).sum(axis=-1)
    known = squares > n * (1e-12 * np.abs(values).max(axis=-1)) ** 2
    products = (residuals[..., 1:] * residuals[..., :-1]).sum(axis=-1)
    r = products / np.where(known, squares, 1.0)
    error = np.sqrt(n) / (n - 4.0)
    return np.where(known, (n * r + 1) / (n - 4.0), 0.0), np.where(known, error, np.inf)


def run_intervals(rows: Numbers, confidence: float) -> list[Interval]:
    """The intervals of the means of rows of runs in order of execution. Two runs have none: it
    would be some thirteen times as wide as they lie apart.
    """
    if rows.shape[-1] == 2:
        return [Interval(2, float(runs.mean()), runs=tuple(runs.tolist())) for runs in rows]
    return followed(rows).intervals(confidence)


def _ratio(rho: Numbers, n: int) -> Numbers:
    """Variance of a mean of n runs over that of independent ones, 1 + 2 sum (1 - k/n) rho^k."""
    rest = 1 - rho
    ratio: Numbers = 1 + 2 * rho / rest * (1 - (1 - rho**n) / (n * rest))
    return ratio
