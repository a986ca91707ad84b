"""Failed runs: whether they depend on the level, and a comparison with these ranked last.

A failed run has no value. If slow runs of one level fail, the rest of that level looks fast, and
a comparison of what is left finds a difference where there is none; no run that counts may have
been that slow, so the worst value seen bounds nothing. But a run that failed is no better than any
that did not: with ranks in place of values, failed runs last, a verdict has to stand once more
(ranks in the tests of means: Conover and Iman 1981, doi:10.2307/2683975).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from netbench.base.units import count
from netbench.stats import special
from netbench.stats.pairs import Series

ALPHA = 0.05  # at which a level is named that fails more often than the others, after Holm


@dataclass(frozen=True)
class Failures:
    """Of a level and of its baseline: failed runs, and runs in all; `p` of the exact test that both
    fail equally often (Fisher, two-sided). `stands`: a verdict does, whatever they would have been.
    """

    failed: int
    runs: int
    baseline_failed: int
    baseline_runs: int
    p: float
    stands: bool = True


@dataclass(frozen=True)
class FailingLevel:
    """A level that fails more often than the other levels of its factor; `p` is corrected."""

    factor: str
    level: str
    failed: int
    runs: int
    others_failed: int
    others_runs: int
    p: float


def fisher(failed: int, runs: int, others_failed: int, others_runs: int) -> float:
    """Two-sided p of Fisher's exact test that both fail equally often: of all divisions of these
    failures that are no more probable than this one.
    """
    total = failed + others_failed
    each = np.arange(max(0, total - others_runs), min(runs, total) + 1)
    logs = -sum(special.gammaln(x + 1) for x in (each, runs - each, total - each))
    logs -= special.gammaln(others_runs - total + each + 1)
    chances = np.exp(logs - logs.max())
    mine = chances[failed - each[0]]
    return float(chances[chances <= mine * (1 + 1e-7)].sum() / chances.sum())


def absent(name: str, failed: Series | None) -> str:
    """Why a level or a result without any ok run has no comparison."""
    if failed is None or not len(failed.values):
        return f"{name} has no run here"
    return f"{name} has no ok run here: {count(len(failed.values), 'run')} failed"


def counted(mine: int, failed: int, base: int, base_failed: int) -> Failures | None:
    """The failures of a level with `mine` ok runs and of its baseline with `base`; None without any
    failure.
    """
    if not failed + base_failed:
        return None
    runs = mine + failed, base + base_failed
    return Failures(
        failed, runs[0], base_failed, runs[1], fisher(failed, runs[0], base_failed, runs[1])
    )


def ranked(
    mine: Series, failed: Series | None, base: Series, base_failed: Series | None, *, lowest: bool
) -> tuple[Series, Series]:
    """Both series with the ranks of their values among all of them as logarithms (0 to 1), failed
    runs as the worst: as the lowest, or the highest.
    """
    boots = mine.boots, base.boots
    known = (boots[0] | boots[1],) * 2 if boots[0] & boots[1] else boots
    both = np.concatenate([mine.values, base.values])
    worst = both.min() / 2 if lowest else both.max() * 2
    mine = _filled(mine, failed, known[0], float(worst))
    base = _filled(base, base_failed, known[1], float(worst))
    every = np.concatenate([mine.values, base.values])
    _, at, counts = np.unique(every, return_inverse=True, return_counts=True)
    ranks = np.exp((np.cumsum(counts) - (counts - 1) / 2) / len(every))[at]
    n = len(mine.values)
    return replace(mine, values=ranks[:n]), replace(base, values=ranks[n:])


def _filled(series: Series, failed: Series | None, boots: frozenset[int], value: float) -> Series:
    """The series with a value for each run that failed and was not repeated. A run that failed
    because a boot did not come up carries the number of another one: those of unknown boots are
    left out.
    """
    if failed is None:
        return series
    ok, bad = (set(zip(s.boot.tolist(), s.block.tolist(), strict=True)) for s in (series, failed))
    if not (places := sorted(place for place in bad - ok if place[0] in boots)):
        return series
    boot, block = np.array(places, dtype=np.int64).T
    return replace(
        series,
        block=np.concatenate([series.block, block]),
        boot=np.concatenate([series.boot, boot]),
        values=np.concatenate([series.values, np.full(len(places), value)]),
    )


def failing_levels(runs: pd.DataFrame, factors: Iterable[str]) -> list[FailingLevel]:
    """The levels that fail more often than the other levels of their factor, tested over all cells
    and pairs, corrected for the number of levels (Holm).

    runs: the frame of runs; only `ok` and `failed` ones count.
    """
    tried = runs[runs["status"].isin(("ok", "failed"))]
    is_failed = (tried["status"] == "failed").to_numpy()
    if not is_failed.any():
        return []
    tested = [each for factor in factors for each in _by_level(tried[factor], is_failed)]
    found: list[FailingLevel] = []
    for rank, level in enumerate(sorted(tested, key=lambda each: each.p)):
        p = min(1.0, level.p * (len(tested) - rank))
        if p > ALPHA:
            break
        if level.failed * level.others_runs > level.others_failed * level.runs:
            found.append(replace(level, p=p))
    return found


def _by_level(levels: pd.Series, is_failed: npt.NDArray[np.bool_]) -> Iterator[FailingLevel]:
    """Each level of a factor against its other levels."""
    table = pd.DataFrame({"level": levels.astype(object), "failed": is_failed}).dropna()
    for level, mine in table.groupby("level", sort=False)["failed"]:
        counts = int(mine.sum()), len(mine)
        others = int(table["failed"].sum()) - counts[0], len(table) - counts[1]
        yield FailingLevel(str(levels.name), str(level), *counts, *others, fisher(*counts, *others))
