"""What one run hands to the next: the residuals of runs against the level of the run before, in
order of execution. Blocks are shuffled, so each level comes after each other one by chance, and the
difference that the one before makes can be told from all else.

It reaches comparisons, too: of two levels each comes after the other more often than after itself.
What that adds to their difference is estimated with its error (`added`), and a verdict in whose
direction it goes is flagged where it does not stand without that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from netbench.read.result import Result, counting
from netbench.read.verdicts import stands
from netbench.stats import special
from netbench.stats.by_boot import Places
from netbench.stats.comparison import CARRIED, Comparison
from netbench.stats.dependence import DOUBT
from netbench.stats.intervals import Numbers, welch_errors

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
    asked = [metric for metric in result.repeat.metrics if metric in result.runs]
    for metric in asked if result.swept else ():
        for pair, used, levels in _in_order(result, metric):
            logs = np.log(used[metric])
            means = logs.groupby([used["cell"], used["boot"]], observed=True).transform("mean")
            tests = _tests(used, levels, (logs - means).to_numpy(dtype=float))
            if not len(tests) or tests["p"].min() * len(tests) >= ALPHA:
                continue
            sure = tests.iloc[int(tests["p"].to_numpy().argmin())]
            half = (
                float(special.stdtrit(sure["freedom"], 1 - ALPHA / len(tests) / 2)) * sure["error"]
            )
            ratio, low, high = (math.exp(sure["difference"] + x * half) for x in (0, -1, 1))
            factor, before, level = (str(sure[x]) for x in ("factor", "before", "level"))
            yield CarryOver(pair, metric, factor, before, level, int(sure["n"]), ratio, low, high)


def _in_order(result: Result, metric: str) -> Iterator[tuple[str, pd.DataFrame, pd.DataFrame]]:
    """Of each pair the runs that count and have a value above 0, in order of execution, and the
    levels of the run before each of them; missing at the first run of a boot.
    """
    columns = ["run", "pair", "cell", "boot", "status", "excluded", *result.swept, metric]
    frames = [result.runs[columns], *([result.control_runs[columns]] if result.controls else [])]
    every = pd.concat(frames, ignore_index=True).sort_values("run")
    cells = {cell.cell for cell in result.cells}
    for pair, runs in every.groupby("pair", observed=True):
        used = counting(runs[runs["cell"].isin(cells) & (runs[metric] > 0)])
        before = runs[list(result.swept)].astype(object).shift()
        before[runs["boot"] != runs["boot"].shift()] = np.nan
        if len(runs) >= 2 * FEWEST:
            yield str(pair), used, before.loc[used.index]


def flagged(result: Result, family: Sequence[Comparison]) -> list[Comparison]:
    """A family, its verdicts flagged that do not stand without what runs hand to the next."""
    if all(c.verdict == "inconclusive" or c.unit != "block" for c in family):
        return list(family)
    factor, metric = family[0].factor, family[0].metric
    keys = {each.cell: result.levels(each.factors) for each in result.cells}
    found: dict[str, tuple[dict[tuple[str, ...], int], Added]] = {}
    for pair, used, before in _in_order(result, metric):
        known = before[factor].notna().to_numpy()
        codes, words = pd.factorize(used["cell"][known].astype(str))
        after = pd.factorize(before[factor][known])[0]
        logs = np.log(used[metric][known].to_numpy(dtype=float))
        if len(logs):
            places = {keys[word]: at for at, word in enumerate(words)}
            found[pair] = places, added(logs, codes, after)

    def is_doubtful(c: Comparison) -> bool:
        if c.verdict == "inconclusive" or c.unit != "block" or c.pair not in found:
            return False
        places, handed = found[c.pair]
        both = (result.levels({**c.context, factor: x}) for x in (c.level, c.baseline))
        i, j = (places.get(each) for each in both)
        return i is not None and j is not None and turns(c, *handed.apart(i, j))

    return [c.but(flags=(*c.flags, CARRIED)) if is_doubtful(c) else c for c in family]


def turns(c: Comparison, shift: float, variance: float) -> bool:
    """Whether a verdict does not stand without what the run before adds to the log difference,
    where that explains it and is a sign at all.
    """
    d, error = math.log(c.ratio), math.sqrt(max(variance, 0.0))
    explains = abs(shift) if c.verdict == "equivalent" else math.copysign(1, d) * shift
    if not explains > DOUBT * error:
        return False
    return not stands(c, d - shift, math.hypot(c.error, error), c.freedom)


@dataclass(frozen=True)
class Added:
    """What the levels of the runs before add to a run, with the covariances of that, and the share
    of each cell's runs that came after each level.
    """

    effects: Numbers
    covariances: Numbers
    shares: Numbers

    def apart(self, i: int, j: int) -> tuple[float, float]:
        """What that adds to the difference of two cells, and its variance."""
        weights = self.shares[i] - self.shares[j]
        return float(weights @ self.effects), float(weights @ self.covariances @ weights)


def added(logs: Numbers, cells: Places, before: Places) -> Added:
    """By least squares; of each run the logarithm, the number of its cell, and that of the level
    before.
    """
    count = np.bincount(cells).astype(float)
    after = np.eye(before.max() + 1)[before]
    shares = np.stack([np.bincount(cells, each) / count for each in after.T], axis=1)
    residuals = logs - (np.bincount(cells, logs) / count)[cells]
    varied = after - shares[cells]
    squares = varied.T @ varied
    inverse = np.linalg.pinv(squares, hermitian=True)
    effects = inverse @ (varied.T @ residuals)
    freedom = len(logs) - len(count) - np.linalg.matrix_rank(squares, hermitian=True)
    variance = float(np.square(residuals - varied @ effects).sum()) / max(freedom, 1)
    return Added(effects, variance * inverse, shares)


def _tests(runs: pd.DataFrame, before: pd.DataFrame, residuals: Numbers) -> pd.DataFrame:
    """A row a test: each level of each factor, after one level against after all others."""
    tests = []
    for factor in before:
        columns = {"n": 1.0, "sum": residuals, "squares": residuals**2}
        levels = {"level": runs[factor].astype(object), "before": before[factor]}
        frame = pd.DataFrame({**levels, **columns}).dropna()
        after = frame.groupby(["level", "before"], sort=False).sum()
        rest = after.groupby("level").transform("sum") - after
        both = [each[np.minimum(after["n"], rest["n"]) >= FEWEST] for each in (after, rest)]
        n, sums, squares = (np.stack([each[name] for each in both]) for name in columns)
        variances = np.maximum(squares - sums**2 / n, 0.0) / (n - 1)
        error, freedom = welch_errors(variances, n)
        found = both[0].reset_index().assign(factor=str(factor), error=error, freedom=freedom)
        found = found.assign(difference=sums[0] / n[0] - sums[1] / n[1])[error > 0]
        t = (found["difference"] / found["error"]).abs()
        tests.append(found.assign(p=2 * special.stdtr(found["freedom"], -t)))
    return pd.concat(tests, ignore_index=True)
