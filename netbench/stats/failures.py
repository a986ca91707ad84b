"""Failed runs: a comparison with these ranked last.

A failed run has no value. If slow runs of one level fail, the rest of that level looks fast, and
a comparison of what is left finds a difference where there is none; no run that counts may have
been that slow, so the worst value seen bounds nothing. But a run that failed is no better than any
that did not: with ranks in place of values, failed runs last, a verdict has to stand once more
(ranks in the tests of means: Conover and Iman 1981, doi:10.2307/2683975).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from netbench.base.names import OF_SHARES
from netbench.base.units import count
from netbench.stats.histogram import LEAST, QUANTILES
from netbench.stats.pairs import Series


@dataclass(frozen=True)
class Failures:
    """Of a level and of its baseline: failed runs, and all. `stands`: a verdict does anyway."""

    failed: int
    runs: int
    baseline_failed: int
    baseline_runs: int
    stands: bool = True


def absent(name: str, failed: Series | None, metric: str, never: str = "") -> str:
    """Why a level or a result without any ok run that has the metric has no comparison. never:
    `unsupported` or `refused`, where its runs were.
    """
    if never:
        return f"{name} is {never} here"
    why = f"no run of {name} has a value here"
    if metric in OF_SHARES:
        share = QUANTILES[metric.rpartition("_")[2]]
        why = f"no run of {name} has a {metric}: needs {round(LEAST / (1 - share)):,} requests"
    return why if failed is None else f"{why}; {count(len(failed.values), 'run')} failed"


def counted(mine: int, failed: int, base: int, base_failed: int) -> Failures | None:
    """The failures of a level with `mine` ok runs, its baseline with `base`; None without any."""
    if not failed + base_failed:
        return None
    return Failures(failed, mine + failed, base_failed, base + base_failed)


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
