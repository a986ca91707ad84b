"""Comparisons: the runs of a level against those of a baseline, in each cell and pair of a family.

Within a campaign they are paired by block, or by boot where there are several, or by build
(pairs.py): the mean of the log differences d has a Student t interval, widened where blocks follow
each other (dependence.py); exp(d) is the ratio of (geometric) means. Results are compared in
campaigns.py. verdicts.py corrects the intervals over the family.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from netbench.base.names import OF_SHARES, QUANTILES
from netbench.model import Repeat
from netbench.read.metrics import describe
from netbench.read.result import Result
from netbench.read.verdicts import at_level, corrected, stands, tested
from netbench.stats.by_boot import KERNEL, Builds, in_boots
from netbench.stats.comparison import (
    CHANGES,
    CUT_SHORT,
    DEPENDENT,
    FEW,
    FEW_RUNS,
    LATE_CLIENT,
    NO_LATENESS,
    UNPLANNED,
    Comparison,
    undone_by_failures,
)
from netbench.stats.dependence import correlations, followed, in_common, widened
from netbench.stats.failures import absent, counted, ranked
from netbench.stats.intervals import Numbers, means_of
from netbench.stats.pairs import NO_BUILDS, Rounds, Series, differences, rounds

ZERO = "a run measured 0, which has no ratio"
Place = tuple[str, str]
"""(cell, pair)"""


LATE = 0.1  # of the latency: what a client's own delay may be
LATENCIES = ("latency", *QUANTILES, "max")  # quantiles ascending


NEVER = ("refused", "unsupported")
"""Statuses of what could not be run."""


class Sides(NamedTuple):
    """What is to be compared: a comparison without numbers, the runs of its level and of its
    baseline, and those that failed (without values). `place`: of two results, that of A.
    """

    comparison: Comparison
    mine: Series | None
    base: Series | None
    failed: tuple[Series | None, Series | None] = (None, None)
    never: tuple[str, str] = ("", "")  # of NEVER, where all its runs are
    place: Place = ("", "")
    by: tuple[set[str], set[str]] = (set(), set())  # of two results, the meters of bare names

    @property
    def why(self) -> str:
        """Why there is no ratio; "" where there is one."""
        c = self.comparison
        if all(self.by) and self.by[0].isdisjoint(self.by[1]):
            one, other = (" and ".join(sorted(each)) for each in self.by)
            return f"A's is by {one}, B's by {other}; name the meter, as {c.metric}.rusage"
        if self.mine is None:
            return absent(c.names[0], self.failed[0], c.metric, self.never[0])
        if self.base is None:
            return absent(c.names[1], self.failed[1], c.metric, self.never[1])
        none = (self.mine.values <= 0).any() or (self.base.values <= 0).any()
        return ZERO if none else ""

    @property
    def doubt(self) -> str:
        """Why what was measured gives no verdict; "" where it does."""
        return max(each.doubt if each else "" for each in (self.mine, self.base))


Estimate = Callable[[Sides], Comparison]
"""Gives a comparison its ratio, p and error."""


def compared(
    family: Sequence[Sides],
    repeat: Repeat,
    estimate: Estimate,
    finished: Callable[[list[Comparison]], list[Comparison]] = list,
    again: Estimate | None = None,
) -> list[Comparison]:
    """A family with its verdicts, where what was measured can carry one. finished: what is known
    of the verdicts besides; again: as estimate, of runs as ranks (failures.py).
    """
    results = finished(corrected([estimate(sides) for sides in family], repeat))
    results = [withheld(c, s.doubt) for c, s in zip(results, family, strict=True)]
    return [_withstood(c, s, again or estimate) for c, s in zip(results, family, strict=True)]


def in_result(
    result: Result,
    metric: str,
    factor: str,
    baseline: str,
    margin: float | None = None,
    runs: pd.DataFrame | None = None,
    everywhere: bool = False,
) -> list[Comparison]:
    """for_factor of a result; runs: those of its ok runs that count here. Errors: KeyError."""
    return for_factor(
        result.ok if runs is None else runs,
        factor,
        baseline,
        metric=metric,
        factors=result.swept,
        repeat=result.repeat,
        margin=margin,
        planned=[cell.factors for cell in result.cells],
        order=result.rounds if factor == KERNEL else None,
        better=result.describe(metric).better if metric in result.metrics else None,
        failed=result.lost(metric, ("failed", *NEVER)),
        everywhere=result.plan.pairs if everywhere else (),
    )


def changed(result: Result) -> set[Place]:
    """The cells that are better or worse than the baseline in throughput, CPU time or CPU time per
    byte, with their baselines, which a profile is to explain; none where the campaign compares
    nothing.
    """
    asked = result.compare
    if asked is None or asked.factor not in result.factors:
        return set()
    cell_of = {result.levels(each.factors): each.cell for each in result.cells}
    return {
        (cell_of[result.levels({**c.context, asked.factor: level})], c.pair)
        for metric in result.metrics
        if metric in ("throughput", "transactions") or metric.endswith(("_cpu", "_demand"))
        for c in in_result(result, metric, asked.factor, asked.baseline, asked.margin)
        if c.verdict in CHANGES
        or (c.unsettled in (FEW_RUNS, CUT_SHORT) and not c.low <= 1 <= c.high)
        for level in (c.level, c.baseline)
    }


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
    everywhere: Sequence[str] = (),
) -> list[Comparison]:
    """Each level of `factor` against `baseline`, all other factors equal, per pair: one family.

    runs: ok runs with columns pair, block, boot, `factors` and `metric`. repeat: what the campaign
    asked for; its confidence is that of the whole family, its min and max widen as for a mean, its
    boots say what the unit is. margin: fraction within which a difference does not matter. planned:
    the factors of every cell; a level that has no run where it was to have some is told so, unless
    the whole context has none, but of `everywhere`, all pairs, where it could have the metric, or
    has no ok run. order: the rounds of boots, where more is known of them than `runs` show. better:
    whether more is, of a metric that a tool prints. failed: the runs that failed, with the same
    columns; a verdict that does not stand with these ranked last is none; and those that could not
    be made. Errors: KeyError for a factor, level or metric that is not there.
    """
    if factor not in factors or metric not in runs:
        raise KeyError(factor if factor not in factors else metric)
    others = [name for name in factors if name != factor]
    levels = [str(level) for level in runs[factor].cat.categories]
    if baseline not in levels:
        raise KeyError(baseline)
    keys = ["pair", *others, factor]
    contexts: dict[tuple[str, ...], dict[str, Series]] = {}
    for words, series in by_cell(runs, keys, metric):
        contexts.setdefault(words[:-1], {})[words[-1]] = series
    if not order:  # by level, whatever the cell: one that failed in a boot leaves the others
        boots = runs.groupby(factor, observed=True, sort=False)["boot"]
        order = rounds(each.unique().tolist() for _, each in boots)
    known = order
    places = {tuple(str(cell.get(name, "")) for name in (*others, factor)) for cell in planned}
    lost: dict[str, dict[tuple[str, ...], Series]] = {}
    gone = pd.DataFrame({"status": []}) if failed is None else failed
    for status in ("failed", *NEVER):
        rows = gone[gone["status"] == status]
        lost[status] = dict(by_cell(rows.assign(failed=0.0), keys, "failed")) if len(rows) else {}
    bad = lost.get("failed", {})

    def never(place: tuple[str, ...]) -> str:
        return next((status for status in NEVER if place in lost.get(status, {})), "")

    if everywhere:
        known_kind = {words[:-1] for words, _ in by_cell(runs, keys, "block")}
        could = {words[:-1] for words, _ in by_cell(runs, keys, with_which(metric, runs))}
        of_plan = {(pair, *place[:-1]) for pair in everywhere for place in places}
        none = of_plan.union(each[:-1] for of in lost.values() for each in of) - known_kind
        for words in sorted(could | none):
            contexts.setdefault(words, {})
    empty = Comparison(factor, "", baseline, {}, "", metric, 0, confidence=repeat.confidence)
    empty = empty.but(margin=margin, better=better)
    family = [
        Sides(
            empty.but(level=level, context=dict(zip(others, context, strict=True)), pair=pair),
            by_level.get(level),
            by_level.get(baseline),
            (bad.get((pair, *context, level)), bad.get((pair, *context, baseline))),
            (never((pair, *context, level)), never((pair, *context, baseline))),
        )
        for (pair, *context), by_level in contexts.items()
        if not places or baseline in by_level or (*context, baseline) in places
        for level in levels
        if level != baseline and (level in by_level or (*context, level) in places)
    ]

    def paired(sides: Sides) -> tuple[Comparison, Numbers]:
        return log_differences(sides, repeat.boots, known)

    def finished(judged: list[Comparison]) -> list[Comparison]:
        if not in_boots(repeat, factors):
            judged = [withheld(c, unplanned(c, repeat, c.n)) for c in judged]
        if all(c.unit != "block" or c.verdict == "inconclusive" for c in judged):
            return judged
        values = [paired(sides)[1] for sides in family]
        rho = in_common(*np.array([correlations(each) for each in values]).T)
        return [_flagged(c, each, rho) for c, each in zip(judged, values, strict=True)]

    return compared(family, repeat, lambda sides: estimated(*paired(sides)), finished)


def with_which(metric: str, runs: pd.DataFrame) -> str:
    """The metric that a run has which could have this one: of a quantile its mean."""
    of = metric.rpartition("_")[0]
    means = [name for name in (of, f"{of}_latency".lstrip("_")) if name in runs]
    return means[0] if metric in OF_SHARES and means else metric


def by_cell(
    runs: pd.DataFrame, keys: list[str], metric: str
) -> Iterator[tuple[tuple[str, ...], Series]]:
    """The runs with the metric, by words of `keys` in their levels' order; or ""."""
    used = runs[runs[metric].notna()]
    columns = [pd.Categorical(used[key]) for key in keys]
    codes = np.stack([column.codes for column in columns])
    order = np.lexsort(codes[::-1])  # by the first key, then the second, ...; stable
    is_first = (np.diff(codes[:, order]) != 0).any(axis=0)
    block, boot, values = (used[name].to_numpy() for name in ("block", "boot", metric))
    builds, doubts = builds_of(used), doubts_of(used, metric)
    for rows in np.split(order, np.flatnonzero(is_first) + 1) if len(order) else ():
        words = tuple(
            str(column.categories[code]) if code >= 0 else ""
            for column, code in zip(columns, codes[:, rows[0]], strict=True)
        )
        doubt = max(doubts[rows]) if doubts is not None else ""
        yield words, Series(block[rows], boot[rows], values[rows].astype(float), builds, doubt)


