"""Two states that were measured in turns: A, B, A again, B again, a campaign each.

What a campaign's level moves by from one time to another is in the differences of successive
campaigns, so these tell it: each A and the B beside it are a pair, the campaign is the unit, and
the mean of the pairs' log differences has a Student t interval. What drifts from pair to pair
cancels. That takes turns: of A A B B a drift is part of every difference, so that there is no
interval. Of a steady drift one step is left where B always comes second (A B A B), and none where
the order turns (A B B A).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd

from netbench.read.compare import by_cell, estimated, failed_by_cell, paired_runs, withstood
from netbench.read.matching import A, B, Match, Matching, Place, match
from netbench.read.result import Result
from netbench.read.verdicts import corrected
from netbench.stats.comparison import CAMPAIGN, RESULT, Comparison
from netbench.stats.pairs import NO_BUILDS, Series

STATES = (A, B)


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
    states = [
        (_begun(result), state, result)
        for state, each in zip(STATES, (a, b), strict=True)
        for result in each
    ]
    in_time = sorted(states, key=lambda each: each[0])
    names = [state for _, state, _ in in_time]
    known = all(begun < pd.Timestamp.max.tz_localize("UTC") for begun, *_ in states)
    alternate = known and all({*names[i : i + 2]} == {A, B} for i in range(0, len(names), 2))
    mine, others = (
        tuple(result for _, state, result in in_time if state == wanted) for wanted in STATES
    )
    return Turns(mine, others, " ".join(names), alternate)


def _begun(result: Result) -> pd.Timestamp:
    started = pd.to_datetime(result.runs["started"].dropna(), utc=True)
    return started.min() if len(started) else pd.Timestamp.max.tz_localize("UTC")


def matched(taken: Turns) -> tuple[Matching, list[dict[Place, Place]]]:
    """The cells that all campaigns have, as matches of the first A and the first B, and for each
    campaign, in the order of `all`, which of its cells each cell of the first A is.
    """
    first, rest = taken.all[0], taken.all[1:]
    whole = match(first, taken.b[0])
    places: list[dict[Place, Place]] = [{}]
    notes = list(whole.notes)
    for result in rest:
        found = match(first, result)
        of_a = [m.a for m in found.matches]
        places.append({m.a: m.b for m in found.matches if of_a.count(m.a) == 1})
        notes += [] if result is taken.b[0] else [f"{result.path}: {n}" for n in found.notes]
    common = tuple(m for m in whole.matches if all(m.a in each for each in places[1:]))
    places[0] = {m.a: m.a for m in common}
    return Matching(common, tuple(notes)), places


def compared(
    taken: Turns,
    matches: Sequence[Match],
    places: Sequence[dict[Place, Place]],
    metric: str,
    margin: float | None = None,
) -> list[Comparison]:
    """B against A in one metric, a comparison a match: one family. The metric must be in all."""
    count = len(taken.a)
    runs = [_cells(result, metric) for result in taken.all]
    lost = [failed_by_cell(result.failed, ["cell", "pair"]) for result in taken.all]
    order = {at: at % count for at in range(2 * count)}
    repeat = max((result.repeat for result in taken.all), key=lambda r: r.confidence)
    empty = Comparison(
        RESULT, B, A, {}, "", metric, 0, CAMPAIGN, confidence=repeat.confidence, margin=margin
    )
    empty = replace(empty, better=taken.a[0].describe(metric).better)

    def again(base: Comparison, mine: Series | None, other: Series | None) -> Comparison:
        pairing = paired_runs(base, mine, other, 1, order)
        named = replace(pairing.comparison, unit=CAMPAIGN)
        if named.n < 2 and not named.why:
            named = replace(named, why=f"{named.n} pairs of campaigns have no interval")
        if not taken.alternate and not named.why:
            ratio = float(np.exp(pairing.differences.mean()))
            return replace(named, ratio=ratio, why=f"the campaigns took no turns ({taken.order})")
        return estimated([replace(pairing, comparison=named)])[0]

    family, samples = [], []
    for m in matches:
        halves = (range(count), range(count, 2 * count))
        of_both = [_joined([(at, runs[at].get(places[at][m.a])) for at in half]) for half in halves]
        failed = [_joined([(at, lost[at].get(places[at][m.a])) for at in half]) for half in halves]
        base = replace(empty, context=m.context, pair=m.pair)
        family.append(again(base, of_both[1], of_both[0]))
        samples.append((of_both, failed))

    told = []
    for c, ((base_runs, mine), failed) in zip(corrected(family, repeat), samples, strict=True):
        if mine is None or base_runs is None:
            told.append(c)
            continue
        told.append(
            withstood(
                c,
                mine,
                base_runs,
                (failed[1], failed[0]),
                partial(again, c),
            )
        )
    return told


def _cells(result: Result, metric: str) -> dict[Place, Series]:
    return {(w[1], w[0]): s for w, s in by_cell(result.ok, ["pair", "cell"], metric)}


def _joined(parts: Sequence[tuple[int, Series | None]]) -> Series | None:
    """The runs of one cell in several campaigns, each as if it were a boot; None without any."""
    known = [(at, series) for at, series in parts if series is not None]
    if not known:
        return None
    return Series(
        np.concatenate([series.block for _, series in known]),
        np.concatenate([np.full(len(series.values), at) for at, series in known]),
        np.concatenate([series.values for _, series in known]),
        NO_BUILDS,
    )
