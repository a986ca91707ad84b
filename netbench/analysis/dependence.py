"""Runs that follow the run before them: how much one run tells of the next, and how much wider
intervals must be for it.

A mean of runs that resemble their neighbours in time knows less than its number of runs says. The
correlation of successive runs is estimated from the residuals of all cells of a pair (each cell's
logarithms less their mean, in order of execution), because ten runs of one cell alone cannot tell 0
from 0.5. What blocks have in common (a machine that warms up) is part of a cell's residuals, and
cancels in a comparison: there the residuals of the paired log differences count, the more so the
more of the spread is common. Campaigns stop by these intervals too (closing.py).

The lag-1 correlation r of n residuals is too small by (1 + 4 rho) / n (Kendall 1954,
doi:10.2307/2332503; Marriott and Pope 1954, doi:10.2307/2332504); `_slope` has it for few runs,
from simulation. What is below 0 counts as 0: no interval is made narrower. For a process of first
order the variance of the mean of n runs is `_ratio` times that of independent ones, and their
sample variance is too small; n / ratio is the effective number of runs. A verdict is drawn by the
same runs that tell how far they follow each other, and falls more often where these happen to hide
it: comparisons allow for a standard error more than an estimate above 0, and at most for twice the
estimate (of equal levels with a correlation of 0.3, 8.0% differed without it). Simulated with
campaigns of 2 to 12 cells of 10 to 30 independent runs, the median interval of a mean is as wide as
Student's, the mean one 3% (12 cells, 20 runs) to 30% (2 cells, 10 runs) wider;
tests/unit/analysis/test_dependence.py simulates coverage, `make bench PARTS=truth` verdicts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import stdtrit

from netbench.analysis.intervals import Interval, Numbers
from netbench.analysis.segments import Segments

FEWEST = 5  # values of a cell: fewer say next to nothing of their order
MOST = 0.8  # what lies above is a trend, which no effective number of runs describes
LEAST_FREEDOM = 2.0
DOUBT = 1.645  # standard errors: what dependence may be left, 95% one-sided


@dataclass(frozen=True)
class Dependence:
    """The correlation of successive runs as estimated, below 0 too. `error`: standard error of the
    estimate, infinite where nothing is known; `series`: how many cells or comparisons it is from;
    `cautious`: intervals allow for more than the estimate.
    """

    estimate: float = 0.0
    error: float = math.inf
    series: int = 0
    cautious: bool = False

    @property
    def correlation(self) -> float:
        """What intervals allow for, 0 to MOST."""
        known = max(self.estimate, 0.0)
        return min(known + min(known, self.error) if self.cautious else known, MOST)

    @property
    def seen(self) -> bool:
        """Whether the estimate is further from 0 than its standard error."""
        return self.estimate > self.error

    @property
    def at_most(self) -> Dependence:
        """The strongest dependence that the estimate leaves room for."""
        if math.isinf(self.error):
            return self
        return Dependence(max(self.estimate, 0.0) + DOUBT * self.error, self.error, self.series)

    def inflation(self, n: int) -> float:
        """By what the standard error of a mean of n values is to be multiplied; 1 or more."""
        return inflation(self.correlation, n)

    def freedom(self, n: int) -> float:
        """Degrees of freedom of that standard error; at most n - 1."""
        return freedom(self.correlation, n)

    def widened(self, interval: Interval, confidence: float) -> Interval:
        """The interval of a mean of runs, with what their dependence adds to its width."""
        n = interval.n
        if self.correlation == 0 or not interval.known:
            return interval
        half = _half_width(self.correlation, n, confidence) * interval.sd
        return Interval(
            n, interval.mean, interval.mean - half, interval.mean + half, interval.sd, half
        )


INDEPENDENT = Dependence()


def _ratio(correlation: float, n: int) -> float:
    """Variance of a mean of n runs over that of independent ones, 1 + 2 sum (1 - k/n) rho^k."""
    rest = 1 - correlation
    return 1 + 2 * correlation / rest * (1 - (1 - correlation**n) / (n * rest))


def inflation(correlation: float, n: int) -> float:
    """As Dependence.inflation; the sample variance, which dependence makes smaller, is made up."""
    if n < 2 or correlation == 0:
        return 1.0
    ratio = _ratio(correlation, n)
    return math.sqrt(ratio * (n - 1) / (n - ratio))


def freedom(correlation: float, n: int) -> float:
    """As Dependence.freedom."""
    return max((n - 1) / _ratio(correlation, n), min(LEAST_FREEDOM, n - 1.0))


@lru_cache(maxsize=4096)
def _half_width(correlation: float, n: int, confidence: float) -> float:
    """Half-width of the interval of a mean of n runs, in standard deviations of a run."""
    t = float(stdtrit(freedom(correlation, n), (1 + confidence) / 2))
    return t * inflation(correlation, n) / math.sqrt(n)


@dataclass(frozen=True)
class Lag:
    """What one series tells of its order: lag-1 correlation (NaN for fewer than FEWEST values, or
    equal ones), number of values, and their variance (of n).
    """

    correlation: float
    n: int
    variance: float


NOTHING = Lag(math.nan, 0, 0.0)


class LagSums:
    """Running sums of one series: what it tells of its order after one more value costs the same at
    any length.
    """

    __slots__ = ("_first", "_last", "_products", "_squares", "_sum", "n")

    def __init__(self, values: Iterable[float] = ()) -> None:
        self.n = 0
        self._first = self._last = self._sum = self._squares = self._products = 0.0
        for value in values:
            self.add(value)

    def add(self, value: float) -> None:
        """Take in the next value in order of execution."""
        if not self.n:
            self._first = value
        value -= self._first  # sums of small numbers, which rounding leaves alone
        self._products += self._last * value
        self._sum += value
        self._squares += value * value
        self._last = value
        self.n += 1

    @property
    def lag(self) -> Lag:
        """As lag_of the values so far."""
        n = self.n
        if n < 2:
            return NOTHING
        mean = self._sum / n
        squares = max(self._squares - n * mean * mean, 0.0)
        if n < FEWEST or not squares > n * (1e-12 * (abs(self._first) + abs(mean))) ** 2:
            return Lag(math.nan, n, squares / n)
        inner = 2 * self._sum - self._last  # the first counts as 0
        products = self._products - mean * inner + (n - 1) * mean * mean
        return Lag(products / squares, n, squares / n)


def lag_of(values: Numbers) -> Lag:
    """What a series tells, in order of execution."""
    return lags_of(values, Segments.of([values]))[0]


def lags_of(values: Numbers, parts: Segments) -> list[Lag]:
    """What each of several series tells, in order of execution."""
    residuals, n = parts.residuals(values), parts.lengths
    squares = parts.sums(residuals**2)
    known = (n >= FEWEST) & (squares > n * (1e-12 * parts.highest(np.abs(values))) ** 2)
    products = residuals.copy()
    products[1:] *= residuals[:-1]
    products[parts.starts] = 0.0
    correlations = np.divide(
        parts.sums(products), squares, out=np.full(len(parts), math.nan), where=known
    )
    variances = squares / np.maximum(n, 1)
    return list(map(Lag, correlations.tolist(), n.tolist(), variances.tolist()))


def relative(values: Numbers, parts: Segments | None = None) -> Numbers:
    """Of each series (of one without `parts`) the logarithms, where all its values are positive;
    else the values: the residuals of cells.
    """
    parts = parts or Segments.of([values])
    positive = (parts.lowest(values) > 0)[parts.at]
    return np.log(values, out=values.astype(float), where=positive)


class Pool:
    """Lag-1 correlations of several series, each freed of its bias and weighted by what it knows.

    Series can be taken out again, so that one that grows by a run costs the same at any length.
    """

    __slots__ = ("_sum", "series", "weight")

    def __init__(self, lags: Iterable[Lag] = ()) -> None:
        """lags: what series tell."""
        self.weight = self._sum = 0.0
        self.series = 0
        for lag in lags:
            self.add(lag.correlation, lag.n)

    def add(self, correlation: float, n: int, sign: int = 1) -> None:
        """Take in the lag-1 correlation of n values; sign -1: take out what was taken in."""
        if math.isnan(correlation):
            return
        slope = _slope(n)
        weight = (slope * n / (n - 2)) ** 2 * (n - 1)  # of independent values, Moran 1948
        self.weight += sign * weight
        self._sum += sign * weight * (correlation + 1 / n) / slope
        self.series += sign

    @property
    def mean(self) -> float:
        """The pooled correlation, below 0 too; 0 where nothing is known."""
        return self._sum / self.weight if self.series else 0.0

    @property
    def error(self) -> float:
        """Its standard error, for independent series."""
        return 1 / math.sqrt(self.weight) if self.series else math.inf

    @property
    def dependence(self) -> Dependence:
        """Of the means of the series."""
        return Dependence(self.mean, self.error, self.series)


def _slope(n: int) -> float:
    """By how much the expected lag-1 correlation of n residuals grows with the true one."""
    return 1 - 4 / (n + 0.7)


class Dependences:
    """How far runs follow each other on one pair of hosts, in cells and in comparisons, by metric.
    What is seen of a cell, or of its comparison, takes the place of what was seen of it before.
    """

    def __init__(self) -> None:
        self._of: dict[str, _Seen] = {}

    def see_cell(self, cell: str, metric: str, lag: Lag) -> None:
        """The residuals of a cell."""
        self._place(metric).see_cell(cell, lag)

    def see_differences(self, cell: str, metric: str, lag: Lag, apart: float = 0.0) -> None:
        """The paired log differences of a cell to its baseline; apart: the sum of the variances of
        the logarithms of both.
        """
        self._place(metric).see_differences(cell, lag, apart)

    def of_cell(self, metric: str) -> Dependence:
        """Of the means of cells."""
        seen = self._of.get(metric)
        return seen.cells.dependence if seen else INDEPENDENT

    def of_ratio(self, metric: str) -> Dependence:
        """Of the means of paired differences."""
        seen = self._of.get(metric)
        return of_comparisons(seen.cells, seen.differences, seen.common) if seen else INDEPENDENT

    def _place(self, metric: str) -> _Seen:
        if metric not in self._of:
            self._of[metric] = _Seen()
        return self._of[metric]


class _Seen:
    """Of one metric."""

    __slots__ = ("_lags", "_shared", "_shares", "cells", "differences")

    def __init__(self) -> None:
        self.cells, self.differences = Pool(), Pool()
        self._lags: dict[tuple[str, bool], Lag] = {}
        self._shared: dict[str, float] = {}
        self._shares = 0.0

    def see_cell(self, cell: str, lag: Lag) -> None:
        self._replace(self.cells, (cell, False), lag)

    def see_differences(self, cell: str, lag: Lag, apart: float) -> None:
        self._replace(self.differences, (cell, True), lag)
        self._shares -= self._shared.pop(cell, 0.0)
        if lag.n > 1 and apart > 0:
            self._shared[cell] = 1 - lag.variance / apart
            self._shares += self._shared[cell]

    def _replace(self, pool: Pool, at: tuple[str, bool], lag: Lag) -> None:
        before = self._lags.get(at, NOTHING)
        if lag != before:
            pool.add(before.correlation, before.n, -1)
            pool.add(lag.correlation, lag.n)
            self._lags[at] = lag

    @property
    def common(self) -> float:
        """The share of the variance that cells have in common with their baselines, 0 to 1: from
        the variance of each paired difference and the sum of those of its two cells.
        """
        return min(max(self._shares / len(self._shared), 0.0), 1.0) if self._shared else 0.0


NONE_SEEN = Dependences()


def of_comparisons(cells: Pool, differences: Pool, common: float) -> Dependence:
    """The dependence of paired differences: from the residuals of cells, as these are more, unless
    blocks have much in common, which cells show and differences do not.

    common: the share of the cells' variance that is common to the blocks.
    """
    share = min(max(2 * common, 0.0), 1.0)
    if not differences.series:
        return INDEPENDENT
    mean = (1 - share) * cells.mean + share * differences.mean
    error = math.hypot((1 - share) * cells.error, share * differences.error)
    return Dependence(mean, error, differences.series, cautious=True)
