"""Runs that follow each other: what is estimated, and that intervals and verdicts hold."""

from __future__ import annotations

import math
from itertools import groupby
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.signal import lfilter

from netbench.analysis.cells import cells_of
from netbench.analysis.compare import for_factor
from netbench.analysis.comparison import DEPENDENT
from netbench.analysis.dependence import (
    MOST,
    Dependence,
    LagSums,
    Pool,
    lag_of,
    of_comparisons,
)
from netbench.analysis.intervals import Numbers, mean_interval
from netbench.analysis.load import load
from netbench.model import Repeat
from tests.support.synthetic import Synth

RUNS = 20


def followers(rng: np.random.Generator, shape: tuple[int, ...], correlation: float) -> Numbers:
    """Normal series along the last axis, of deviation 1, each value following the one before."""
    draws = rng.normal(size=shape) * math.sqrt(1 - correlation**2)
    draws[..., 0] /= math.sqrt(1 - correlation**2)
    return np.asarray(lfilter([1.0], [1.0, -correlation], draws, axis=-1))


def frame(cells: Numbers) -> pd.DataFrame:
    """Runs of levels 0, 1, ... of the factor `level`, a row of `cells` each."""
    levels, blocks = (each.ravel() for each in np.indices(cells.shape))
    return pd.DataFrame(
        {
            "pair": "a>b",
            "block": blocks,
            "boot": 0,
            "level": pd.Categorical(levels.astype(str)),
            "throughput": np.exp(0.01 * cells.ravel()),
        }
    )


def compared(cells: Numbers) -> list[tuple[str, tuple[str, ...]]]:
    comparisons = for_factor(
        frame(cells),
        "level",
        "0",
        metric="throughput",
        factors=("level",),
        repeat=Repeat(min=RUNS, max=RUNS),
    )
    return [(c.verdict, c.flags) for c in comparisons]


@pytest.mark.parametrize(
    ("correlation", "trend", "covered", "false"),
    [
        (0.0, 0.0, 0.935, 0.065),
        pytest.param(0.3, 0.0, 0.9, 0.085, marks=pytest.mark.slow),
        (0.5, 0.0, 0.86, 0.12),
        (0, 3, 0.9, 0.065),
    ],
)
def test_intervals_and_verdicts_of_followers_hold(
    correlation: float, trend: float, covered: float, false: float
) -> None:
    """Campaigns of four cells, 1,200 of each kind; bounds are those promised and three standard
    errors. Without an allowance cells cover 76%, and 20% of verdicts are false, at 0.5.
    """
    rng = np.random.default_rng(14)
    trials = followers(rng, (1200, 4, RUNS), correlation) + trend * np.linspace(-1, 1, RUNS)
    held, wrong = 0, 0
    for cells in trials:
        allowed = Pool(map(lag_of, cells)).dependence
        intervals = [allowed.widened(mean_interval(cell, 0.95), 0.95) for cell in cells]
        held += sum(i.low <= 0 <= i.high for i in intervals)
        differences = cells[1] - cells[0]
        both = float(cells[0].var() + cells[1].var())
        common = min(max(1 - float(differences.var()) / both, 0), 1)
        paired = of_comparisons(Pool(map(lag_of, cells)), Pool([lag_of(differences)]), common)
        interval = paired.widened(mean_interval(differences, 0.95), 0.95)
        wrong += not interval.low <= 0 <= interval.high
    assert held / trials[..., 0].size >= covered
    assert wrong / len(trials) <= false


@pytest.mark.parametrize(("cells", "runs", "wider"), [(2, 10, 1.6), (2, 30, 1.12), (12, 10, 1.15)])
def test_independent_runs_pay_little(cells: int, runs: int, wider: float) -> None:
    """The median interval is Student's, or wider by 2%."""
    rng = np.random.default_rng(5)
    found = [Pool(map(lag_of, rng.normal(size=(cells, runs)))).dependence for _ in range(400)]
    plain = mean_interval(rng.normal(size=runs), 0.95)
    widths = [each.widened(plain, 0.95).half_width / plain.half_width for each in found]
    assert np.median(widths) <= 1.02
    assert np.mean(widths) <= wider


def test_the_estimate_is_free_of_bias_at_any_number_of_runs() -> None:
    rng = np.random.default_rng(2)
    for runs in (5, 8, 10, 30):
        for correlation in (0.0, 0.3, 0.5):
            pool = Pool(map(lag_of, followers(rng, (4000, runs), correlation)))
            assert pool.mean == pytest.approx(correlation, abs=0.04)


def test_the_standard_error_of_the_estimate_is_what_independent_runs_lie_apart_by() -> None:
    rng = np.random.default_rng(4)
    for cells, runs in ((1, 5), (1, 10), (3, 20)):
        pools = [Pool(map(lag_of, rng.normal(size=(cells, runs)))) for _ in range(2000)]
        apart = np.std([pool.mean for pool in pools])
        assert pools[0].error == pytest.approx(apart, rel=0.06)


