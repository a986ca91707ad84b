"""What a number of runs can show: the smallest difference that a comparison finds in 80% of the
cases, how many runs a difference takes, and how builds, boots and blocks are split most cheaply.

With n differences of standard deviation s a true difference d makes t = mean / (s / sqrt(n)) a
noncentral t with n - 1 degrees of freedom and noncentrality d sqrt(n) / s. It is found where t
exceeds Student's quantile of the interval; that it is found in the wrong direction is left out,
which is less than one in a million. All differences are of logarithms. Blocks pay for what their
order may show (dependence.py): independent ones as if they varied by `_price` more.
"""

from __future__ import annotations

import math

from scipy.special import chdtri, nctdtrinc, stdtrit

from netbench.stats.intervals import NAN

POWER = 0.8
MOST_UNITS = 10_000  # no larger number of runs or boots is named
MOST_WITHIN = 100  # blocks a boot
MOST_BOOTS_A_BUILD = 8  # builds that do not seem to differ are the unit all the same


def smallest_difference(
    sd: float, n: int, confidence: float, power: float = POWER, *, blocks: bool = False
) -> float:
    """The smallest true log difference that n differences of deviation `sd` show with `power`, by
    an interval at `confidence`; NaN for n < 2. blocks: the units are blocks, in order.
    """
    if n < 2:
        return NAN
    limit = stdtrit(n - 1, (1 + confidence) / 2)
    price = _price(n) if blocks else 1.0
    return float(nctdtrinc(n - 1, 1 - power, limit)) * sd * price / math.sqrt(n)


def _price(n: int) -> float:
    """By what the interval of n independent blocks is wider for what their order may show, at a
    power of 80%; simulated (tools/bench/truth.py has the power that comes of it).
    """
    return 1 + min(max(0.013 * (n - 11), 0.0), 0.065, 2.6 / n)


def units_needed(
    difference: float, sd: float, confidence: float, power: float = POWER, *, blocks: bool = False
) -> int | None:
    """The smallest n that shows a log difference; None beyond MOST_UNITS."""
    few, many = 1, 2
    while smallest_difference(sd, many, confidence, power, blocks=blocks) > difference:
        if many >= MOST_UNITS:
            return None
        few, many = many, min(2 * many, MOST_UNITS)
    while many - few > 1:
        middle = (few + many) // 2
        if smallest_difference(sd, middle, confidence, power, blocks=blocks) > difference:
            few = middle
        else:
            many = middle
    return many


def upper_deviation(sd: float, freedom: int, confidence: float = POWER) -> float:
    """The deviation that the true one is below with `confidence`, were `sd` estimated with so many
    degrees of freedom: a small pilot may have seen too little (Browne 1995,
    doi:10.1002/sim.4780141709).
    """
    return sd * math.sqrt(freedom / float(chdtri(freedom, confidence)))


def cheapest(
    between: float, within: float, cost: float, cost_within: float, most: int = MOST_WITHIN
) -> int:
    """How many repetitions within one of a level above give the narrowest interval for the time:
    blocks a boot, boots a build. The square root of the ratio of costs times the ratio of variances
    within and between, rounded up (Kalibera and Jones 2013, Rigorous benchmarking in reasonable
    time, doi:10.1145/2491894.2464160, section 6.2). Deviations in one unit; `most` where what is
    above does not differ.
    """
    if between <= 0 or cost_within <= 0:
        return most
    best = math.ceil(math.sqrt(cost / cost_within) * within / between)
    return min(max(best, 1), most)
