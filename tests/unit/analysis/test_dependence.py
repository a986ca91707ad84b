"""Runs that follow each other: what is estimated, widened and flagged. More: test_truth.py."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pandas as pd
import pytest

from netbench.model import Repeat
from netbench.read.compare import for_factor
from netbench.stats.comparison import DEPENDENT
from netbench.stats.dependence import EVIDENCE, MOST, correlations, followed, widened
from netbench.stats.intervals import Numbers, means_of
from tools.bench.truth import series

RUNS = 20


def compared(cells: Numbers) -> list[tuple[str, tuple[str, ...]]]:
    """A row of runs each of levels 0, 1, ..., those after the first against it."""
    levels, blocks = (each.ravel() for each in np.indices(cells.shape))
    runs = pd.DataFrame(
        {
            "pair": "a>b",
            "block": blocks,
            "boot": 0,
            "level": pd.Categorical(levels.astype(str)),
            "throughput": np.exp(0.01 * cells.ravel()),
        }
    )
    repeat = Repeat(min=cells.shape[1], max=cells.shape[1])
    asked = {"metric": "throughput", "factors": ("level",), "repeat": repeat}
    return [(c.verdict, c.flags) for c in for_factor(runs, "level", "0", **asked)]  # type: ignore[arg-type]


@pytest.mark.parametrize(("runs", "correlation"), [(10, 0.0), (30, 0.0), (30, 0.3), (60, 0.5)])
def test_the_estimate_is_free_of_bias_and_its_error_no_smaller_than_the_truth(
    runs: int, correlation: float
) -> None:
    found, error = correlations(series(np.random.default_rng(2), (4000, runs), correlation))
    assert found.mean() == pytest.approx(correlation, abs=0.04)
    assert found.std() <= 1.05 * error[0]


@pytest.mark.parametrize("values", [[], [1.0], list(range(7)), [7.0] * 30, [1, 1, 2, 2, 3] * 2])
def test_what_tells_nothing_of_its_order_widens_nothing(values: list[float]) -> None:
    mine = np.array(values, dtype=float)
    assert followed(mine).error == pytest.approx(means_of(mine).error)


def test_each_row_gives_what_it_gives_alone() -> None:
    rising = np.arange(30.0)
    found, _ = correlations(np.stack([rising, rising + 1e6, np.ones(30), rising]))
    r = np.sum((rising - 14.5)[1:] * (rising - 14.5)[:-1]) / np.sum((rising - 14.5) ** 2)
    assert found == pytest.approx([(30 * r + 1) / 26] * 2 + [0.0, (30 * r + 1) / 26])
    assert correlations(rising)[0] == pytest.approx((30 * r + 1) / 26)


def test_only_evidence_widens() -> None:
    values = series(np.random.default_rng(4), (500, 30), 0.2)
    estimate, error = correlations(values)
    wider = followed(values).error > means_of(values).error
    assert (wider == (estimate > EVIDENCE * error**2)).all()
    assert 50 < wider.sum() < 450


def test_width_is_that_of_a_process_of_first_order() -> None:
    """Against the covariance matrix: variance of the mean, and the mean sample variance."""
    n, rho = 12, 0.5
    covariance = rho ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    of_mean = covariance.sum() / n**2
    sample = (n - covariance.sum() / n) / (n - 1)
    plain = means_of(np.arange(float(n)))
    found, most = (widened(plain, np.array([each])) for each in (rho, 0.9))
    assert (found.error / plain.error) ** 2 == pytest.approx(of_mean / (sample / n))
    assert found.freedom == pytest.approx((n - 1) / (of_mean * n))
    assert most.error == widened(plain, np.array([MOST])).error


def test_a_verdict_that_a_sign_could_turn_is_flagged() -> None:
    """The smallest effect that is found; none where runs are independent: their estimate is below 0."""
    rng, runs = np.random.default_rng(9), 12
    noise = np.zeros((2, runs))
    noise[1] = np.repeat(rng.standard_normal(runs // 3), 3) + 0.1 * rng.standard_normal(runs)
    noise[1] -= noise[1].mean()
    levels = np.array([0, 1])[:, None]
    found = [compared(noise + effect * levels)[0] for effect in np.linspace(0, 6, 121)]
    stages = [stage for stage, _ in groupby(found)]
    assert stages == [("inconclusive", ()), ("better", (DEPENDENT,)), ("better", ())]
    effects = np.array([0, 0.3, 1.2, 1.6, 2, 2.5, 3, 20])[:, None]
    clean = rng.normal(size=(len(effects), RUNS))
    clean[:, 1::2] -= 0.5 * clean[:, ::2]
    found = compared(clean - clean.mean(axis=1, keepdims=True) + effects)
    assert not any(flags for _, flags in found)
    assert found[-1] == ("better", ())
