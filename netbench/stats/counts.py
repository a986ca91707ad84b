"""Intervals of means of counts, such as retransmitted segments: few, whole, never below 0, and
often uneven, so that Student's t covers them too rarely (63% was seen) and reaches below 0.

Where the counts of runs lie no further apart than chance alone puts them (index of dispersion), the
exact Poisson interval (Garwood 1936, Biometrika 28:437) is taken. Else they are negative binomial,
with a variance of mean + mean^2 / k, k by moments: Student's t on the logarithm of the mean. What
is too few or too uneven has none. Simulated for 95% and 5 to 30 runs, means of 0.3 to 100: at least
96% for Poisson, 91% for k >= 1 (tests/unit/analysis/test_counts.py).
"""

from __future__ import annotations

import math
from dataclasses import replace

from scipy.special import gammaincc, gammaincinv

from netbench.stats.intervals import Interval, Numbers, mean_interval

FEWEST = 5  # runs that tell how unevenly counts fall
LIKELY = 0.3  # the probability that Poisson counts lie so far apart, from which on they are Poisson
LEAST_K = 0.5  # k >= 1 is seldom estimated below it, and below k = 0.5 coverage is below 90%


def count_interval(values: Numbers, confidence: float) -> Interval:
    """Mean of the counts of n runs (whole, not negative) with its interval at `confidence`; without
    bounds, and with `why`, where there is none. Errors: as mean_interval.
    """
    plain = mean_interval(values, confidence)
    n, mean = plain.n, plain.mean
    if n < 2:
        return plain
    if n < FEWEST:
        return _without(plain, f"fewer than {FEWEST} runs do not tell how unevenly it is counted")
    variance = plain.sd**2
    dispersion = variance / mean if mean else 1.0
    if gammaincc((n - 1) / 2, (n - 1) * dispersion / 2) > LIKELY:
        return _between(plain, *_poisson(round(mean * n), n, confidence))
    if mean**2 < LEAST_K * (variance - mean):
        return _without(plain, "it is counted too unevenly: a few runs have most of it")
    error = math.sqrt(max(variance, mean) / n) / mean
    half = error * plain.half_width / (plain.sd / math.sqrt(n))
    return _between(plain, mean * math.exp(-half), mean * math.exp(half))


def _poisson(total: int, n: int, confidence: float) -> tuple[float, float]:
    """Garwood's interval of the mean of n counts that sum to `total`."""
    tail = (1 - confidence) / 2
    low = float(gammaincinv(total, tail)) if total else 0.0
    return low / n, float(gammaincinv(total + 1, 1 - tail)) / n


def _between(plain: Interval, low: float, high: float) -> Interval:
    return replace(plain, low=low, high=high, half_width=(high - low) / 2)


def _without(plain: Interval, why: str) -> Interval:
    return replace(plain, low=math.nan, high=math.nan, half_width=math.nan, why=why)