def builds_of(runs: pd.DataFrame) -> Builds:
    """The build of each boot in a frame of runs, of kernels with several."""
    if "build" not in runs:
        return NO_BUILDS
    known = runs.loc[runs["build"] > 0, ["boot", "build"]].drop_duplicates()
    return dict(zip(known["boot"].tolist(), known["build"].tolist(), strict=True))


def by_place(runs: pd.DataFrame, metric: str) -> dict[Place, Series]:
    """The runs of each (cell, pair) that have the metric."""
    return {(words[0], words[1]): each for words, each in by_cell(runs, ["cell", "pair"], metric)}


def log_differences(sides: Sides, boots: int, order: Rounds) -> tuple[Comparison, Numbers]:
    """The comparison with its unit and n, and the log differences of paired runs, one a unit."""
    if sides.why or sides.mine is None or sides.base is None:
        return sides.comparison.but(why=sides.why), np.empty(0)
    unit, logs = differences(sides.mine, sides.base, boots, order)
    return sides.comparison.but(n=len(logs), unit=unit), logs


def estimated(filled: Comparison, log_differences: Numbers) -> Comparison:
    """The comparison with ratio, p and error, as far as its differences tell them."""
    if filled.why:
        return filled
    if filled.n == 0:
        return filled.but(why=f"the two have no {filled.unit} in common")
    means = (followed if filled.unit == "block" else means_of)(log_differences)
    if filled.n == 1:
        why = f"one {filled.unit} has no interval"
        return filled.but(ratio=math.exp(means.mean), why=why)
    numbers = float(means.mean), float(means.error), float(means.freedom)
    return tested(filled.but(sd=float(means.sd)), *numbers)


