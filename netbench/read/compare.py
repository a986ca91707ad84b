"""Comparisons within a campaign: each level of a factor against a baseline, paired by block, or by
boot where there are several, or by build (pairs.py).

The mean of the paired log differences d has a Student t interval, widened where blocks follow each
other (dependence.py); exp(d) is the ratio of (geometric) means. Two results were run at different
times and cannot be paired: independent.py. verdicts.py corrects the intervals over the family.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pandas as pd

from netbench.model import Repeat
from netbench.read.metrics import describe
from netbench.read.verdicts import at_level, corrected, stands, tested
from netbench.stats.boots import in_boots
from netbench.stats.comparison import DEPENDENT, MODES, Comparison, failures_said
from netbench.stats.dependence import doubted, followed
from netbench.stats.failures import absent, counted, ranked
from netbench.stats.intervals import Means, Numbers, means_of
from netbench.stats.modes import find_modes
from netbench.stats.pairs import NO_BUILDS, Builds, Rounds, Series, differences, rounds
from netbench.stats.segments import Segments, joined

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
    failed: pd.DataFrame | None = None,
) -> list[Comparison]:
    """Each level of `factor` against `baseline`, all other factors equal, per pair: one family.

    runs: ok runs with columns pair, block, boot, `factors` and `metric`. repeat: what the campaign
    asked for; its confidence is that of the whole family, its min and max widen as for a mean, its
    boots say what the unit is. margin: fraction within which a difference does not matter. planned:
    the factors of every cell; a level that has no run where it was to have some is told so, unless
    the whole context has none. order: the rounds of boots, where more is known of them than `runs`
    show. better: whether more is, of a metric that a tool prints. failed: the runs that failed,
    with the same columns; a verdict that does not stand with these ranked last is none. Errors:
    KeyError for a factor, level or metric that is not there.
    """
    if factor not in factors or metric not in runs:
        raise KeyError(factor if factor not in factors else metric)
    others = [name for name in factors if name != factor]
    levels = [str(level) for level in runs[factor].cat.categories]
    if baseline not in levels:
        raise KeyError(baseline)
    contexts: dict[tuple[str, ...], dict[str, Series]] = {}
    all_series: dict[str, list[Series]] = {}
    for words, series in by_cell(runs, ["pair", *others, factor], metric):
        all_series.setdefault(words[0], []).append(series)
        contexts.setdefault(words[:-1], {})[words[-1]] = series
    known = order or _rounds(runs, factor)
    levels_of: dict[tuple[str, ...], set[str]] = {}
    for cell in planned:
        levels_of.setdefault(tuple(str(cell.get(name, "")) for name in others), set()).add(
            str(cell.get(factor))
        )
    lost = failed_by_cell(failed, ["pair", *others, factor])
    pairings: list[Pairing] = []
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
            failures = lost.get((*words, level)), lost.get((*words, baseline))
            mine, named = by_level.get(level), empty.but(level=level)
            pairings.append(paired_runs(named, mine, base, repeat.boots, known, failures))
    family = estimated(pairings)
    planned_boots = in_boots(repeat, factors)
    comparisons = [
        c if planned_boots or c.unit != "boot" else _withheld(c) for c in corrected(family, repeat)
    ]
    apart = {pair: _apart(series) for pair, series in all_series.items()}
    doubts = estimated(pairings, doubted)
    flagged = [
        _flagged(c, doubt, apart[c.pair]) for c, doubt in zip(comparisons, doubts, strict=True)
    ]

    def again(c: Comparison, mine: Series, base: Series) -> Comparison:
        return estimated([paired_runs(c, mine, base, repeat.boots, known)])[0]

    return [
        withstood(c, p.mine, p.base, p.failed, partial(again, c)) if p.mine and p.base else c
        for c, p in zip(flagged, pairings, strict=True)
    ]


@dataclass(frozen=True)
class Pairing:
    """A comparison that is not estimated yet, the series of its cells, those of their failed runs
    (without values), and their log differences, one a unit.
    """

    comparison: Comparison
    mine: Series | None = None
    base: Series | None = None
    failed: tuple[Series | None, Series | None] = (None, None)
    differences: Numbers = field(default_factory=lambda: np.empty(0))


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
    builds = builds_of(used)
    for rows in np.split(order, np.flatnonzero(is_first) + 1) if len(order) else ():
        words = tuple(
            str(column.categories[code]) if code >= 0 else ""
            for column, code in zip(columns, codes[:, rows[0]], strict=True)
        )
        yield words, Series(block[rows], boot[rows], values[rows].astype(float), builds)


def builds_of(runs: pd.DataFrame) -> Builds:
    """The build of each boot in a frame of runs, of kernels with several."""
    if "build" not in runs:
        return NO_BUILDS
    known = runs.loc[runs["build"] > 0, ["boot", "build"]].drop_duplicates()
    return dict(zip(known["boot"].tolist(), known["build"].tolist(), strict=True))


def failed_by_cell(failed: pd.DataFrame | None, keys: list[str]) -> dict[tuple[str, ...], Series]:
    """The failed runs by the words of `keys`, with values of 0."""
    if failed is None or failed.empty:
        return {}
    return dict(by_cell(failed.assign(failed=0.0), keys, "failed"))


def paired_runs(
    empty: Comparison,
    mine: Series | None,
    base: Series | None,
    boots: int,
    order: Rounds,
    failed: tuple[Series | None, Series | None] = (None, None),
) -> Pairing:
    """Pair the runs of both levels."""
    if mine is None:
        return Pairing(empty.but(why=absent(empty.level, failed[0])))
    if base is None:
        return Pairing(empty.but(why=absent(f"the baseline {empty.baseline}", failed[1])))
    if (mine.values <= 0).any() or (base.values <= 0).any():
        return Pairing(empty.but(why=ZERO))
    unit, log_differences = differences(mine, base, boots, order)
    filled = empty.but(n=len(log_differences), unit=unit)
    return Pairing(filled, mine, base, failed, log_differences)


def estimated(
    pairings: Sequence[Pairing], in_order: Callable[[Numbers, Segments], Means] = followed
) -> list[Comparison]:
    """The comparisons with ratio, p and error, as far as their differences tell them; in_order: of
    those over blocks.
    """
    values, parts = joined([p.differences for p in pairings])
    blocks = np.array([p.comparison.unit == "block" for p in pairings], dtype=bool)
    plain, mine = means_of(values, parts), in_order(values[blocks[parts.at]], parts.only(blocks))
    error, freedom = plain.error.copy(), plain.freedom.copy()
    error[blocks], freedom[blocks] = mine.error, mine.freedom
    numbers = (each.tolist() for each in (plain.mean, plain.sd, error, freedom))
    return [_estimated(p.comparison, *each) for p, *each in zip(pairings, *numbers, strict=True)]


def _estimated(
    filled: Comparison, mean: float, sd: float, error: float, freedom: float
) -> Comparison:
    if filled.why:
        return filled
    if filled.n == 0:
        return filled.but(why=f"the two have no {filled.unit} in common")
    if filled.n == 1:
        return filled.but(ratio=math.exp(mean), why=f"one {filled.unit} has no interval")
    return tested(filled.but(sd=sd), mean, error, freedom)


def _withheld(c: Comparison) -> Comparison:
    """The comparison without a verdict: how many boots there are, and how many runs each has, was
    no plan, so nothing says how often such an interval holds.
    """
    if math.isnan(c.low):
        return c
    why = f"its runs lie in {c.n} boots that were not planned; run it anew, or with repeat.boots"
    return c.but(verdict="inconclusive", needed=None, unsettled=why)


def _apart(cells: Sequence[Series]) -> float:
    """How far the modes of a pair's runs lie apart, of logarithms; 0 where there is one mode."""
    modes = find_modes({str(at): s.values for at, s in enumerate(cells) if len(s.boots) == 1})
    return -math.log(modes.ratio) if modes else 0.0


