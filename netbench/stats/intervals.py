"""Confidence intervals of a mean: Student's t, widened for the rule that stops when the interval is
narrow enough.

Why widen. A cell is looked at after each block and closes at the first look whose interval is
narrow enough. That stops it when its spread happens to look small, so a plain 95% interval of a
stopped cell covers the mean less than 95% of the time (known since Anscombe 1953, Chow and Robbins
1965, doi:10.1214/aoms/1177700156). Simulated for normal runs, the worst over all spreads: 90% with
3 runs at least, 92% with 5, 93.5% with 10. `sequential_confidence` makes it up;
tests/unit/analysis/test_intervals.py simulates that it does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from netbench.model import Repeat
from netbench.stats import special

Numbers = npt.NDArray[np.float64]
NAN = math.nan
_WIDENING = 3.2, 1.5  # see sequential_confidence
FEWEST_COUNTS = 5  # runs that tell how unevenly counts fall
# The probability that Poisson counts lie so far apart, from which on they are Poisson.
POISSON = 0.3
LEAST_K = 0.5  # k >= 1 is seldom estimated below it, and below k = 0.5 coverage is below 90%


class Interval(NamedTuple):
    """A mean of `n` values with its interval `low..high`, standard deviation `sd` (n-1) and
    `half_width`, all in the values' unit.

    What can't be known is NaN: everything but `n` for n = 0; `sd`, `low`, `high` and `half_width`
    for n = 1. `why`: why there is no interval, where n is not the reason. `runs`: all values, where
    they are too few for one.
    """

    n: int
    mean: float = NAN
    low: float = NAN
    high: float = NAN
    sd: float = NAN
    half_width: float = NAN
    why: str = ""
    runs: tuple[float, ...] = ()

    @property
    def precision(self) -> float:
        """Half-width over the mean (a fraction.

        Netperf's -I width is twice that); NaN without interval, infinite at mean 0 with spread.
        """
        if math.isnan(self.half_width):
            return NAN
        if self.mean == 0:
            return 0.0 if self.half_width == 0 else math.inf
        return self.half_width / abs(self.mean)

    @property
    def known(self) -> bool:
        """Whether there is an interval at all."""
        return not math.isnan(self.half_width)

    @property
    def skewed(self) -> bool:
        """Whether one bound is further from the mean than the other."""
        above, below = self.high - self.mean, self.mean - self.low
        return above >= 0 and below >= 0 and not math.isclose(above, below, rel_tol=1e-6)

    def times(self, factor: float) -> Interval:
        """The same interval in another unit; factor > 0."""
        mean, low, high, sd, half = (
            x * factor for x in (self.mean, self.low, self.high, self.sd, self.half_width)
        )
        return self._replace(mean=mean, low=low, high=high, sd=sd, half_width=half)

    def within(self, lowest: float, highest: float, seen: tuple[float, float]) -> Interval:
        """The interval of what cannot lie outside `lowest` to `highest`; seen: the least and the
        greatest value.

        Where a bound lies outside, t is taken on the logarithm of the mean (on its logit, with two
        ends), by the delta method: simulated, that covers as often as the plain interval or more.
        Such a bound is no further out than the outermost value, or Student's bound. It needs values
        inside; where a meter's error reaches outside, the bound is cut.
        `half_width` stays that of Student's t.
        """
        if not self.known or (lowest <= self.low and self.high <= highest):
            return self
        inside = lowest <= seen[0] and seen[1] <= highest and lowest < self.mean < highest
        if not inside:
            low, high = (min(max(x, lowest), highest) for x in (self.low, self.high))
            return self._replace(low=low, high=high)
        above, below = self.mean - lowest, highest - self.mean
        if math.isinf(below):
            scale = math.exp(-self.half_width / above)
            high = min(lowest + above / scale, max(self.high, seen[1]))
            return self._replace(low=lowest + above * scale, high=high)
        width = highest - lowest
        centre, half = math.log(above / below), self.half_width * width / (above * below)
        low, high = (
            lowest + width * float(special.expit(x)) for x in (centre - half, centre + half)
        )
        return self._replace(low=low, high=high)


def sequential_confidence(confidence: float, minimum: int, maximum: int) -> float:
    """The confidence to compute with so that intervals of cells that stop early cover the mean as
    often as `confidence` says.

    With `minimum` = `maximum` nothing is chosen and it stays as it is. Otherwise the error share a
    = 1 - confidence is multiplied by 1 - w / (m + w) * (1 - (m / maximum)^1.5), m the number of
    values at the first look, w = 3.2 * log10(1 / a): at 95% and 30 values at most 0.43 for 3, 0.58
    for 5, 0.76 for 10. Rarer errors need more: at 99.9% 0.39 for 5. The form is ours: the simplest
    that keeps the simulated error, the worst over all ratios of spread to precision, between 0.7
    and 1.2 of the nominal one from 80 to 99.9%, first looks at 2 to 20 and `maximum` to 100. (Where
    `maximum` is only two or three times `minimum` it is 0.6 at 99.9%: wider than need be.)
    """
    if maximum <= minimum:
        return confidence
    first = max(minimum, 2)  # one value has no interval to be tempted by
    error = 1 - confidence
    scale, power = _WIDENING
    drawn = scale * math.log10(1 / error)
    looks = 1 - math.pow(first / max(maximum, first), power)
    return 1 - error * (1 - drawn / (first + drawn) * looks)


def verdict_confidence(confidence: float, minimum: int, maximum: int) -> float:
    """The confidence of an interval that is looked at after each run from `minimum` to `maximum`,
    and ends the runs once it shows something: such intervals all hold their ratio at once as often
    as `confidence` says.

    The error share a = 1 - confidence is divided by 1 + (0.5 + 1.05 ln(1 / a)) ln(max / min): looks
    are as many as the runs doubled, the more so the further out the limit lies (the form of
    Siegmund, Sequential Analysis, 1985, section 4.3). Both numbers are simulated for Student's t
    with normal runs, first looks at 2 to 20, `maximum` to 100, shares of 0.8 to 10%: at most the
    nominal share is wrong at any look, and three quarters of it or more.
    """
    if maximum <= minimum:
        return confidence
    share, first = 1 - confidence, max(minimum, 2)
    return 1 - share / (1 + (0.5 + 1.05 * math.log(1 / share)) * math.log(maximum / first))


def ratio_confidence(
    repeat: Repeat, family: float = 1, *, sides: int = 2, fixed: bool = False
) -> float:
    """The confidence of the widest interval in a family of so many comparisons over blocks. sides:
    1 where a test is of one end (equivalence), fixed: nobody chose the number of units by looking.
    """
    level = 1 - (1 - repeat.confidence) / family * (2 / sides)
    if fixed:
        return level
    widen = verdict_confidence if repeat.until == "verdict" else sequential_confidence
    return widen(level, repeat.min, repeat.max)


@lru_cache(maxsize=4096)
def t_quantile(freedom: float, confidence: float) -> float:
    """Two-sided quantile of Student's t."""
    return float(special.stdtrit(freedom, (1 + confidence) / 2))


def mean_interval(values: Sequence[float] | Numbers, confidence: float) -> Interval:
    """Arithmetic mean of `values` (one unit, any n) with Student's t interval at `confidence` (a
    fraction). Nothing is dropped.

    Errors: ValueError for NaN or infinite values: the caller leaves missing values out, since it
    knows why they are missing.
    """
    return means_of(np.asarray(values, dtype=float)).interval(confidence)


@dataclass(frozen=True, eq=False)
class Means:
    """Of a series of n values, or of each row of several: mean, standard deviation (n-1), and the
    standard error of the mean with its degrees of freedom. Without meaning below 2 values.
    """

    n: int
    mean: Numbers
    sd: Numbers
    error: Numbers
    freedom: Numbers

    def half_widths(self, confidence: float) -> Numbers:
        """Of Student's t intervals."""
        quantiles = special.stdtrit(np.maximum(self.freedom, 1), (1 + confidence) / 2)
        return np.asarray(quantiles * self.error)

    def intervals(self, confidence: float) -> list[Interval]:
        """Student's t interval of each row."""
        if self.n < 2:
            return [Interval(self.n, mean if self.n else NAN) for mean in self.mean.tolist()]
        columns = (self.mean, self.sd, self.half_widths(confidence))
        return [
            Interval(self.n, mean, mean - half, mean + half, sd, half)
            for mean, sd, half in zip(*(each.tolist() for each in columns), strict=True)
        ]

    def interval(self, confidence: float) -> Interval:
        """Student's t interval of one series."""
        columns = (self.mean, self.sd, self.error, self.freedom)
        return Means(self.n, *map(np.atleast_1d, columns)).intervals(confidence)[0]


def means_of(values: Numbers) -> Means:
    """The means along the last axis, of independent values. Errors: ValueError for NaN or inf."""
    n = values.shape[-1]
    means = values.sum(axis=-1, keepdims=True) / max(n, 1)
    if not np.isfinite(means).all():
        raise ValueError("cannot compute a mean: some values are not finite")
    sds = np.sqrt(((values - means) ** 2).sum(axis=-1) / max(n - 1, 1))
    return Means(n, means[..., 0], sds, sds / math.sqrt(max(n, 1)), np.full_like(sds, n - 1.0))


def welch_error(a: Numbers, b: Numbers) -> tuple[float, float]:
    """The standard error of the difference of two means of independent values, two or more each,
    and its degrees of freedom (Welch 1947, doi:10.1093/biomet/34.1-2.28).
    """
    of_a, of_b = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
    whole, below = of_a + of_b, of_a**2 / (len(a) - 1) + of_b**2 / (len(b) - 1)
    return math.sqrt(whole), whole**2 / below if below > 0 else len(a) + len(b) - 2.0


def count_interval(values: Numbers, confidence: float) -> Interval:
    """Mean of the counts of n runs (whole, not negative) with its interval at `confidence`; without
    bounds, and with `why`, where there is none. Errors: as mean_interval.

    Counts, such as retransmitted segments, are few, whole, never below 0, and often uneven, so that
    Student's t covers them too rarely (63% was seen) and reaches below 0. Where those of runs lie
    no further apart than chance alone puts them (index of dispersion), the exact Poisson interval
    (Garwood 1936, Biometrika 28:437) is taken. Else they are negative binomial, with a variance of
    mean + mean^2 / k, k by moments: Student's t on the logarithm of the mean. What is too few or
    too uneven has none. Simulated for 95% and 5 to 30 runs, means of 0.3 to 100: at least 96% for
    Poisson, 91% for k >= 1 (tests/unit/analysis/test_intervals.py).
    """
    plain = mean_interval(values, confidence)
    n, mean = plain.n, plain.mean
    if n < 2:
        return plain

    def bounded(low: float = NAN, high: float = NAN, why: str = "") -> Interval:
        return plain._replace(low=low, high=high, half_width=(high - low) / 2, why=why)

    if n < FEWEST_COUNTS:
        why = f"fewer than {FEWEST_COUNTS} runs do not tell how unevenly it is counted"
        return bounded(why=why)
    variance = plain.sd**2
    dispersion = variance / mean if mean else 1.0
    if special.gammaincc((n - 1) / 2, (n - 1) * dispersion / 2) > POISSON:
        total, tail = round(mean * n), (1 - confidence) / 2
        low = float(special.gammaincinv(total, tail)) if total else 0.0
        return bounded(low / n, float(special.gammaincinv(total + 1, 1 - tail)) / n)
    if mean**2 < LEAST_K * (variance - mean):
        return bounded(why="it is counted too unevenly: a few runs have most of it")
    error = math.sqrt(max(variance, mean) / n) / mean
    half = error * plain.half_width / (plain.sd / math.sqrt(n))
    return bounded(mean * math.exp(-half), mean * math.exp(half))
