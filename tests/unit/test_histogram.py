"""Quantiles of histograms against those of the values themselves."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from scipy.signal import lfilter
from scipy.stats import norm, t

from netbench.stats.histogram import BITS, LEAST, QUANTILES, Histogram, bounds

Values = npt.NDArray[np.int64]
DISTRIBUTIONS: dict[str, Callable[[np.random.Generator, int], npt.NDArray[np.float64]]] = {
    "normal": lambda r, n: r.normal(20_000, 2_000, n),
    "log-normal": lambda r, n: r.lognormal(10, 1, n),
    "wide": lambda r, n: r.lognormal(10, 4, n),
    "exponential": lambda r, n: r.exponential(50_000, n),
    "uniform": lambda r, n: r.uniform(0, 1e9, n),
    "Pareto": lambda r, n: 1000 * (1 + r.pareto(1.1, n)),
    "one value": lambda r, n: np.full(n, 123_457.0),
    "two": lambda r, n: r.choice([1e3, 1e8], n, p=[0.98, 0.02]),
    "small": lambda r, n: r.integers(0, 300, n).astype(float),
    "stalls": lambda r, n: r.normal(2e4, 1e3, n) + r.choice([0, 5e7], n, p=[0.999, 0.001]),
}


def bucket(ns: int) -> int:
    """As native/src/histogram.h has it."""
    power = 0 if ns < 1 << BITS else ns.bit_length() - 1 - BITS
    return (power << BITS) + (ns >> power)


def counted(values: Values) -> Histogram:
    buckets = Counter(map(bucket, values.tolist()))
    return Histogram(len(values), int(values.sum()), int(values.max()), sorted(buckets.items()))


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_quantile_is_within_a_bucket_of_the_value(name: str) -> None:
    values = np.maximum(DISTRIBUTIONS[name](np.random.default_rng(7), 100_000), 0).astype(np.int64)
    found = counted(values)
    for share in QUANTILES.values():
        exact = np.quantile(values, share, method="median_unbiased")
        assert abs((found.quantile(share) or 0.0) - exact) <= max(0.008 * exact, 0.5)
    numbers = found.numbers()
    assert numbers["latency"] == pytest.approx(values.mean() / 1e3)
    assert numbers["max"] == values.max() / 1e3


@pytest.mark.parametrize("count", [20, 37, 101])
def test_a_quantile_of_few_is_of_type_8(count: int) -> None:
    """Of whole ns below 128, which have a bucket each."""
    values = np.arange(1, count + 1)
    exact = np.quantile(values, 0.5, method="median_unbiased")
    assert counted(values).quantile(0.5) == pytest.approx(exact)
    if count == 101:
        exact = np.quantile(values, 0.9, method="median_unbiased")
        assert counted(values).quantile(0.9) == pytest.approx(exact)
        assert exact != math.ceil(0.9 * count)


def test_buckets_are_where_the_engine_has_them() -> None:
    for ns in (*range(2000), 10**6, 10**9 + 7, 2**40):
        low, width = bounds(bucket(ns))
        assert low < ns < low + width


@pytest.mark.parametrize(
    ("count", "told"),
    [(19, []), (20, ["p50"]), (999, ["p50", "p90", "p95"]), (10_000, list(QUANTILES))],
)
def test_a_quantile_of_too_few_is_missing(count: int, told: list[str]) -> None:
    numbers = counted(np.arange(1, count + 1)).numbers()
    assert [name for name in QUANTILES if name in numbers] == told


def test_no_request_has_no_number() -> None:
    assert Histogram.of([0, 0, 0]).numbers() == {}


@pytest.mark.parametrize(
    "numbers",
    [
        [1, 1, 1, 2**63, 1],
        [1, 1, 1, -1, 1],
        [2, 1, 1, 5, 1, 5, 1],
        [2, 1, 1, 6, 1, 5, 1],
        [3, 1, 1, 5, 1],
        [1, 1, 1, 5],
        [1, 1],
    ],
)
def test_what_is_no_histogram_is_refused(numbers: list[int]) -> None:
    """A hostile worker may send it."""
    with pytest.raises(ValueError):  # noqa: PT011  # each its own
        Histogram.of(numbers)


@pytest.mark.slow
@pytest.mark.parametrize("sd", [0, 0.05])
@pytest.mark.parametrize("correlation", [0, 0.9])
@pytest.mark.parametrize("name", ["p50", "p99", "p99.9"])
def test_intervals_of_quantiles_hold_what_they_promise(
    name: str, correlation: float, sd: float
) -> None:
    """Of campaigns of ten runs of two equal cells, whose runs differ by sd: mean and comparison."""
    share, chance = QUANTILES[name], np.random.default_rng(1)
    count = round(LEAST / (1 - share)) * (2 if correlation else 1)
    wide, campaigns = t.ppf(0.975, 9) / math.sqrt(10), 2_000 if name == "p99.9" else 10_000
    held = np.zeros(2)
    for _ in range(campaigns // 50):
        noise = chance.standard_normal((50, 2, 10, count), dtype=np.float32)
        if correlation:
            noise[..., 1:] *= math.sqrt(1 - correlation**2)
            noise = lfilter([1], [1, -correlation], noise)
        runs = np.exp(sd * chance.standard_normal((50, 2, 10)))
        found = 20_000 * np.exp(np.quantile(noise, share, axis=-1, method="median_unbiased") / 2)
        ns = found * runs  # each in the middle of its bucket
        width = 2.0 ** np.maximum(0, np.floor(np.log2(ns)) - BITS)
        numbers = np.floor(ns / width) * width + (width - 1) / 2
        truth = 20_000 * math.exp(norm.ppf(share) / 2 + sd**2 / 2)
        held[0] += (abs(numbers.mean(-1) - truth) < wide * numbers.std(-1, ddof=1)).mean() * 50
        ratio = np.log(numbers[:, 0] / numbers[:, 1])
        held[1] += (abs(ratio.mean(-1)) < wide * ratio.std(-1, ddof=1)).sum()
    print(f"{name}, correlation {correlation}, sd {sd}: {held / campaigns}")
    assert (held / campaigns > 0.93).all()
    assert (held / campaigns < 0.965).all()
    assert held[1] / campaigns > (0.94 if name == "p99.9" else 0.945), "false verdicts"
