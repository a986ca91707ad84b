"""Intervals, and the rule that stops a cell: by simulation, and by scipy.stats."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from netbench.model import Repeat
from netbench.read.cells import cells_of
from netbench.read.load import load
from netbench.read.metrics import METRICS
from netbench.report.numbers import words
from netbench.stats.closing import Assessment, Standing
from netbench.stats.intervals import (
    count_interval,
    mean_interval,
    sequential_confidence,
    t_quantile,
    verdict_confidence,
)
from tests.support.synthetic import Record, Synth


def assess(values: Mapping[str, Sequence[float]], repeat: Repeat) -> Assessment:
    """Of runs of one boot."""
    by_block = {name: dict(enumerate(each)) for name, each in values.items()}
    return Standing({}, by_block).alone(repeat)


def test_one_value_has_no_interval() -> None:
    found = mean_interval([3.0], 0.95)
    assert found.mean == 3.0
    assert math.isnan(found.half_width)
    assert math.isnan(found.precision)
    assert not found.known
    assert mean_interval([], 0.95).n == 0


def test_values_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        mean_interval([1.0, math.nan], 0.95)


def test_a_fixed_number_of_runs_is_not_widened() -> None:
    assert sequential_confidence(0.95, 10, 10) == 0.95
    assert sequential_confidence(0.95, 3, 30) > sequential_confidence(0.95, 10, 30) > 0.95


def errors(minimum: int, maximum: int, widened: bool, confidence: float, cells: int) -> float:
    """The worst share, over ratios of spread to precision, of misses, over the nominal share."""
    z = np.random.default_rng([minimum, maximum]).normal(size=(cells, maximum))
    n = np.arange(1, maximum + 1)
    mean = np.cumsum(z, axis=1) / n
    squares = np.cumsum(z**2, axis=1) - n * mean**2
    error = np.sqrt(np.maximum(squares, 1e-12) / np.maximum(n - 1, 1) / n)[:, minimum - 1 :]
    level = sequential_confidence(confidence, minimum, maximum) if widened else confidence
    quantiles = np.array([t_quantile(int(k) - 1, level) for k in n[minimum - 1 :]])
    half, missed = error * quantiles, np.abs(mean[:, minimum - 1 :]) > error * quantiles
    widths = quantiles / np.sqrt(n[minimum - 1 :])
    worst = 0.0
    for asked in np.geomspace(widths[-1], widths[0] * 1.1, 8):
        stop = half <= asked  # a precision that is this many standard deviations
        stop[:, -1] = True
        worst = max(worst, float(missed[np.arange(cells), stop.argmax(axis=1)].mean()))
    return worst / (1 - confidence)


@pytest.mark.parametrize("minimum", [3, 5, 10])
@pytest.mark.parametrize(
    ("confidence", "cells"), [(0.8, 4000), (0.9, 8000), (0.95, 8000), (0.99, 20_000)]
)
def test_the_error_of_stopped_intervals(minimum: int, confidence: float, cells: int) -> None:
    noise = 3 * math.sqrt(1 / (cells * (1 - confidence)))
    assert 0.7 - noise <= errors(minimum, 30, True, confidence, cells) <= 1.2 + noise
    if minimum == 5 and confidence >= 0.95:  # or the widening would be for nothing
        assert errors(minimum, 30, False, confidence, cells) > 1.2 + noise


@pytest.mark.slow
@pytest.mark.parametrize("minimum", [3, 5, 10])
def test_the_error_of_rare_misses(minimum: int) -> None:
    assert 0.6 <= errors(minimum, 30, True, 0.999, 100_000) <= 1.4
    assert errors(minimum, 30, False, 0.999, 100_000) > 1.4


def test_simulated_rule_is_the_conductors() -> None:
    """`assess` stops where the vectorised simulation above stops."""
    repeat = Repeat(min=3, max=12, precision=0.025)
    confidence = sequential_confidence(0.95, 3, 12)
    for row in np.random.default_rng(5).normal(1, 0.03, (200, 12)):
        stopped = next(
            n for n in range(1, 13) if assess({"throughput": row[:n]}, repeat).reason != "open"
        )
        plain = next(
            (n for n in range(3, 12) if mean_interval(row[:n], confidence).precision <= 0.025), 12
        )
        assert stopped == plain


STEADY = [10.0, 10.01, 9.99, 10.0, 10.02]
NOISY = [10.0, 14.0, 7.0, 9.0, 12.0]


TINY = [0.010, 0.012, 0.009, 0.011, 0.013]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"throughput": STEADY[:2]}, "open"),
        ({"throughput": STEADY}, "converged"),
        ({"throughput": NOISY}, "open"),
        ({"throughput": NOISY * 2}, "max"),
        ({"throughput": STEADY, "sender_cpu": NOISY}, "open"),
        ({"throughput": STEADY, "sender_cpu": TINY}, "converged"),  # the floor for CPU values
        ({"throughput": TINY}, "open"),  # and for these alone
        ({"throughput": STEADY, "sender_cpu": STEADY[:2]}, "open"),  # what most runs lack
        ({"throughput": [], "sender_cpu": STEADY}, "converged"),  # `null` has no throughput
        ({"throughput": STEADY, "receiver_cpu": NOISY}, "converged"),  # not asked for
        ({"receiver_cpu": STEADY}, "open"),
        ({}, "open"),
    ],
)
def test_a_cell_alone(values: dict[str, list[float]], reason: str) -> None:
    repeat = Repeat(min=3, max=10, precision=0.025, metrics=("throughput", "sender_cpu"))
    assert assess(values, repeat).reason == reason
    one = {"throughput": [5.0]}
    assert [assess(one, Repeat(1, most)).reason for most in (1, 3)] == ["max", "open"]


@pytest.mark.parametrize(("least", "most"), [(5, 30), (5, 100), (10, 30)])
@pytest.mark.parametrize("share", [0.05, 0.05 / 6])
def test_a_verdict_at_any_look_is_wrong_as_seldom_as_said(
    least: int, most: int, share: float
) -> None:
    values = np.random.default_rng(3).normal(size=(4000, most))
    n = np.arange(1, most + 1)
    means = values.cumsum(1) / n
    variances = ((values**2).cumsum(1) - n * means**2)[:, least - 1 :] / (n - 1)[least - 1 :]
    looks = n[least - 1 :]
    t = np.abs(means[:, least - 1 :]) / np.sqrt(variances / looks)
    limits = scipy.stats.t.ppf((1 + verdict_confidence(1 - share, least, most)) / 2, looks - 1)
    wrong = float((t > limits).any(1).mean())
    assert 0.5 * share < wrong < 1.1 * share + 2 * math.sqrt(share / 4000)


# --- of counts, and of what has ends ---


TRIALS = 1500


def coverage(mean: float, k: float, n: int) -> tuple[float, float]:
    """How many intervals hold the mean, and how many there are; k: infinite for Poisson."""
    rng = np.random.default_rng([int(mean * 10), n, int(min(k, 99))])
    rates = rng.gamma(k, mean / k, (TRIALS, n)) if math.isfinite(k) else np.full((TRIALS, n), mean)
    found = [count_interval(row, 0.95) for row in rng.poisson(rates).astype(float)]
    known = [i for i in found if i.known]
    assert all(i.low >= 0 for i in known)
    return sum(i.low <= mean <= i.high for i in known) / len(known), len(known) / TRIALS


@pytest.mark.parametrize("n", [5, 10, 30])
@pytest.mark.parametrize(("mean", "k"), [(0.5, 1), (3, 1), (50, 1), (3, 3), (3, math.inf)])
def test_counts_are_covered(mean: float, k: float, n: int) -> None:
    held, there = coverage(mean, k, n)
    assert held >= 0.90 - 3 * math.sqrt(0.1 * 0.9 / TRIALS)
    assert there > 0.85
    if math.isinf(k):
        assert held >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / TRIALS)


def test_even_counts_have_the_exact_poisson_interval() -> None:
    found = count_interval(np.array([3.0, 1, 2, 4, 2, 3]), 0.9)
    low, high = scipy.stats.chi2.ppf([0.05, 0.95], [2 * 15, 2 * 16]) / 2 / 6
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    none = count_interval(np.zeros(8), 0.95)
    assert (none.mean, none.low, none.high) == (0, 0, pytest.approx(-math.log(0.025) / 8))


def test_uneven_counts_have_students_interval_of_the_logarithm() -> None:
    values = np.array([3.0, 40, 11, 25, 60, 9])
    found = count_interval(values, 0.95)
    half = scipy.stats.t.ppf(0.975, 5) * scipy.stats.sem(values) / values.mean()
    assert (found.low, found.high) == (
        pytest.approx(values.mean() * math.exp(-half)),
        pytest.approx(values.mean() * math.exp(half)),
    )


@pytest.mark.parametrize(
    ("values", "why"),
    [([4.0, 0, 2], "fewer than 5 runs"), ([0.0, 0, 0, 0, 0, 0, 900], "too unevenly")],
)
def test_what_has_no_interval_says_why(values: list[float], why: str) -> None:
    found = count_interval(np.array(values), 0.95)
    assert not found.known
    assert why in found.why
    assert found.mean == np.mean(values)


def test_bounds_stay_where_the_metric_can_be() -> None:
    rng = np.random.default_rng(1)
    for values in (rng.exponential(1, 4) for _ in range(200)):
        plain = mean_interval(values, 0.95)
        bounded = plain.within(0, math.inf, (values.min(), values.max()))
        assert bounded.low > 0
        if plain.low >= 0:
            assert bounded == plain
        share = mean_interval(1 - values / 10, 0.95)
        inside = share.within(0, 1, (float(1 - values.max() / 10), float(1 - values.min() / 10)))
        assert 0 < inside.low < inside.mean < inside.high <= 1
        assert inside.precision == share.precision
    plain = mean_interval([-0.002, 0.003, 0.001], 0.95)  # an error that reaches below 0 is cut
    found = plain.within(0, math.inf, (-0.002, 0.003))
    assert (found.low, found.high) == (0, plain.high)


@pytest.mark.parametrize("shape", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("n", [3, 5, 10])
def test_staying_inside_costs_no_coverage(shape: float, n: int) -> None:
    rng = np.random.default_rng([int(shape * 2), n])
    held = np.zeros(2)
    for values in rng.gamma(shape, 1 / shape, (1000, n)):
        plain = mean_interval(values, 0.95)
        bounded = plain.within(0, math.inf, (values.min(), values.max()))
        held += [i.low <= 1 <= i.high for i in (plain, bounded)]
    assert held[1] >= held[0] - 3  # of 1000


def test_a_result_has_no_bound_that_cannot_be(tmp_path: Path) -> None:
    """CPU times near 0 and retransmits, of which one run has most."""

    def lossy(record: Record) -> Record:
        run, sender = int(record["run"]), record["sender"]
        times = {"user_us": [0, 0], "system_us": [0, 1 if run % 6 else 400_000]}
        sender["rusage"] |= times
        sender["tcp"] = {"retransmits": [[0], [run % 5]]}
        return record

    for cell in cells_of(load(Synth(runs=8, edit=lossy).write(tmp_path / "r"))):
        for name, interval in cell.intervals.items():
            assert not interval.low < METRICS[name.partition(".")[0]].lowest, (name, interval)
        cpu = cell.intervals["sender_kernel_cpu"]
        if cpu.skewed:
            assert re.fullmatch(r"0\.0\d+ \(0\.0*[1-9]\d* to 0\.0\d+\)", words(cpu))
        assert cell.intervals["retransmits"].known
