"""netperf's own rule on made-up runs: `-I 95,5 -i 30,3`, as its manual describes it (one cell after
the other, at least 3 and at most 30 iterations, until Student's interval is 5% wide).

netperf compares nothing. Two cells count as different here where their intervals do not overlap,
which is how such results are commonly read.
"""

from __future__ import annotations

import numpy as np

from netbench.analysis.intervals import Numbers, t_quantile
from tools.bench.conclusion import NETPERF, stops
from tools.bench.questions import Count
from tools.bench.regimes import Draw, Random
from tools.bench.simulated import Flags

TRIALS = 4000


def intervals(values: Numbers) -> tuple[Numbers, Numbers, Flags]:
    """Low and high of the mean of each row of 30 values where the loop ends, and whether it ended
    by its precision.
    """
    ends, reached = stops(values, NETPERF)
    before = np.arange(values.shape[1]) < ends[:, None]
    means = np.where(before, values, 0).sum(axis=1) / ends
    squares = np.where(before, (values - means[:, None]) ** 2, 0).sum(axis=1)
    factors = np.array([t_quantile(int(n), NETPERF.confidence) for n in range(2, 31)])
    halves = factors[ends - 2] * np.sqrt(squares / (ends - 1) / ends)
    return means - halves, means + halves, reached


def _drawn(rng: Random, draw: Draw, cells: int) -> Numbers:
    """Trials by cells by iterations; each cell's begin when those before it are over."""
    times = np.arange(cells * NETPERF.maximum).reshape(cells, NETPERF.maximum)
    return draw(rng, np.broadcast_to(times, (TRIALS, *times.shape)))


def cells_hold(rng: Random, draw: Draw, cells: int, or_withheld: bool = False) -> Count:
    """As questions.cells_hold, of TRIALS campaigns; where the loop warns that it did not reach its
    precision, that counts as withheld.
    """
    low, high, reached = intervals(_drawn(rng, draw, cells).reshape(-1, NETPERF.maximum))
    fine = (low <= 1) & (high >= 1) | (or_withheld & ~reached)
    return Count(int(fine.sum()), len(fine))


def any_difference(rng: Random, draw: Draw, cells: int) -> Count:
    """How often any cell differs from the first."""
    flat = _drawn(rng, draw, cells).reshape(-1, NETPERF.maximum)
    low, high = (ends.reshape(TRIALS, cells) for ends in intervals(flat)[:2])
    apart = (low[:, 1:] > high[:, :1]) | (high[:, 1:] < low[:, :1])
    return Count(int(apart.any(axis=1).sum()), TRIALS)
