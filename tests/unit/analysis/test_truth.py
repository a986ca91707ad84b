"""The short form of `make bench PARTS=truth`; a row fails 4 errors off its bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from tools.bench import truth

CAMPAIGNS = 1500
SLOW = 200  # of rows whose campaigns are judged one by one
ROWS = {each.what: each for each in truth.table() if each.is_bound}


@pytest.mark.parametrize("what", ROWS)
def test_the_row_is_within_its_bounds(what: str) -> None:
    row = ROWS[what]
    campaigns = SLOW if "fail" in what else CAMPAIGNS
    share, plain = row.shares(campaigns)
    most = min(row.most, 1.0)
    slack = 4 * math.sqrt(0.25 if plain else max(most * (1 - most), 0.02)) / math.sqrt(campaigns)
    assert row.least - slack <= (share / plain if plain else share) <= row.most + slack


def test_a_test_that_promises_nothing_is_seen() -> None:
    """Plain t where levels follow themselves."""
    made = truth.verdicts(
        np.random.default_rng(1), CAMPAIGNS, truth.following_half, n=30, plain=True
    )
    assert made.mean() > 0.2


def test_shares_have_exact_binomial_intervals() -> None:
    for hits, looks in ((0, 20), (3, 40), (40, 40), (271, 4000)):
        exact = scipy.stats.binomtest(hits, looks).proportion_ci(0.95)
        assert truth.binomial(hits, looks) == pytest.approx((exact.low, exact.high))
