"""Intervals, and the rule that stops a cell: coverage is simulated, quantiles are compared with
scipy.stats.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from netbench.model import Repeat
from netbench.stats.closing import Assessment, Standing
from netbench.stats.intervals import (
    mean_interval,
    sequential_confidence,
    t_quantile,
)


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
    """The worst share, over ratios of spread to precision, of simulated stopped cells whose
    interval misses the true mean, over the nominal share.
    """
    z = np.random.default_rng([minimum, maximum]).normal(size=(cells, maximum))
    n = np.arange(1, maximum + 1)
    mean = np.cumsum(z, axis=1) / n
    squares = np.cumsum(z**2, axis=1) - n * mean**2
    error = np.sqrt(np.maximum(squares, 1e-12) / np.maximum(n - 1, 1) / n)[:, minimum - 1 :]
    level = sequential_confidence(confidence, minimum, maximum) if widened else confidence
    quantiles = np.array([t_quantile(int(k), level) for k in n[minimum - 1 :]])
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
    ("confidence", "cells"),
    [
        (0.8, 4000),
        (0.95, 8000),
        (0.99, 20_000),
        pytest.param(0.999, 100_000, marks=pytest.mark.slow),
    ],
)
def test_the_error_of_stopped_intervals(minimum: int, confidence: float, cells: int) -> None:
    noise = 3 * math.sqrt(1 / (cells * (1 - confidence)))
    assert 0.7 - noise <= errors(minimum, 30, True, confidence, cells) <= 1.2 + noise
    if minimum == 5 and confidence >= 0.95:  # or the widening would be for nothing
        assert errors(minimum, 30, False, confidence, cells) > 1.2 + noise


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