def delay_in(runs: pd.DataFrame, metric: str) -> Numbers:
    """What share of a latency of each run its client's own delay is: of a mean the mean one; of a
    quantile that of the quantile, or of the nearest above that is known. NaN: none is; 0: it is no
    open loop.
    """
    names = ["lateness", *(f"lateness_{name}" for name in LATENCIES[1:])]
    own = runs.reindex(columns=names).astype(float)
    at = LATENCIES.index(metric)
    lateness = own.iloc[:, at : at + 1] if at == 0 else own.iloc[:, at:].bfill(axis=1)
    share = lateness.iloc[:, 0] / runs.reindex(columns=[metric])[metric].astype(float)
    return share.where(own.notna().any(axis=1), 0.0).to_numpy()


def late_of(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs of an open loop whose client's own delay is in what they measured: in the p99, or in
    the mean where too few requests have one.
    """
    share = delay_in(runs, "p99")
    return runs[np.where(np.isnan(share), delay_in(runs, "latency"), share) > LATE]


def doubts_of(runs: pd.DataFrame, metric: str) -> npt.NDArray[np.str_] | None:
    """Of each run why it gives no verdict in a metric, or ""; None: none is in doubt."""
    if metric not in LATENCIES:
        return None
    share = delay_in(runs, metric)
    return np.select([share > LATE, np.isnan(share)], [LATE_CLIENT, NO_LATENESS], "")


def unplanned(c: Comparison, repeat: Repeat, n: int) -> str:
    """Why n runs as they were made give no verdict: they are for trying, or all that there is of a
    campaign that ended early; or their boots were no plan: nothing says how often that holds.
    """
    if repeat.max <= FEW:
        return FEW_RUNS
    if c.unit in ("block", "run") and n < min(repeat.min, FEW + 1):
        return CUT_SHORT
    return UNPLANNED if c.unit == "boot" else ""


def withheld(c: Comparison, why: str) -> Comparison:
    """The comparison, without a verdict where there is a reason for none; the first is told."""
    if math.isnan(c.low) or not why or c.refused:
        return c
    return c.but(verdict="inconclusive", unsettled=why, flags=())


def _flagged(c: Comparison, log_differences: Numbers, rho: Numbers) -> Comparison:
    """The comparison, flagged where blocks may follow each other (`rho`: by how much all of the
    family show) so that it turns.
    """
    if c.unit != "block" or c.verdict == "inconclusive":
        return c
    doubt = widened(means_of(log_differences), rho)
    same = stands(c, float(doubt.mean), float(doubt.error), float(doubt.freedom))
    return c if same else c.but(flags=(*c.flags, DEPENDENT))


def _withstood(c: Comparison, sides: Sides, again: Estimate) -> Comparison:
    """The comparison with the failures of both levels; inconclusive where its verdict does not
    stand with failed runs ranked last.
    """
    mine, base, (lost, base_lost) = sides.mine, sides.base, sides.failed
    if mine is None or base is None:
        return c
    counts = (len(each.values) if each else 0 for each in (mine, lost, base, base_lost))
    failures = counted(*counts)
    known = c.but(failures=failures)
    if failures is None:
        return known
    equal, margin = known.verdict == "equivalent", known.margin or 0.0
    ends = [(1 - margin, True), (1 + margin, False)] if equal else [(1.0, known.ratio > 1)]
    better = describe(known.metric).better if known.better is None else known.better

    def stands_at(end: float, above: bool, side: int = 0) -> bool:
        scaled = replace(mine, values=mine.values / end)
        worst = ranked(scaled, lost, base, base_lost, lowest=(better or side) >= 0)
        shown = at_level(again(sides._replace(mine=worst[0], base=worst[1])), known.corrected)
        return shown.low > 1 if above else shown.high < 1

    known = known.but(stands_at=stands_at)
    if known.verdict == "inconclusive" or all(stands_at(*each) for each in ends):
        return known
    why, fallen = undone_by_failures(known), replace(failures, stands=False)
    return known.but(verdict="inconclusive", unsettled=why, failures=fallen)
