"""The sign-flip test: against scipy's, exactly and by draws, and that it keeps its level."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from netbench.analysis.intervals import Numbers
from netbench.analysis.sign_flip import DRAWS, EXACT, FEWEST_DRAWS, NUMBERS, draws_of, sign_flips


def sign_flip_p(differences: Numbers, seed: int) -> float:
    """Of one comparison."""
    (p,) = sign_flips([differences], seed)
    return p


@pytest.mark.parametrize("n", [2, 3, 7, 12])
def test_it_is_scipys_exact_test(n: int) -> None:
    rng = np.random.default_rng(n)
    for _ in range(10):
        d = rng.normal(0.4, 1, n)
        found = scipy.stats.permutation_test(
            (d,), np.sum, permutation_type="samples", n_resamples=math.inf
        )
        assert sign_flip_p(d, 1) == pytest.approx(found.pvalue)


def test_many_units_are_exact_too_then_drawn() -> None:
    d = np.random.default_rng(3).normal(0.3, 1, EXACT + 1)
    exact, drawn = sign_flip_p(d[:-1], 1), sign_flip_p(d, 1)
    normal = 2 * scipy.stats.norm.sf(abs(d[:-1].sum()) / math.sqrt((d[:-1] ** 2).sum()))
    assert exact == pytest.approx(normal, rel=0.2)
    assert sign_flip_p(d[:-1], 2) == exact
    assert sign_flip_p(d, 2) != drawn == sign_flip_p(d, 1)
    assert drawn == pytest.approx(sign_flip_p(d, 2), abs=0.02)


def test_ends() -> None:
    assert math.isnan(sign_flip_p(np.array([0.1]), 1))
    assert sign_flip_p(np.full(10, 0.1), 1) == 2 / 2**10
    assert sign_flip_p(np.zeros(5), 1) == 1
    assert sign_flip_p(np.array([1.0, -1.0, 1.0, -1.0]), 1) == 1


def test_it_keeps_its_level_whatever_the_distribution() -> None:
    rng, trials = np.random.default_rng(8), 800
    below = sum(sign_flip_p(rng.standard_t(1.5, 10), 1) <= 0.05 for _ in range(trials))
    assert below / trials <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / trials)


def test_many_comparisons_are_tested_as_each_of_them() -> None:
    rng = np.random.default_rng(5)
    long = NUMBERS // DRAWS * 3  # of which not all draws are in memory together
    assert draws_of(long) == DRAWS > draws_of(5000) > draws_of(10**6) == FEWEST_DRAWS
    families = [rng.normal(0.1, 1, n) for n in (1, 5, long, EXACT + 1, EXACT + 1, long, 0)]
    together = sign_flips(families, 3)
    np.testing.assert_array_equal(together, [sign_flip_p(each, 3) for each in families])
    assert len({p for p in together if not math.isnan(p)}) == 5
