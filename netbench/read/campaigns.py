"""Comparisons of two results, cell by cell.

Two results ran at different times, so nothing pairs them: the logarithms of their runs (of their
boots' means, where both have several boots) are independent samples, compared by Welch's t (Welch
1947, doi:10.1093/biomet/34.1-2.28). That interval holds what the runs differ by, not what the
campaign's level moves by from one time to another, so it gives no verdict.

Only other campaigns tell by how much two of the same cells differ although nothing was changed
between them. Each earlier result gives one mean of logarithms for a cell, and the variance T of
these means holds the campaign's level and the runs of one campaign. Without a change A and B are
draws as these are, so the variance of B - A is 2 T, and (B - A) / sqrt(2 T) of k earlier results is
Student's t with k - 1 degrees of freedom: that interval gives a verdict. Cells of one campaign
share its level, so they are not pooled: that would count the same campaigns again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from netbench.base.errors import NetbenchError, unreadable
from netbench.base.opening import walk
from netbench.base.units import count, listed
from netbench.read.compare import Place, Sides, by_place, compared, unplanned, with_which, withheld
from netbench.read.load import load
from netbench.read.matching import NAMED, A, B, Match, differences, match
from netbench.read.meter_choice import meters_at
from netbench.read.result import Result, in_one_unit
from netbench.read.verdicts import tested
from netbench.result.files import read_plan
from netbench.stats.by_boot import in_boots
from netbench.stats.comparison import RESULT, Comparison
from netbench.stats.dependence import followed
from netbench.stats.intervals import Numbers, means_of, sequential_confidence, welch_error
from netbench.stats.pairs import Series, by_unit

FEWEST = 2  # earlier results that have a spread


class Level(NamedTuple):
    """What one campaign says of one cell: the mean of its logarithms, the variance of that mean as
    its own runs (boots, where there are several) show it, and how many of these there are.
    """

    mean: float
    variance: float
    boots: int


class History(NamedTuple):
    """Earlier results of a campaign below `folder`, and in words what was left out or differs."""

    folder: Path
    results: tuple[Result, ...] = ()
    notes: tuple[str, ...] = ()

    def levels(self, a: Result, metric: str) -> Mapping[Place, list[Level]]:
        """What earlier results say of each cell and pair of A that they match alone."""
        levels_at: dict[Place, list[Level]] = {}
        for result in (each for each in self.results if metric in each.metrics):
            series = by_place(result.ok, metric)
            own, by = (meters_at(each.ok, metric) for each in (a, result))
            matches = match(a, result).matches
            places = [m.a for m in matches]
            for m in matches:
                runs = series.get(m.b)
                if own.get(m.a, set()).isdisjoint(by.get(m.b, set())) and own and by:
                    continue
                if places.count(m.a) == 1 and runs is not None and (runs.values > 0).all():
                    levels_at.setdefault(m.a, []).append(_level(runs))
        return levels_at


def _level(series: Series) -> Level:
    """The level of a cell, by its boots where it has several; one value has no variance (NaN)."""
    logs, boots = _units(series), len(series.boots)
    estimate = followed if boots == 1 else means_of
    variance = float(estimate(logs).error) ** 2 if len(logs) > 1 else np.nan
    return Level(float(logs.mean()), variance, boots)


def _units(series: Series) -> Numbers:
    """The logarithms of runs, or their means by boot or build where there are several boots."""
    logs = series.logs
    return by_unit(series.boot, logs, series.builds)[1] if len(series.boots) > 1 else logs


def spread(means: Numbers, within: Numbers, own: Numbers) -> Numbers:
    """Variance of B - A where nothing was changed, with k - 1 degrees of freedom.

    means: of k earlier results along the last axis; within: the variances of these means by their
    own runs (NaN: not known); own: the variance of B - A by the runs of A and B alone, below which
    it never is. Where A and B have fewer runs than the earlier results, what that adds is added.
    Degrees of freedom that it would add (Satterthwaite) are not taken: with two earlier results
    that happened to lie close together it would find 10% differences where there are none.
    """
    known = np.where(np.isnan(within), np.inf, within)
    fewer_runs = np.maximum(0.0, own - 2 * known.mean(axis=-1))
    total: Numbers = np.maximum(2 * means.var(axis=-1, ddof=1) + fewer_runs, own)
    return total


def find(folder: Path, a: Result, b: Result) -> History:
    """The other results of A's campaign below a folder, in the order of their paths, parts last.
    What has a run of A, of B or of one before it, by when that began, is a copy of these or a part
    of them, and does not count. Those that cannot be read are named, and what others differ in from
    A: it is part of the spread.
    """
    below: list[tuple[bool, Path]] = []
    for plan in (file for file in walk(folder) if file.name == "plan.json"):
        with suppress(NetbenchError):  # it does not say whose it is
            known = read_plan(plan)
            if known.name == a.name and plan.with_name("records.jsonl").is_file():
                below.append((known.part is not None, plan.parent))
    seen = _starts(a) | _starts(b)
    results: list[Result] = []
    notes: list[str] = []
    for _, path in sorted(below):
        with unreadable(path) as why:
            result = load(path)
            if not seen & _starts(result):
                seen |= _starts(result)
                results.append(result)
        notes += [f"left out of the history: {path}: {each}" for each in why]
    for result in results:
        if what := list(dict.fromkeys(d.what for d in differences(a, result))):
            notes.append(
                f"{result.path} differs from A in {listed(what, NAMED)}; what that changes is part"
                " of the spread between earlier results"
            )
    (_, *alike), odd = in_one_unit([a, *results])
    return History(folder, tuple(alike), (*notes, *odd))


def _starts(result: Result) -> set[object]:
    return set(result.runs["started"].dropna())


def could_have(a: Result, b: Result, matches: Sequence[Match], metric: str) -> list[Match]:
    """The matches of which a run has the metric or could, or one of both has no ok run."""
    (has, ok), (had, fine) = (
        (by_place(r.ok, with_which(metric, r.ok)), by_place(r.ok, "block")) for r in (a, b)
    )
    return [m for m in matches if m.a in has or m.b in had or m.a not in ok or m.b not in fine]


def compare_results(
    a: Result,
    b: Result,
    matches: Sequence[Match],
    metric: str,
    margin: float | None = None,
    history: History | None = None,
) -> list[Comparison]:
    """B against A in one metric, which both must have, a comparison a match: one family. What fewer
    than FEWEST earlier results have stays without a verdict.
    """
    repeat = max(
        (a.repeat, b.repeat),
        key=lambda r: (r.confidence, sequential_confidence(r.confidence, r.min, r.max)),
    )
    empty = Comparison(RESULT, B, A, {}, "", metric, 0, "run", confidence=repeat.confidence)
    empty = empty.but(margin=margin, better=a.describe(metric).better, against=0, earlier=0)
    ok = [by_place(result.ok, metric) for result in (a, b)]
    lost = [by_place(result.lost(metric).assign(failed=0.0), "failed") for result in (a, b)]
    by = [meters_at(result.ok, metric) for result in (a, b)]
    family = [
        Sides(
            empty.but(context=m.context, pair=m.pair),
            ok[1].get(m.b),
            ok[0].get(m.a),
            (lost[1].get(m.b), lost[0].get(m.a)),
            place=m.a,
            by=(by[0].get(m.a, set()), by[1].get(m.b, set())),
        )
        for m in matches
    ]
    earlier = history.levels(a, metric) if history else {}

    def finished(judged: list[Comparison]) -> list[Comparison]:
        told = [_told(c) for c in judged]
        for r, n in ((a, "against"), (b, "n")):
            if not in_boots(r.repeat, r.swept):
                told = [withheld(c, unplanned(c, r.repeat, getattr(c, n))) for c in told]
        return told

    return compared(
        family,
        repeat,
        lambda sides: _welch(sides, earlier.get(sides.place, [])),
        finished,
        again=lambda sides: _welch(sides, []),
    )


def _welch(sides: Sides, earlier: Sequence[Level]) -> Comparison:
    """One comparison of two results without its interval; earlier: the cell's earlier levels."""
    empty, mine, base = sides.comparison, sides.mine, sides.base
    if sides.why or mine is None or base is None:
        return empty.but(why=sides.why)
    boots = [len(each.boots) for each in (base, mine)]
    there, here = _units(base), _units(mine)
    unit, sizes = ("boot", boots) if max(boots) > 1 else ("run", [len(there), len(here)])
    if unit == "boot" and all(s.builds.keys() >= s.boots for s in (base, mine)):
        unit, sizes = "build", [len(there), len(here)]
    d = float(here.mean() - there.mean())
    filled = empty.but(n=sizes[1], against=sizes[0], unit=unit)
    if min(boots) == 1 < max(boots):
        one, many = (A, B) if boots[0] == 1 else (B, A)
        apart = f"how far boots of {one} lie apart is not known"
        why = f"{one} has one boot and {many} {max(boots)}: {apart}"
        return filled.but(ratio=math.exp(d), why=why)
    if min(len(here), len(there)) < 2:
        return filled.but(ratio=math.exp(d), why=f"one {unit} has no interval")
    # the spread of means over more boots says too little of these
    levels = [one for one in earlier if one.boots <= min(boots)]
    error, freedom = welch_error(here, there)
    sd = math.hypot(here.std(ddof=1), there.std(ddof=1))
    filled = filled.but(earlier=len(levels), sd=sd)
    if len(levels) < FEWEST:
        return tested(filled, d, error, freedom)
    means, within = np.array([(one.mean, one.variance) for one in levels]).T
    total = float(spread(means, within, np.array(error**2)))
    filled = filled.but(between=float(means.std(ddof=1)))
    return tested(filled, d, math.sqrt(total), min(len(means) - 1, freedom))  # either may be few


def _told(c: Comparison) -> Comparison:
    """The comparison with the reason why no earlier results support a verdict."""
    if math.isnan(c.low) or (c.verdict != "inconclusive" and not c.lacks_history):
        return c
    why = f"{c.earlier} earlier results differ by {c.between:.2%} (standard deviation)"
    if c.lacks_history:
        known = f", and {count(c.earlier, 'earlier result')} has no spread" if c.earlier else ""
        why = f"one campaign each cannot tell a change from what two campaigns differ by{known}"
    return c.but(verdict="inconclusive", unsettled=why)
