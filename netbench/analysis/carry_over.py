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

from netbench.analysis.intervals import Numbers, welch_error
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
                sure = min(found, key=lambda each: each[1])
                if (carried := _named(sure, len(found), str(pair), metric)) is not None:
                    yield carried


_Found = tuple[tuple[str, str, str, int], float, tuple[float, float, float]]
"""Factor, level before, level and runs; p; difference with its error and degrees of freedom."""


def _before(runs: pd.DataFrame, factors: tuple[str, ...]) -> pd.DataFrame:
    """The levels of the run before each; missing at the first run of a boot."""
    levels = runs[list(factors)].astype(object).shift()
    levels[runs["boot"] != runs["boot"].shift()] = np.nan
    return levels


def _differences(runs: pd.DataFrame, before: pd.DataFrame, residuals: Numbers) -> Iterator[_Found]:
    for factor in before:
        mine = runs[factor].astype(object).to_numpy()
        theirs = before[factor].to_numpy()
        known = np.flatnonzero(pd.notna(theirs) & pd.notna(mine))
        codes, levels = pd.factorize(mine[known])
        before_codes, others = pd.factorize(theirs[known])
        ends = np.cumsum(np.bincount(codes, minlength=len(levels)))
        by_level = np.split(np.argsort(codes, kind="stable"), ends[:-1])
        for level, rows in zip(levels, by_level, strict=True):
            before_level, of_this = before_codes[rows], residuals[known[rows]]
            counts = np.bincount(before_level, minlength=len(others))
            for other in np.flatnonzero(np.minimum(counts, len(rows) - counts) >= FEWEST):
                after = before_level == other
                here, rest = of_this[after], of_this[~after]
                difference = float(here.mean() - rest.mean())
                error, freedom = welch_error(here, rest)
                if error:
                    p = float(2 * stdtr(freedom, -abs(difference) / error))
                    names = str(factor), str(others[other]), str(level), len(here)
                    yield names, p, (difference, error, freedom)


def _named(found: _Found, tests: int, pair: str, metric: str) -> CarryOver | None:
    """The finding, where it is one with so many tests."""
    (factor, before, level, n), p, (difference, error, freedom) = found
    if p * tests >= ALPHA:
        return None
    half = float(stdtrit(freedom, 1 - ALPHA / tests / 2)) * error
    ends = (math.exp(difference + side * half) for side in (0, -1, 1))
    return CarryOver(pair, metric, factor, before, level, n, *ends)
