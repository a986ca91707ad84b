"""The sign-flip test: a second opinion on a comparison that assumes no distribution.

If level and baseline are equal, each unit's log difference is as likely to have the other sign
(blocks are in random order). p is the share of all 2^n choices of signs whose sum is at least as
far from 0 as the one seen: exact whatever the distribution, as long as differences are independent
(Fisher 1935, The Design of Experiments, section 21). It cannot be below 2^(1-n).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from netbench.analysis.intervals import NAN, Numbers

EXACT = 28
"""Up to so many units all choices are counted; beyond, some of them are drawn."""
DRAWS = 10_000
FEWEST_DRAWS = 1_000
SIGNS = 1000 * DRAWS  # in all: beyond 1,000 units there are fewer draws
NUMBERS = 1 << 20  # of draws in memory at the same time
_EQUAL = 1e-9  # sums that differ by less of the sum seen are equal but for rounding


def draws_of(n: int) -> int:
    """How many choices of signs are drawn for n units."""
    return min(DRAWS, max(FEWEST_DRAWS, SIGNS // n))


def sign_flips(families: Sequence[Numbers], seed: int) -> list[float]:
    """Two-sided p of each comparison's log differences, one a unit; NaN for fewer than two. seed:
    of the draws where there are more than EXACT, which comparisons of as many units share.
    """
    found = [_exact(each) if len(each) <= EXACT else NAN for each in families]
    for n in {len(each) for each in families if len(each) > EXACT}:
        which = [at for at, each in enumerate(families) if len(each) == n]
        together = np.column_stack([families[at] for at in which])
        sums = together.sum(axis=0)
        seen = np.array([_seen(families[at]) for at in which])
        above, below = (sums + seen) / 2, (sums - seen) / 2
        rng, farther, every = np.random.default_rng(seed), np.zeros(len(which)), draws_of(n)
        for draws in np.diff([*range(0, every, max(1, NUMBERS // n)), every]):
            bits = rng.integers(0, 256, (draws, -(-n // 8)), dtype=np.uint8)
            kept = np.unpackbits(bits, axis=1, count=n).astype(float)
            positive = kept @ together  # sums with the other signs: twice that, less all
            farther += np.count_nonzero((positive >= above) | (positive <= below), axis=0)
        for at, count in zip(which, farther.tolist(), strict=True):
            found[at] = (1 + count) / (1 + every)
    return found


def _exact(differences: Numbers) -> float:
    n = len(differences)
    if n < 2:
        return NAN
    seen = _seen(differences)
    # every sum is one of the first half's and one of the second's: 2^(n/2) searches in place of 2^n
    first, second = (np.sort(_sums(part)) for part in np.split(differences, [n // 2]))
    above = len(second) - np.searchsorted(second, seen - first, side="left")
    below = np.searchsorted(second, -seen - first, side="right")
    count = int(above.sum() + below.sum()) if seen > 0 else 2**n
    return count / float(2**n)


def _seen(differences: Numbers) -> float:
    return abs(float(differences.sum())) * (1 - _EQUAL)


def _sums(values: Numbers) -> Numbers:
    """The sums of all 2^n choices of signs."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    return sums
