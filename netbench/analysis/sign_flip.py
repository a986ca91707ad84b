"""The sign-flip test: a second opinion on a comparison that assumes no distribution.

If level and baseline are equal, each unit's log difference is as likely to have the other sign
(blocks are in random order). p is the share of all 2^n choices of signs whose sum is at least as
far from 0 as the one seen: exact whatever the distribution, as long as differences are independent
(Fisher 1935, The Design of Experiments, section 21). It cannot be below 2^(1-n).
"""

from __future__ import annotations

import numpy as np

from netbench.analysis.intervals import NAN, Numbers

EXACT = 28
"""Up to so many units all choices are counted; beyond, DRAWS of them are drawn."""
DRAWS = 10_000
_EQUAL = 1e-9  # sums that differ by less of the sum seen are equal but for rounding


def sign_flip_p(differences: Numbers, seed: int) -> float:
    """Two-sided p of the log differences, one a unit; NaN for fewer than two. seed: of the draws
    where there are more than EXACT.
    """
    n = len(differences)
    if n < 2:
        return NAN
    seen = abs(float(differences.sum())) * (1 - _EQUAL)
    if n > EXACT:
        bits = np.random.default_rng(seed).integers(0, 2, (DRAWS, n), dtype=np.int8)
        drawn = np.abs((2.0 * bits - 1) @ differences)
        return float((1 + (drawn >= seen).sum()) / (1 + DRAWS))
    # every sum is one of the first half's and one of the second's: 2^(n/2) searches in place of 2^n
    first, second = (np.sort(_sums(part)) for part in np.split(differences, [n // 2]))
    above = len(second) - np.searchsorted(second, seen - first, side="left")
    below = np.searchsorted(second, -seen - first, side="right")
    count = int(above.sum() + below.sum()) if seen > 0 else 2**n
    return count / float(2**n)


def _sums(values: Numbers) -> Numbers:
    """The sums of all 2^n choices of signs."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    return sums
