"""What one run hands to the next: the residuals of runs against the level of the run before, in
order of execution. Blocks are shuffled, so each level comes after each other one by chance, and the
difference that the one before makes can be told from all else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from netbench.analysis.intervals import Numbers, welch_errors
from netbench.analysis.result import Result

FEWEST = 4  # runs of a level after another one, and after the others
ALPHA = 0.01  # chance that a sound pair and metric has a finding, over all levels


@dataclass(frozen=True)
class CarryOver:
    """Runs of `level` are `ratio` times as high after `before` as after other levels, `low..high`
    at a confidence that is corrected for the number of levels; `n` runs came after `before`.
    """

    pair: str
    metric: str
    factor: str
    before: str
    level: str
    n: int
    ratio: float
    low: float
    high: float


def carried_over(result: Result) -> Iterator[CarryOver]:
    """What is carried over in the metrics of `repeat`, the surest of each pair and metric."""
    if not result.swept:
        return
    asked = [metric for metric in result.repeat.metrics if metric in result.runs]
    columns = ["run", "pair", "cell", "boot", "status", "excluded", *result.swept, *asked]
    frames = [result.runs[columns], *([result.control_runs[columns]] if result.controls else [])]
    every = pd.concat(frames, ignore_index=True).sort_values("run")
    for pair, runs in every.groupby("pair", observed=True):
        if len(runs) < 2 * FEWEST:
            continue
        before = _before(runs, result.swept)
        counting = runs["cell"].isin({cell.cell for cell in result.cells})
        counting &= (runs["status"] == "ok") & (runs["excluded"] == "")
        for metric in asked:
            used = runs[counting & (runs[metric] > 0)]
            logs = np.log(used[metric])
            means = logs.groupby([used["cell"], used["boot"]], observed=True).transform("mean")
            residuals = (logs - means).to_numpy(dtype=float)
            found = list(_differences(used, before.loc[used.index], residuals))
            if found:
                sure = min((best for best, _ in found), key=lambda each: each[1])
                tests = sum(number for _, number in found)
                if (carried := _named(sure, tests, str(pair), metric)) is not None:
                    yield carried


_Found = tuple[tuple[str, str, str, int], float, tuple[float, float, float]]
"""Factor, level before, level and runs; p; difference with its error and degrees of freedom."""


def _before(runs: pd.DataFrame, factors: tuple[str, ...]) -> pd.DataFrame:
    """The levels of the run before each; missing at the first run of a boot."""
    levels = runs[list(factors)].astype(object).shift()
    levels[runs["boot"] != runs["boot"].shift()] = np.nan
    return levels


def _differences(
    runs: pd.DataFrame, before: pd.DataFrame, residuals: Numbers
) -> Iterator[tuple[_Found, int]]:
    """Of each factor the surest finding, and how many tests it is the surest of: each level, after
    one level against after all others.
    """
    for factor in before:
        mine = runs[factor].astype(object).to_numpy()
        theirs = before[factor].to_numpy()
        known = np.flatnonzero(pd.notna(theirs) & pd.notna(mine))
        codes, levels = pd.factorize(mine[known])
        before_codes, others = pd.factorize(theirs[known])
        places, at = np.unique(codes * max(len(others), 1) + before_codes, return_inverse=True)
        level, other = np.divmod(places, max(len(others), 1))
        # number, sum and sum of squares of each level after each other, and of all others
        after = np.stack([np.bincount(at, residuals[known] ** power) for power in (0, 1, 2)])
        of_level = np.stack([np.bincount(level, each, len(levels)) for each in after])
        rest = of_level[:, level] - after
        tested = np.flatnonzero(np.minimum(after[0], rest[0]) >= FEWEST)
        sizes, sums, squares = np.stack([after[:, tested], rest[:, tested]], axis=1)
        means = sums / sizes
        variances = np.maximum(squares - sizes * means**2, 0.0) / (sizes - 1)
        errors, freedoms = welch_errors(variances, sizes)
        differ = np.flatnonzero(errors)
        if len(differ):
            t = (means[0] - means[1])[differ] / errors[differ]
            p = 2 * stdtr(freedoms[differ], -np.abs(t))
            best = differ[int(p.argmin())]
            place = tested[best]
            names = str(factor), str(others[other[place]]), str(levels[level[place]])
            difference = float(means[0, best] - means[1, best])
            sure = difference, float(errors[best]), float(freedoms[best])
            yield ((*names, int(sizes[0, best])), float(p.min()), sure), len(differ)


def _named(found: _Found, tests: int, pair: str, metric: str) -> CarryOver | None:
    """The finding, where it is one with so many tests."""
    (factor, before, level, n), p, (difference, error, freedom) = found
    if p * tests >= ALPHA:
        return None
    half = float(stdtrit(freedom, 1 - ALPHA / tests / 2)) * error
    ends = (math.exp(difference + side * half) for side in (0, -1, 1))
    return CarryOver(pair, metric, factor, before, level, n, *ends)
