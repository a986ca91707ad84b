"""Intervals, and the rule that stops a cell: coverage is simulated, quantiles are compared with
scipy.stats.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from netbench.analysis.intervals import mean_interval, sequential_confidence, t_quantile
from netbench.analysis.stopping import assess
from netbench.model import Repeat

finite = st.floats(-1e6, 1e6)


@given(st.lists(finite, min_size=2, max_size=40), st.sampled_from([0.8, 0.95, 0.99]))
def test_interval_is_students(values: list[float], confidence: float) -> None:
    found = mean_interval(values, confidence)
    sd = float(np.std(values, ddof=1))
    if sd > 1e-6:
        low, high = scipy.stats.t.interval(
            confidence, len(values) - 1, loc=np.mean(values), scale=scipy.stats.sem(values)
        )
        assert (found.low, found.high) == (
            pytest.approx(low, abs=1e-9 * 1e6),
            pytest.approx(high, abs=1e-9 * 1e6),
        )
    assert found.half_width == pytest.approx((found.high - found.low) / 2, abs=1e-6)


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


def coverage(minimum: int, maximum: int, spread: float, widened: bool, cells: int = 8000) -> float:
    """Share of simulated stopped cells whose interval holds the true mean; `spread`: standard
    deviation over precision.
    """
    precision, rng = 0.025, np.random.default_rng([minimum, maximum, round(spread * 100)])
    x = rng.normal(1, spread * precision, (cells, maximum))
    n = np.arange(1, maximum + 1)
    mean = np.cumsum(x, axis=1) / n
    sd = np.sqrt(
        np.maximum(np.cumsum((x - 1) ** 2, axis=1) - n * (mean - 1) ** 2, 0) / np.maximum(n - 1, 1)
    )
    confidence = sequential_confidence(0.95, minimum, maximum) if widened else 0.95
    half = np.array([math.nan] + [t_quantile(int(k), confidence) for k in n[1:]]) * sd / np.sqrt(n)
    stop = (half / mean <= precision) & (n >= minimum)
    stop[:, -1] = True
    at = stop.argmax(axis=1)
    rows = np.arange(cells)
    return float(np.mean(np.abs(mean[rows, at] - 1) <= half[rows, at]))


SPREADS = (0.3, 0.5, 0.7, 1.0, 1.3, 1.6, 2.0, 2.5, 4.0)


@pytest.mark.parametrize("minimum", [3, 5, 10])
@pytest.mark.parametrize("maximum", [15, 30])
def test_coverage_of_stopped_intervals(minimum: int, maximum: int) -> None:
    noise = 3 * math.sqrt(0.95 * 0.05 / 8000)
    worst = min(coverage(minimum, maximum, spread, widened=True) for spread in SPREADS)
    assert worst >= 0.95 - noise
    plain = min(coverage(minimum, maximum, spread, widened=False) for spread in SPREADS)
    assert plain < 0.95 - noise  # or the widening would be for nothing


def test_simulated_rule_is_the_conductors() -> None:
    """`assess` stops where the vectorised simulation above stops."""
    repeat = Repeat(min=3, max=12, precision=0.025)
    confidence = sequential_confidence(0.95, 3, 12)
    for row in np.random.default_rng(5).normal(1, 0.03, (200, 12)):
        stopped = next(n for n in range(1, 13) if assess({"throughput": row[:n]}, repeat).closed)
        plain = next(
            (n for n in range(3, 12) if mean_interval(row[:n], confidence).precision <= 0.025), 12
        )
        assert stopped == plain


STEADY = [10.0, 10.01, 9.99, 10.0, 10.02]
NOISY = [10.0, 14.0, 7.0, 9.0, 12.0]


@pytest.mark.parametrize(
    ("values", "closed", "reason"),
    [
        ({"throughput": STEADY[:2]}, False, "open"),
        ({"throughput": STEADY}, True, "converged"),
        ({"throughput": NOISY}, False, "open"),
        ({"throughput": NOISY * 2}, True, "max"),
        ({"throughput": STEADY, "sender_cpu": NOISY}, False, "open"),
        (
            {"throughput": STEADY, "sender_cpu": [0.010, 0.012, 0.009, 0.011, 0.013]},
            True,
            "converged",
        ),  # the floor for small CPU values
        (
            {"throughput": STEADY, "sender_cpu": STEADY[:2]},
            False,
            "open",
        ),  # a metric that most runs lack is no evidence
        ({"throughput": [], "sender_cpu": STEADY}, True, "converged"),  # `null` has no throughput
        ({"throughput": STEADY, "receiver_cpu": NOISY}, True, "converged"),  # not asked for
        ({"receiver_cpu": STEADY}, False, "open"),
        ({}, False, "open"),
    ],
)
def test_assess(values: dict[str, list[float]], closed: bool, reason: str) -> None:
    repeat = Repeat(min=3, max=10, precision=0.025, metrics=("throughput", "sender_cpu"))
    found = assess(values, repeat)
    assert (found.closed, found.reason) == (closed, reason)


def test_the_floor_is_for_cpu_only() -> None:
    tiny = [0.010, 0.012, 0.009, 0.011, 0.013]
    assert not assess({"throughput": tiny}, Repeat(min=3, max=10)).closed


def test_one_run_each() -> None:
    found = assess({"throughput": [5.0]}, Repeat(min=1, max=1))
    assert (found.closed, found.reason, found.n) == (True, "max", 1)
    assert not assess({"throughput": [5.0]}, Repeat(min=1, max=3)).closed
