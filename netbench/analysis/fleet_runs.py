"""From runs to what the model of a fleet sees: of each pair the mean of its logarithms, without
what all pairs of a block share, and the variance of that mean.

A pair has few runs, and pairs are not equally noisy. So its variance is weighed against that of
all others, by as much as they are alike (Smyth 2004, doi:10.2202/1544-6115.1027): where all are
alike, few runs have the freedom of many; where some are not, a pair answers for its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.special import digamma, polygamma

from netbench.analysis.fleet_model import Observed, Places
from netbench.analysis.intervals import Numbers

FEWEST_OF_BLOCK = 8
"""Pairs of a block whose median shift is taken for the block's own."""
STEPS, CLOSE = 30, 1e-6  # of what blocks share: until a step is smaller, of a logarithm
LEAST = 1e-12  # variance of a logarithm
MOST_FREEDOM = 1e6


def observed(
    runs: pd.DataFrame, metric: str, pairs: Sequence[str], hosts: Sequence[str] = ()
) -> Observed | None:
    """The pairs of a cell's runs (ok ones; those with a value above 0), in the order of `pairs`,
    and their hosts, in that of `hosts`; None without any.
    """
    used = runs[runs[metric] > 0]
    if used.empty:
        return None
    order = {pair: at for at, pair in enumerate(pairs)}
    names = used["pair"].astype(str).map(order).to_numpy()
    present, at = np.unique(names, return_inverse=True)
    y = np.log(used[metric].to_numpy(dtype=float))
    n = np.bincount(at).astype(np.int64)
    for by in (["block"], ["block", "round"]):
        for _ in range(STEPS):  # pairs of few runs were in few of the blocks that means are over
            shared = _shared(used, by, y - (np.bincount(at, y) / n)[at])
            y = y - shared
            if np.abs(shared).max() < CLOSE:
                break
    mean = np.bincount(at, y) / n
    squares = np.asarray(np.bincount(at, (y - mean[at]) ** 2), dtype=float)
    variance, freedom = moderated(squares, n - 1)
    names_of = [pairs[i].partition(">")[::2] for i in present.tolist()]
    ends = {host for pair in pairs for host in pair.partition(">")[::2]}
    listed = dict.fromkeys((*hosts, *(host for pair in pairs for host in pair.partition(">")[::2])))
    known = tuple(host for host in listed if host in ends)
    place = {host: i for i, host in enumerate(known)}
    sender, receiver = (np.array([place[name[i]] for name in names_of]) for i in (0, 1))
    kept = tuple(pairs[i] for i in present.tolist())
    return Observed(known, kept, sender, receiver, mean, n, variance / n, freedom)


def _shared(used: pd.DataFrame, by: list[str], rest: Numbers) -> Numbers:
    """What the pairs of a block, or of a round within it, have in common: the median; 0 where that
    is over few.
    """
    if not set(by) <= set(used.columns):
        return np.zeros(len(rest))
    groups = used[by].assign(rest=rest).groupby(by, observed=True)["rest"]
    enough = groups.transform("size") >= FEWEST_OF_BLOCK
    return np.where(enough, groups.transform("median"), 0.0)


def moderated(squares: Numbers, freedom: Places) -> tuple[Numbers, Numbers]:
    """The variance of a run on each pair and its degrees of freedom (0 and 0 where no pair has two
    runs); squares: the sum of squares around its mean, freedom: one less than its runs.
    """
    there = freedom > 0
    if not there.any():
        return np.zeros(len(squares)), np.zeros(len(squares))
    d = freedom[there].astype(float)
    variance = np.maximum(squares[there] / d, LEAST)
    centred = np.log(variance) - digamma(d / 2) + np.log(d / 2)
    middle = float(centred.mean())
    apart = float(centred.var(ddof=1)) if len(d) > 1 else 0.0
    excess = apart - float(polygamma(1, d / 2).mean())
    if excess > 0:
        prior = 2 * _inverse_trigamma(excess)
        typical = math.exp(middle + float(digamma(prior / 2)) - math.log(prior / 2))
    else:
        prior, typical = MOST_FREEDOM, math.exp(middle)
    whole = prior + freedom
    return np.asarray((prior * typical + squares) / whole), np.asarray(whole)


def _inverse_trigamma(value: float) -> float:
    """Where the trigamma function has a value above 0: by Newton's method, as Smyth has it."""
    if value > 1e7:
        return 1 / math.sqrt(value)
    if value < 1e-6:
        return 1 / value
    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(polygamma(1, x))
        step = trigamma * (1 - trigamma / value) / float(polygamma(2, x))
        x += step
        if -step / x < 1e-8:
            break
    return x
