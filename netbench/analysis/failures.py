"""Failed runs: whether they depend on the level, and what a comparison says where they had the
worst values.

A failed run has no value. If slow runs of one level fail, the rest of that level looks fast, and
a comparison of what is left finds a difference where there is none. What failed runs would have
shown is not known, so a verdict has to stand with the values, of those that either level has shown,
that speak most against it (bounds of this kind: Manski 1990, American Economic Review 80:319).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from netbench.analysis.pairs import Places, Series
from netbench.units import count

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
    """Two-sided p of Fisher's exact test that both fail equally often."""
    from scipy.stats import fisher_exact  # half a second, for results that have failures alone

    table = np.array([[failed, runs - failed], [others_failed, others_runs - others_failed]])
    return float(fisher_exact(table).pvalue)


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


def completed(
    mine: Series,
    failed: Series | None,
    base: Series,
    base_failed: Series | None,
    *,
    up: bool,
    paired: bool = True,
) -> tuple[Series, Series]:
    """Both series with values for the runs that failed: `up`, the highest value of both for mine
    and the lowest for the baseline; else the other way round. paired: blocks in which both failed
    say nothing of their difference and are left out.
    """
    lowest = min(mine.values.min(), base.values.min())
    highest = max(mine.values.max(), base.values.max())
    boots = mine.boots, base.boots
    known = (boots[0] | boots[1],) * 2 if paired and boots[0] & boots[1] else boots
    lost = [_lost(s, f, k) for s, f, k in ((mine, failed, known[0]), (base, base_failed, known[1]))]
    both = lost[0] & lost[1] if paired else set()
    values = (highest, lowest) if up else (lowest, highest)
    return (
        _filled(mine, lost[0] - both, float(values[0])),
        _filled(base, lost[1] - both, float(values[1])),
    )


def _lost(series: Series, failed: Series | None, boots: frozenset[int]) -> set[tuple[int, int]]:
    """The (boot, block) of each run that failed and was not repeated. A run that failed because a
    boot did not come up carries the number of another one: those of unknown boots are left out.
    """
    if failed is None:
        return set()
    ok = set(zip(series.boot.tolist(), series.block.tolist(), strict=True))
    places = set(zip(failed.boot.tolist(), failed.block.tolist(), strict=True))
    return {place for place in places - ok if place[0] in boots}


def _filled(series: Series, places: set[tuple[int, int]], value: float) -> Series:
    if not places:
        return series
    boot, block = np.array(sorted(places), dtype=np.int64).T
    return replace(
        series,
        block=_joined(series.block, block),
        boot=_joined(series.boot, boot),
        values=np.concatenate([series.values, np.full(len(places), value)]),
    )


def _joined(known: Places, more: Places) -> Places:
    return np.concatenate([known, more])


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


def _by_level(levels: pd.Series, is_failed: npt.NDArray[np.bool_]) -> list[FailingLevel]:
    """Each level of a factor against its other levels."""
    words = levels.astype("object").to_numpy()
    known = np.array([isinstance(word, str) for word in words])
    found: list[FailingLevel] = []
    for level in dict.fromkeys(words[known].tolist()):
        mine = words == level
        others = known & ~mine
        counts = (
            int((is_failed & mine).sum()),
            int(mine.sum()),
            int((is_failed & others).sum()),
            int(others.sum()),
        )
        found.append(FailingLevel(str(levels.name), level, *counts, fisher(*counts)))
    return found