@pytest.mark.parametrize("place", [0.0, 1.0, 9e6])
def test_running_sums_agree_with_the_list(place: float) -> None:
    values = place + followers(np.random.default_rng(3), (40,), 0.5)
    sums = LagSums()
    for n, value in enumerate(values, 1):
        sums.add(value)
        found, whole = sums.lag, lag_of(values[:n])
        assert found.correlation == pytest.approx(whole.correlation, abs=1e-6, nan_ok=True)
        assert found.variance == pytest.approx(whole.variance, abs=1e-6)
    same = LagSums()
    for _ in range(9):
        same.add(7.3)
    assert math.isnan(same.lag.correlation)


@pytest.mark.parametrize(
    ("estimate", "error", "means", "comparisons"),
    [
        (-0.2, 0.1, 0.0, 0.0),
        (0.3, 0.1, 0.3, 0.4),
        (0.3, 0.5, 0.3, 0.6),  # at most twice the estimate
        (0.7, 0.3, 0.7, MOST),
        (0.0, math.inf, 0.0, 0.0),
    ],
)
def test_comparisons_allow_for_more_than_the_estimate(
    estimate: float, error: float, means: float, comparisons: float
) -> None:
    assert Dependence(estimate, error, 3).correlation == means
    assert Dependence(estimate, error, 3, cautious=True).correlation == pytest.approx(comparisons)


def test_what_is_taken_out_of_a_pool_is_gone() -> None:
    pool = Pool([lag_of(np.array([1.0, 2, 3, 4, 6, 5]))])
    before = pool.mean, pool.weight
    pool.add(0.4, 12)
    pool.add(0.4, 12, -1)
    assert (pool.mean, pool.weight) == pytest.approx(before)


@pytest.mark.parametrize(
    "values", [[], [1.0], [1.0, 2, 3], [7.0] * 12], ids=["none", "one", "three", "equal"]
)
def test_nothing_known_widens_nothing(values: list[float]) -> None:
    dependence = Pool([lag_of(np.array(values, dtype=float))]).dependence
    interval = mean_interval(values, 0.95)
    assert not dependence.seen
    assert dependence.widened(interval, 0.95) == interval


def test_width_is_that_of_a_process_of_first_order() -> None:
    """Against the covariance matrix: variance of the mean, and the mean sample variance."""
    n, rho = 12, 0.6
    covariance = rho ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    of_mean = covariance.sum() / n**2
    sample = (n - covariance.sum() / n) / (n - 1)
    assert Dependence(rho).inflation(n) ** 2 == pytest.approx(of_mean / (sample / n))
    assert Dependence(rho).freedom(n) == pytest.approx((n - 1) / (of_mean * n))
    assert Dependence(MOST).freedom(3) == 2


def test_a_verdict_that_dependence_could_turn_is_flagged() -> None:
    """The smallest of the effects that are found, not the largest; none where runs are independent,
    whose residuals here are drawn so that their estimate is 0.
    """
    rng = np.random.default_rng(9)
    noise = followers(rng, (4, RUNS), 0.5)
    noise -= noise.mean(axis=1, keepdims=True)
    levels = np.array([0, 1, 1, 1])[:, None]
    found = [compared(noise + effect * levels)[0] for effect in np.linspace(0, 6, 121)]
    stages = [stage for stage, _ in groupby(found)]
    assert stages == [("inconclusive", ()), ("better", (DEPENDENT,)), ("better", ())]
    effects = np.array([0, 0.3, 1.2, 1.6, 2, 2.5, 3, 20])[:, None]
    clean = rng.normal(size=(len(effects), RUNS))
    clean[:, 1::2] -= 0.3 * clean[:, ::2]
    found = compared(clean - clean.mean(axis=1, keepdims=True) + effects)
    assert not any(flags for _, flags in found)
    assert found[-1] == ("better", ())


def test_what_blocks_have_in_common_widens_means_alone(tmp_path: Path) -> None:
    send = {"send": ("readwrite", "sendfile")}
    result = load(Synth(send, RUNS, spread=0.005, drift=0.2).write(tmp_path / "r"))
    (cell, _), values = cells_of(result), result.ok.groupby("cell")["throughput"]
    plain = mean_interval(next(iter(values))[1].to_numpy(), 0.95)
    assert cell.intervals["throughput"].precision > 2 * plain.precision
    (ratio,) = for_factor(
        result.ok,
        "send",
        "readwrite",
        metric="throughput",
        factors=("send",),
        repeat=Repeat(min=RUNS, max=RUNS),
    )
    assert math.log(ratio.high / ratio.low) / 2 < 0.005
