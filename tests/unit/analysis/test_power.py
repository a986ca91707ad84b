"""What a number of runs can show: the noncentral t against scipy's."""

from __future__ import annotations

import math

import pytest
import scipy.stats

from netbench.stats.power import smallest_difference


@pytest.mark.parametrize("n", [2, 3, 4, 10, 30, 200])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 1 - 0.05 / 6, 0.999])
def test_the_smallest_difference_is_scipys(n: int, confidence: float) -> None:
    difference = smallest_difference(0.02, n, confidence)
    limit = scipy.stats.t.ppf((1 + confidence) / 2, n - 1)
    share = scipy.stats.nct.sf(limit, n - 1, difference * math.sqrt(n) / 0.02)
    assert share == pytest.approx(0.8, abs=1e-3)
    assert math.isnan(smallest_difference(0.02, 1, confidence))
