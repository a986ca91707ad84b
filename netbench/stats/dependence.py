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
from netbench.stats.segments import Segments

FEWEST = 8  # values: fewer say next to nothing of their order
EVIDENCE = 4.0
DOUBT = 1.28  # errors above 0: independent runs show such an estimate in a tenth of cases
SHARED = 0.25  # correlation of the squares of two differences to one baseline, 0.5 squared
MOST = 0.6  # what lies above is a trend, which no effective number of runs describes


def followed(values: Numbers, parts: Segments) -> Means:
    """The means of several series in order of execution, their errors widened on evidence."""
    estimate, error = correlations(values, parts)
    return widened(means_of(values, parts), np.where(estimate > EVIDENCE * error**2, estimate, 0.0))


def doubted(values: Numbers, parts: Segments, families: int = 1) -> Means:
    """As followed, widened by what all series of a family (one after the other, of one size) tell
    together, where that is a sign at all: they share a baseline, so that more of them tell less
    than as many of their own would.
    """
    estimate, error = (each.reshape(families, -1) for each in correlations(values, parts))
    weights = 1 / error**2
    total, known = weights.sum(axis=1), np.count_nonzero(weights, axis=1)
    mean = (weights * estimate).sum(axis=1) / np.where(known, total, 1.0)
    sign = mean * np.sqrt(total / (1 + np.maximum(known - 1, 0) * SHARED)) > DOUBT
    rho = np.broadcast_to(np.where(sign, mean, 0.0)[:, None], estimate.shape)
    return widened(means_of(values, parts), rho.ravel())


def widened(plain: Means, rho: Numbers) -> Means:
    """The means of series with these correlations."""
    rho, n = np.clip(rho, 0.0, MOST), np.maximum(plain.n, 2)
    ratio = _ratio(rho, n)
    inflation = np.sqrt(ratio * (n - 1) / (n - ratio))
    return Means(plain.n, plain.mean, plain.sd, inflation * plain.error, (n - 1) / ratio)


def correlations(values: Numbers, parts: Segments) -> tuple[Numbers, Numbers]:
    """Of each series the lag-1 correlation, below 0 too, and its standard error: 0 and infinite
    for fewer than FEWEST values and for equal ones.
    """
    residuals, n = parts.residuals(values), parts.lengths
    squares = parts.sums(residuals**2)
    known = (n >= FEWEST) & (squares > n * (1e-12 * parts.highest(np.abs(values))) ** 2)
    products = residuals.copy()
    products[1:] *= residuals[:-1]
    products[parts.starts] = 0.0
    r = np.divide(parts.sums(products), squares, out=np.zeros(len(parts)), where=known)
    free = np.where(known, n - 4.0, np.inf)
    return (
        np.where(known, (n * r + 1) / free, 0.0),
        np.where(known, np.sqrt(np.maximum(n, 1)) / np.maximum(n - 4.0, 1), np.inf),
    )


def run_intervals(values: Numbers, parts: Segments, confidence: float) -> list[Interval]:
    """The intervals of the means of several series of runs in order of execution. Two runs have
    none: it would be some thirteen times as wide as they lie apart.
    """
    series = np.split(values, np.cumsum(parts.lengths)[:-1])
    return [
        Interval(2, found.mean, runs=tuple(runs.tolist())) if found.n == 2 else found
        for found, runs in zip(followed(values, parts).intervals(confidence), series, strict=False)
    ]


def _ratio(rho: Numbers, n: Numbers) -> Numbers:
    """Variance of a mean of n runs over that of independent ones, 1 + 2 sum (1 - k/n) rho^k."""
    rest = 1 - rho
    ratio: Numbers = 1 + 2 * rho / rest * (1 - (1 - rho**n) / (n * rest))
    return ratio
