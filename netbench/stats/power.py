"""What a number of runs can show: the smallest difference that a comparison finds in 80% of the
cases, and how many runs a difference takes.

With n differences of standard deviation s a true difference d makes t = mean / (s / sqrt(n)) a
noncentral t with n - 1 degrees of freedom and noncentrality d sqrt(n) / s. It is found where t
exceeds Student's quantile of the interval; that it is found in the wrong direction is left out,
which is less than one in a million. All differences are of logarithms. Blocks pay for what their
order may show (dependence.py): independent ones as if they varied by `_price` more.
"""

from __future__ import annotations

import math
from bisect import bisect_left

from netbench.stats import special
from netbench.stats.intervals import NAN, t_quantile

POWER = 0.8
MOST_UNITS = 10_000  # no larger number of runs or boots is named


def smallest_difference(
    sd: float, n: int, confidence: float, power: float = POWER, *, blocks: bool = False
) -> float:
    """The smallest true log difference that n differences of deviation `sd` show with `power`, by
    an interval at `confidence`; NaN for n < 2. blocks: the units are blocks, in order.
    """
    if n < 2:
        return NAN
    limit = t_quantile(n - 1, confidence)
    price = _price(n) if blocks else 1.0
    return float(special.nctdtrinc(n - 1, 1 - power, limit)) * sd * price / math.sqrt(n)


def _price(n: int) -> float:
    """By what the interval of n independent blocks is wider for what their order may show, at a
    power of 80%; simulated (tools/bench/truth.py has the power that comes of it).
    """
    return 1 + min(max(0.013 * (n - 11), 0.0), 0.065, 2.6 / n)


def units_needed(
    difference: float, sd: float, confidence: float, power: float = POWER, *, blocks: bool = False
) -> int | None:
    """The smallest n that shows a log difference; None beyond MOST_UNITS."""

    def shows(n: int) -> bool:
        return smallest_difference(sd, n, confidence, power, blocks=blocks) <= difference

    n = 2 + bisect_left(range(2, MOST_UNITS + 1), True, key=shows)
    return n if n <= MOST_UNITS else None


def upper_deviation(sd: float, freedom: int, confidence: float = POWER) -> float:
    """The deviation that the true one is below with `confidence`, were `sd` estimated with so many
    degrees of freedom: a small pilot may have seen too little (Browne 1995,
    doi:10.1002/sim.4780141709).
    """
    return sd * math.sqrt(freedom / float(special.chdtri(freedom, confidence)))
