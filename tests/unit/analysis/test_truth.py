"""A short form of `make bench PARTS=truth`: whole campaigns of made-up runs whose truth is known.

The draws are the same each time. A row fails where what was counted has a chance below 1 in 10,000
if its budget held: it finds what is badly wrong; the bench finds the rest.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from netbench.analysis.intervals import mean_interval
from tools.bench import netperf, regimes, simulated, truth
from tools.bench.conclusion import NETPERF
from tools.bench.questions import Count
from tools.bench.truth import Budget, Regime

RARE = 1e-4
TRIALS = {  # how many of a row are enough to see what it is about
    "two equal levels, independent: a false verdict": 30,
    "two equal levels, drifting: a false verdict": 20,
    "4 cells, lag-1 correlation 0.3: intervals hold the mean": 10,
    "two equal levels, slow runs of one fail with probability 1: a false verdict": 12,
    "two results whose campaigns differ by 2%: a false verdict": 10,
    "retransmits, negative binomial, k = 1, mean 2: intervals that reach below 0": 8,
}
REGIMES = {regime.what: regime for regime in truth.table()}


def is_possible(count: Count, budget: Budget) -> bool:
    """Whether so many could be counted if the share were just within its budget."""
    few = scipy.stats.binom.cdf(count.hits, count.looks, budget.low)
    many = scipy.stats.binom.sf(count.hits - 1, count.looks, budget.high)
    return bool(min(few, many) >= RARE)


def counted(regime: Regime, trials: int) -> Count:
    """So many trials of a row."""
    total = Count(0, 0)
    for number in range(trials):
        total += regime.trial(np.random.default_rng([1, number]))
    return total


@pytest.mark.parametrize("what", TRIALS)
def test_the_row_is_within_its_budget(what: str) -> None:
    regime = REGIMES[what]
    assert regime.budget is not None
    count = counted(regime, TRIALS[what])
    assert count.looks
    assert is_possible(count, regime.budget), f"{count}, budget {regime.budget}"


def test_a_count_far_from_its_budget_is_seen() -> None:
    assert is_possible(Count(2, 20), truth.at_most(0.055))
    assert not is_possible(Count(14, 20), truth.at_most(0.055))
    assert is_possible(Count(36, 40), truth.at_least(0.94))
    assert not is_possible(Count(28, 40), truth.at_least(0.94))
    assert not is_possible(Count(1, 20), truth.at_most(0.0))


def test_shares_have_exact_binomial_intervals() -> None:
    for hits, looks in ((0, 20), (3, 40), (40, 40), (271, 4000)):
        exact = scipy.stats.binomtest(hits, looks).proportion_ci(0.95)
        assert truth.binomial(Count(hits, looks)) == pytest.approx((exact.low, exact.high))


def test_netperf_s_intervals_are_students() -> None:
    values = regimes.independent(np.random.default_rng(4), regimes.blocks(50, NETPERF.maximum))
    low, high, reached = netperf.intervals(values)
    for row, ends in zip(values, zip(low, high, reached, strict=True), strict=True):
        tries = (mean_interval(row[:n], 0.95) for n in range(NETPERF.minimum, len(row) + 1))
        widths = {i.n: i for i in tries}
        first = next((i for i in widths.values() if i.precision <= 0.025), widths[len(row)])
        assert ends == pytest.approx((first.low, first.high, first.precision <= 0.025))


def test_a_record_s_line_is_that_of_the_store() -> None:
    """With the control that a family of six has, and a run that failed."""
    made = simulated.Simulated(truth.SEVEN + truth.runs(2, 2))
    values = np.ones((len(made.plan.units), 2))
    failed = np.zeros(values.shape, dtype=np.bool_)
    failed[0, 0] = True
    drawn = simulated.Drawn(values, failed, None, np.zeros(values.shape, dtype=np.int64))
    records = made.records(drawn)
    assert sum(record.control for record in records) == 2
    for record in records:
        assert simulated._line(record) == record.to_json()
