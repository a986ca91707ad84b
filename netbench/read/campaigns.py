"""Comparisons of results, cell by cell: of two, or of two states that were measured in turns.

Two results ran at different times, so nothing pairs them: the logarithms of their runs (of their
boots' means, where both have several boots) are independent samples, compared by Welch's t (Welch
1947, doi:10.1093/biomet/34.1-2.28). That interval holds what the runs differ by, not what the
campaign's level moves by from one time to another, so it gives no verdict. With earlier results of
the campaign the interval holds their spread, too (history.py), and gives one.

Of A, B, A again, B again each A and the B beside it are a pair, the campaign is the unit, and the
mean of the pairs' log differences has a Student t interval. What drifts from pair to pair cancels.
That takes turns: of A A B B a drift is part of every difference, so that there is no interval. Of a
steady drift one step is left where B always comes second (A B A B), and none where the order turns
(A B B A).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from netbench.base.units import count
from netbench.model import Repeat
from netbench.read.compare import Place, Sides, by_place, compared, estimated, log_differences
from netbench.read.history import FEWEST, History, Level, spread, units
from netbench.read.matching import A, B, Match, Matching, match
from netbench.read.result import Result
from netbench.read.verdicts import tested
from netbench.stats.comparison import CAMPAIGN, RESULT, Comparison
from netbench.stats.intervals import sequential_confidence, welch_error
from netbench.stats.pairs import Series

STATES = (A, B)


def independent(
    a: Result,
    b: Result,
    matches: Sequence[Match],
    metric: str,
    margin: float | None = None,
    history: History | None = None,
) -> list[Comparison]:
    """B against A in one metric, a comparison a match: one family. The metric must be in both.

    history: earlier results. What fewer than FEWEST of them have stays without a verdict.
    """

    def strictness(repeat: Repeat) -> tuple[float, float]:
        widened = sequential_confidence(repeat.confidence, repeat.min, repeat.max)
        return repeat.confidence, widened

    repeat = max((a.repeat, b.repeat), key=strictness)
    empty = _empty(b, metric, repeat, margin).but(unit="run", against=0, earlier=0)
    earlier = history.levels(a, metric) if history else {}
    base, mine = (by_place(result.ok, metric) for result in (a, b))
    base_lost, lost = map(_failed, (a, b))
    family = [
        Sides(
            empty.but(context=m.context, pair=m.pair),
            mine.get(m.b),
            base.get(m.a),
            (lost.get(m.b), base_lost.get(m.a)),
            m.a,
        )
        for m in matches
    ]
    return compared(
        family,
        repeat,
        lambda sides: _welch(sides, earlier.get(sides.place, [])),
        lambda judged: [_told(c) for c in judged],
        again=lambda sides: _welch(sides, []),
    )


def _failed(result: Result) -> Mapping[Place, Series]:
    """The failed runs of a result, with values of 0."""
    return by_place(result.failed.assign(failed=0.0), "failed")


def _empty(result: Result, metric: str, repeat: Repeat, margin: float | None) -> Comparison:
    c = Comparison(RESULT, B, A, {}, "", metric, 0, CAMPAIGN, confidence=repeat.confidence)
    return c.but(margin=margin, better=result.describe(metric).better)


def _welch(sides: Sides, earlier: Sequence[Level]) -> Comparison:
    """One comparison of two results without its interval; earlier: the levels of the cell in
    earlier results.
    """
    empty, mine, base = sides.comparison, sides.mine, sides.base
    if sides.why or mine is None or base is None:
        return empty.but(why=sides.why)
    boots = [len(each.boots) for each in (base, mine)]
    there, here = units(base), units(mine)
    unit, sizes = ("boot", boots) if max(boots) > 1 else ("run", [len(there), len(here)])
    if unit == "boot" and all(s.builds.keys() >= s.boots for s in (base, mine)):
        unit, sizes = "build", [len(there), len(here)]
    d = float(here.mean() - there.mean())
    filled = empty.but(n=sizes[1], against=sizes[0], unit=unit)
    if min(boots) == 1 < max(boots):
        one, many = STATES if boots[0] == 1 else STATES[::-1]
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
    return tested(filled, d, math.sqrt(total), len(means) - 1)


def _told(c: Comparison) -> Comparison:
    """The comparison without a verdict that no earlier results support, and with the reason why
    there is none. How many runs would settle it is not known: more of them within a campaign do not
    tell how far campaigns lie apart.
    """
    if math.isnan(c.low) or (c.verdict != "inconclusive" and not c.lacks_history):
        return c
    why = f"{c.earlier} earlier results differ by {c.between:.2%} (standard deviation)"
    if c.lacks_history:
        known = f", and {count(c.earlier, 'earlier result')} has no spread" if c.earlier else ""
        why = f"one campaign each cannot tell a change from what two campaigns differ by{known}"
    return c.but(verdict="inconclusive", needed=None, unsettled=why)


@dataclass(frozen=True)
class Turns:
    """Campaigns of two states, each in the order of time. `order`: the states in that order, `A B A
    B`; `alternate`: whether each two in succession hold one of each.
    """

    a: tuple[Result, ...]
    b: tuple[Result, ...]
    order: str
    alternate: bool

    @property
    def all(self) -> tuple[Result, ...]:
        return (*self.a, *self.b)


def turns(a: Sequence[Result], b: Sequence[Result]) -> Turns:
    """The campaigns of A and of B, as many of each, in the order in which they began; of those with
    no start in the order given.
    """
    begun = [
        (pd.to_datetime(result.runs["started"].dropna(), utc=True).min(), state, result)
        for state, each in zip(STATES, (a, b), strict=True)
        for result in each
    ]
    known = not any(pd.isna(start) for start, *_ in begun)
    last = pd.Timestamp.max.tz_localize("UTC")
    in_time = sorted(begun, key=lambda each: last if pd.isna(each[0]) else each[0])
    names = [state for _, state, _ in in_time]
    alternate = known and all({*names[i : i + 2]} == {A, B} for i in range(0, len(names), 2))
    mine, others = (tuple(r for _, state, r in in_time if state == one) for one in STATES)
    return Turns(mine, others, " ".join(names), alternate)


def matched(taken: Turns) -> tuple[Matching, list[Mapping[Place, Place]]]:
    """The cells that all campaigns have, as matches of the first A and the first B, and for each
    campaign, in the order of `all`, which of its cells each cell of the first A is.
    """
    first, rest = taken.all[0], taken.all[1:]
    whole = match(first, taken.b[0])
    places: list[Mapping[Place, Place]] = []
    notes = list(whole.notes)
    for result in rest:
        found = match(first, result)
        of_a = [m.a for m in found.matches]
        places.append({m.a: m.b for m in found.matches if of_a.count(m.a) == 1})
        notes += [] if result is taken.b[0] else [f"{result.path}: {n}" for n in found.notes]
    common = tuple(m for m in whole.matches if all(m.a in each for each in places))
    return Matching(common, tuple(notes)), [{m.a: m.a for m in common}, *places]


def in_turns(
    taken: Turns,
    matches: Sequence[Match],
    places: Sequence[Mapping[Place, Place]],
    metric: str,
    margin: float | None = None,
) -> list[Comparison]:
    """B against A in one metric, a comparison a match: one family. The metric must be in all."""
    pairs = len(taken.a)
    order = {at: at % pairs for at in range(2 * pairs)}
    repeat = max((result.repeat for result in taken.all), key=lambda r: r.confidence)
    runs = [by_place(result.ok, metric) for result in taken.all]
    lost = [_failed(result) for result in taken.all]
    empty = _empty(taken.a[0], metric, repeat, margin)

    def of_state(cells: Sequence[Mapping[Place, Series]], m: Match, state: str) -> Series | None:
        """The runs of a cell in the campaigns of a state, each as if it were a boot."""
        first = STATES.index(state) * pairs
        each = [(i, cells[i].get(places[i][m.a])) for i in range(first, first + pairs)]
        known = [(i, series) for i, series in each if series is not None]
        if not known:
            return None
        return Series(
            np.concatenate([series.block for _, series in known]),
            np.concatenate([np.full(len(series.values), i) for i, series in known]),
            np.concatenate([series.values for _, series in known]),
        )

    def estimate(sides: Sides) -> Comparison:
        filled, found = log_differences(sides, 1, order)
        filled = filled.but(unit=CAMPAIGN)
        if filled.why:
            return filled
        if filled.n < 2:
            return filled.but(why=f"{filled.n} pairs of campaigns have no interval")
        if not taken.alternate:
            why = f"the campaigns took no turns ({taken.order})"
            return filled.but(ratio=math.exp(found.mean()), why=why)
        return estimated(filled, found)

    family = [
        Sides(
            empty.but(context=m.context, pair=m.pair),
            of_state(runs, m, B),
            of_state(runs, m, A),
            (of_state(lost, m, B), of_state(lost, m, A)),
        )
        for m in matches
    ]
    return compared(family, repeat, estimate)
