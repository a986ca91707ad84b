"""Which of these hosts is slow: the effects of the hosts of a campaign with many pairs, the
outlying ones by name, and what is known of them that may be why.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from netbench.analysis.fleet_causes import HOST, Cause, causes
from netbench.analysis.fleet_facts import Differing, differing, known_facts, odd_facts
from netbench.analysis.fleet_groups import GroupShift, group_shifts
from netbench.analysis.fleet_model import Observed, Spread
from netbench.analysis.fleet_outliers import PAIR, Analysis, Shift, analysed
from netbench.analysis.fleet_runs import observed
from netbench.analysis.result import Result

MOST_PAIRS = 8
"""A campaign with more pairs is a fleet."""
FALLBACK = "throughput"


@dataclass(frozen=True)
class Unmeasured:
    """A pair without a value, and why."""

    pair: str
    why: str


@dataclass(frozen=True)
class Fleet:
    """One metric of one cell over all pairs.

    middle: the metric's median over pairs. unmeasured: pairs that have no value.
    """

    metric: str
    cell: str
    factors: Mapping[str, str]
    observed: Observed
    analysis: Analysis
    causes: tuple[Cause, ...]
    groups: tuple[GroupShift, ...]
    confidence: float
    middle: float
    unmeasured: tuple[Unmeasured, ...]

    @property
    def spread(self) -> Spread:
        return self.analysis.spread

    def of(self, kind: str) -> dict[str, Shift]:
        """The shifts of a kind, by name."""
        return self._by_kind.get(kind, {})

    @cached_property
    def _by_kind(self) -> dict[str, dict[str, Shift]]:
        found: dict[str, dict[str, Shift]] = {}
        for shift in self.analysis.shifts:
            found.setdefault(shift.kind, {})[shift.name] = shift
        return found

    def explained(self, pair: str) -> str:
        """The host that is outlying by this pair; "" where none is."""
        for cause in self.causes:
            if cause.kind == HOST and any(s.name == pair for s in cause.shifts):
                return cause.name
        return ""

    def shift_of(self, host: str, kind: str) -> Shift | None:
        """A host's shift as `kind`: over its pairs where these tell it apart, else that of its only
        pair (of kind PAIR); None where it has none, or several that do not tell it.
        """
        apart = self.analysis.senders_apart if kind == "sender" else self.analysis.receivers_apart
        mine = self.of(kind).get(host)
        if mine is None or (apart and mine.pairs > 1):
            return mine
        end = 0 if kind == "sender" else 2
        pairs = [s for name, s in self.of(PAIR).items() if name.partition(">")[end] == host]
        return pairs[0] if len(pairs) == 1 else None


def is_fleet(result: Result) -> bool:
    """Whether a campaign has so many pairs that its hosts are looked at, not its cells."""
    return len(result.plan.pairs) > MOST_PAIRS


def metrics_of(result: Result) -> list[str]:
    """The metrics that a fleet is judged by: throughput, and those that `repeat` asks for."""
    return [m for m in dict.fromkeys((FALLBACK, *result.repeat.metrics)) if m in result.metrics]


def fleets_of(result: Result, metric: str) -> list[Fleet]:
    """A metric over the fleet, an entry a cell that any pair has values of; none where the
    campaign is no fleet.
    """
    if not is_fleet(result):
        return []
    ok, cells = result.ok, result.cells
    rows = dict(tuple(ok.groupby("cell", observed=True, sort=False)))
    return [
        fleet
        for cell in cells
        if cell.cell in rows
        and (fleet := _fleet(result, metric, cell.cell, cell.factors, rows[cell.cell], len(cells)))
    ]


def facts_that_differ(result: Result) -> list[Differing]:
    """The facts in which hosts of the fleet differ."""
    hosts = list(result.hosts)
    return differing(known_facts(result, hosts), hosts)


def _fleet(
    result: Result,
    metric: str,
    cell: str,
    factors: Mapping[str, str],
    runs: pd.DataFrame,
    families: int,
) -> Fleet | None:
    if "round" not in runs and result.plan.rounds:
        of_pair = {pair: at for at, pairs in enumerate(result.plan.rounds) for pair in pairs}
        runs = runs.assign(round=runs["pair"].astype(str).map(of_pair))
    o = observed(runs, metric, result.plan.pairs, list(result.hosts))
    if o is None or len(o.pairs) <= MOST_PAIRS:
        return None
    crossing = {
        name: [(a in link.hosts) != (b in link.hosts) for a, b in map(_ends, o.pairs)]
        for name, link in result.plan.links.items()
    }
    analysis = analysed(o, crossing, result.repeat, families)
    known = known_facts(result, o.hosts, cell)
    return Fleet(
        metric,
        cell,
        factors,
        o,
        analysis,
        tuple(causes(o, analysis, odd_facts(known))),
        tuple(group_shifts(o, analysis, result.plan.groups, result.repeat)),
        result.repeat.confidence,
        math.exp(float(np.median(o.mean))),
        tuple(_unmeasured(result, cell, runs, metric, o.pairs)),
    )


def _ends(pair: str) -> tuple[str, str]:
    sender, _, receiver = pair.partition(">")
    return sender, receiver


def _unmeasured(
    result: Result, cell: str, runs: pd.DataFrame, metric: str, measured: Sequence[str]
) -> Iterator[Unmeasured]:
    """Pairs without a value, each with the reason of its last run."""
    every = result.runs
    mine = every[every["cell"] == cell]
    last = dict(
        zip(mine["pair"].astype(str), zip(mine["status"], mine["reason"], strict=True), strict=True)
    )
    ran, known = set(runs["pair"].astype(str)), set(measured)
    for pair in result.plan.pairs:
        if pair in known:
            continue
        if pair in ran:
            yield Unmeasured(pair, f"its {metric} is 0")
        elif pair in last:
            status, reason = last[pair]
            yield Unmeasured(pair, f"{status}: {reason}" if reason else str(status))
        else:
            yield Unmeasured(pair, "no run of it is recorded")
