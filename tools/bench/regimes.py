"""Regimes: how the runs of cells vary, as arrays. The last two axes are cells and time; `times`
says in which block each run is. A value is throughput over its true mean.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from netbench.analysis.intervals import Numbers
from tools.bench.simulated import Counts, Flags

SPREAD = 0.03
SLOW, SHARE = 0.7, 0.2
"""Of two modes: the speed of the slow one, and the share of runs in it."""
RELATIVE = (0.3, 0.5, 0.7, 1.0, 1.3, 1.6, 2.0, 2.5, 4.0)
"""Spreads of cells over the precision that is asked: those at which a rule that stops early is at
its worst are among them.
"""
Random = np.random.Generator
Draw = Callable[[Random, Counts], Numbers]


def blocks(cells: int, length: int) -> Counts:
    """The times of a campaign: all cells in each block."""
    return np.broadcast_to(np.arange(length), (cells, length))


def independent(rng: Random, times: Counts, spread: float = SPREAD) -> Numbers:
    """Normal runs of one spread."""
    return 1 + spread * rng.standard_normal(times.shape)


def heteroscedastic(rng: Random, times: Counts) -> Numbers:
    """The first cell has a spread of 1%, the others of 6%."""
    spread = np.full((*times.shape[:-1], 1), 0.06)
    spread[..., 0, :] = 0.01
    return 1 + spread * rng.standard_normal(times.shape)


def drifting(rng: Random, times: Counts) -> Numbers:
    """All cells fall by 10% in 30 blocks."""
    return independent(rng, times) * (1 - 0.1 * times / 30)


def lagged(rng: Random, times: Counts, r: float, spread: float = SPREAD) -> Numbers:
    """Each run follows the one before it in its cell: an autoregression of order 1."""
    noise = rng.standard_normal(times.shape)
    for i in range(1, times.shape[-1]):
        noise[..., i] = r * noise[..., i - 1] + np.sqrt(1 - r * r) * noise[..., i]
    return 1 + spread * noise


def of_spreads(rng: Random, times: Counts, precision: float = 0.025) -> Numbers:
    """Cells whose spreads are those of RELATIVE, in turn."""
    relative = np.resize(np.array(RELATIVE), times.shape[-2])
    return np.asarray(1 + precision * relative[:, None] * rng.standard_normal(times.shape))


def slow(rng: Random, times: Counts) -> Flags:
    """Which runs are in the slow mode."""
    return np.asarray(rng.random(times.shape) < SHARE)


def two_modes(rng: Random, times: Counts, spread: float) -> Numbers:
    """A fifth of the runs are 30% slower; the mean of all is 1."""
    return in_modes(slow(rng, times), rng, spread) / (1 - SHARE + SHARE * SLOW)


def in_modes(are_slow: Flags, rng: Random, spread: float) -> Numbers:
    """Runs of the fast mode have the mean 1."""
    modes = np.where(are_slow, SLOW, 1.0)
    return np.asarray(modes * (1 + spread * rng.standard_normal(are_slow.shape)))


def one_in_modes(rng: Random, times: Counts, spread: float) -> Numbers:
    """Only the last cell has two modes; the geometric means of all are the same."""
    values = independent(rng, times, spread)
    last = in_modes(slow(rng, times[..., -1:, :]), rng, spread)
    values[..., -1:, :] = last / SLOW**SHARE
    return values


def at_levels(rng: Random, times: Counts, ratio: float, spread: float) -> Numbers:
    """All cells but the first are `ratio` as fast as it, in the geometric mean."""
    values = np.exp(spread * rng.standard_normal(times.shape))
    values[..., 1:, :] *= ratio
    return np.asarray(values)


def with_boots(rng: Random, times: Counts, reboot: int, between: float, within: float) -> Numbers:
    """Each cell has another mean from the block `reboot` on; both are normal about 1."""
    means = 1 + between * rng.standard_normal((2, *times.shape[:-1], 1))
    values = np.where(times < reboot, means[0], means[1])
    return np.asarray(values * (1 + within * rng.standard_normal(times.shape)))


def counts(rng: Random, times: Counts, mean: float, k: float | None) -> Counts:
    """Poisson counts, or negative binomial ones of variance mean + mean^2 / k."""
    rates = mean if k is None else rng.gamma(k, mean / k, times.shape)
    return rng.poisson(rates, times.shape)


LAG_3, LAG_5 = partial(lagged, r=0.3), partial(lagged, r=0.5)
