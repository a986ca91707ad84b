"""Series that lie in one array give what each of them gives alone."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from netbench.stats.intervals import mean_intervals
from netbench.stats.segments import joined

RNG = np.random.default_rng(8)
SERIES = [RNG.normal(size=n) for n in (0, 7, 1, 0, 12, 2, 0)]


def test_what_is_reduced_is_of_each_series() -> None:
    values, parts = joined(SERIES)
    for found, function in (
        (parts.sums(values), np.sum),
        (parts.means(values), np.mean),
        (parts.lowest(values), np.min),
        (parts.highest(values), np.max),
    ):
        assert found == pytest.approx([function(each) if len(each) else 0 for each in SERIES])
    kept = parts.where(values > 0)
    assert kept.lengths.tolist() == [np.count_nonzero(each > 0) for each in SERIES]


def test_no_series_at_all() -> None:
    values, parts = joined([])
    assert not len(parts.sums(values))
    assert mean_intervals(values, parts, 0.95) == []


def test_intervals_are_those_of_each_series() -> None:
    for each, found in zip(SERIES, mean_intervals(*joined(SERIES), 0.9), strict=True):
        assert found.n == len(each)
        assert found.known == (len(each) > 1)
        if found.known:
            plain = scipy.stats.t.interval(0.9, len(each) - 1, each.mean(), scipy.stats.sem(each))
            assert (found.low, found.high) == pytest.approx(plain)
