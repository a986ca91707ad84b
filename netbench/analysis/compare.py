"""Comparisons within a campaign: each level of a factor against a baseline, paired by block, or by
boot where there are several (pairs.py).

The mean of the paired log differences d has a Student t interval; exp(d) is the ratio of
(geometric) means. Two results were run at different times and cannot be paired: independent.py.
verdicts.py corrects the intervals over the family.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from netbench.analysis.comparison import Comparison
from netbench.analysis.intervals import mean_interval
from netbench.analysis.pairs import Rounds, Series, differences, rounds
from netbench.analysis.verdicts import corrected, tested
from netbench.model import Repeat

ZERO = "a run measured 0, which has no ratio"


def for_factor(
    runs: pd.DataFrame,
    factor: str,
    baseline: str,
    *,
    metric: str,
    factors: Sequence[str],
    repeat: Repeat,
    margin: float | None = None,
    planned: Iterable[Mapping[str, str]] = (),
    order: Rounds | None = None,
    better: int | None = None,
) -> list[Comparison]:
    """Each level of `factor` against `baseline`, all other factors equal, per pair: one family.

    runs: ok runs with columns pair, block, boot, `factors` and `metric`. repeat: what the campaign
    asked for; its confidence is that of the whole family, its min and max widen as for a mean, its
    boots say what the unit is. margin: fraction within which a difference does not matter. planned:
    the factors of every cell; a level that has no run where it was to have some is told so, unless
    the whole context has none. order: the rounds of boots, where more is known of them than `runs`
    show. better: whether more is, of a metric that a tool prints. Errors: KeyError for a factor,
    level or metric that is not there.
    """
    if factor not in factors or metric not in runs:
        raise KeyError(factor if factor not in factors else metric)
    others = [name for name in factors if name != factor]
    levels = [str(level) for level in runs[factor].cat.categories]
    if baseline not in levels:
        raise KeyError(baseline)
    contexts: dict[tuple[str, ...], dict[str, Series]] = {}
    for words, series in by_cell(runs, ["pair", *others, factor], metric):
        contexts.setdefault(words[:-1], {})[words[-1]] = series
    known = order or _rounds(runs, factor)
    levels_of: dict[tuple[str, ...], set[str]] = {}
    for cell in planned:
        levels_of.setdefault(tuple(str(cell.get(name, "")) for name in others), set()).add(
            str(cell.get(factor))
        )
    comparisons: list[Comparison] = []
    for words, by_level in contexts.items():
        context = dict(zip(others, words[1:], strict=True))
        empty = Comparison(
            factor,
            "",
            baseline,
            context,
            words[0],
            metric,
            0,
            confidence=repeat.confidence,
            margin=margin,
            better=better,
        )
        base = by_level.pop(baseline, None)
        planned_levels = levels_of.get(tuple(context.values()), set())
        for level in (
            level
            for level in levels
            if level != baseline and level in planned_levels | by_level.keys()
        ):
            comparisons.append(
                _paired(replace(empty, level=level), by_level.get(level), base, repeat.boots, known)
            )
    return corrected(comparisons, repeat)


def _rounds(runs: pd.DataFrame, factor: str) -> Rounds:
    """The rounds of boots by the levels of a factor, whatever the cell: one that failed in a boot
    leaves the others in step.
    """
    return rounds(
        group.unique().tolist()
        for _, group in runs.groupby(factor, observed=True, sort=False)["boot"]
    )


def by_cell(
    runs: pd.DataFrame, keys: list[str], metric: str
) -> Iterator[tuple[tuple[str, ...], Series]]:
    """The runs that have the metric, by the words of `keys` in their levels' order; "" for a factor
    that a cell lacks.
    """
    used = runs[runs[metric].notna()]
    columns = [pd.Categorical(used[key]) for key in keys]
    codes = np.stack([column.codes for column in columns])
    order = np.lexsort(codes[::-1])  # by the first key, then the second, ...; stable
    is_first = (np.diff(codes[:, order]) != 0).any(axis=0)
    block, boot, values = (used[name].to_numpy() for name in ("block", "boot", metric))
    for rows in np.split(order, np.flatnonzero(is_first) + 1) if len(order) else ():
        words = tuple(
            str(column.categories[code]) if code >= 0 else ""
            for column, code in zip(columns, codes[:, rows[0]], strict=True)
        )
        yield words, Series(block[rows], boot[rows], values[rows].astype(float))


def _paired(
    empty: Comparison, mine: Series | None, base: Series | None, boots: int, order: Rounds
) -> Comparison:
    """Fill ratio, p and error of one comparison from the runs of both levels."""
    if mine is None:
        return replace(empty, why=f"{empty.level} has no run here")
    if base is None:
        return replace(empty, why=f"the baseline {empty.baseline} has no run here")
    if (mine.values <= 0).any() or (base.values <= 0).any():
        return replace(empty, why=ZERO)
    unit, log_differences = differences(mine, base, boots, order)
    filled = replace(empty, n=len(log_differences), unit=unit)
    if len(log_differences) == 0:
        return replace(filled, why=f"the two have no {unit} in common")
    d = mean_interval(log_differences, 0.95)
    if not d.known:
        return replace(filled, ratio=math.exp(d.mean), why=f"one {unit} has no interval")
    return tested(replace(filled, sd=d.sd), d.mean, d.sd / math.sqrt(d.n), d.n - 1)
