"""What a number of runs can show: the smallest difference that a comparison finds in 80% of the
cases.

With n differences of standard deviation s a true difference d makes t = mean / (s / sqrt(n)) a
noncentral t with n - 1 degrees of freedom and noncentrality d sqrt(n) / s. It is found where t
exceeds Student's quantile of the interval; that it is found in the wrong direction is left out,
which is less than one in a million. All differences are of logarithms.
"""

from __future__ import annotations

import math

from netbench.stats import special
from netbench.stats.intervals import NAN, t_quantile

POWER = 0.8


def smallest_difference(sd: float, n: int, confidence: float) -> float:
    """The smallest true log difference that n differences of deviation `sd` show with POWER, by an
    interval at `confidence`; NaN for n < 2.
    """
    if n < 2:
        return NAN
    limit = t_quantile(n - 1, confidence)
    return float(special.nctdtrinc(n - 1, 1 - POWER, limit)) * sd / math.sqrt(n)