def _flagged(comparison: Comparison, doubt: Comparison, apart: float) -> Comparison:
    """The comparison, flagged where blocks may follow each other (`doubt`: as that has it) so that
    it turns, or where its runs lie in modes that are further apart than its levels.
    """
    if comparison.unit != "block" or comparison.verdict == "inconclusive":
        return comparison
    same = stands(comparison, math.log(doubt.ratio), doubt.error, doubt.freedom)
    flags = [] if same else [DEPENDENT]
    flags += [MODES] if abs(math.log(comparison.ratio)) < apart else []
    return comparison.but(flags=(*comparison.flags, *flags))


def withstood(
    comparison: Comparison,
    mine: Series,
    base: Series,
    failed: tuple[Series | None, Series | None],
    again: Callable[[Series, Series], Comparison],
) -> Comparison:
    """The comparison with the failures of both levels; inconclusive where its verdict does not
    stand with failed runs ranked last. again: estimates it from such series of level and baseline.
    """
    lost, base_lost = failed
    counts = (len(each.values) if each else 0 for each in (mine, lost, base, base_lost))
    told = comparison.but(failures=counted(*counts))
    if told.failures is None or told.verdict == "inconclusive":
        return told
    equal, margin = told.verdict == "equivalent", told.margin or 0.0
    ends = [(1 - margin, True), (1 + margin, False)] if equal else [(1.0, told.ratio > 1)]
    known = told.better
    better = describe(told.metric).better if known is None else known
    for end, above in ends:
        scaled = replace(mine, values=mine.values / end)
        worst = again(*ranked(scaled, lost, base, base_lost, lowest=better >= 0))
        shown = at_level(worst, told.corrected)
        if not (shown.low > 1 if above else shown.high < 1):
            why = failures_said(told.failures, *told.names)
            return told.but(
                verdict="inconclusive",
                unsettled=f"{why}, and it does not stand with these ranked last",
                failures=replace(told.failures, stands=False),
            )
    return told
