"""Which of these hosts is slow: the effects of the hosts of a campaign with many pairs, the
outlying ones by name, and what is known of them that may be why.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from netbench.fleet.causes import Cause, causes
from netbench.fleet.differing_facts import Known, known_facts, odd_facts
from netbench.fleet.fit import Fit, Observed, Shift, fit, observed
from netbench.read.result import MOST_PAIRS, Result

FALLBACK = "throughput"


@dataclass(frozen=True)
class Fleet:
    """One metric of one cell over all pairs.

    middle: the metric's median over pairs. unmeasured: why a pair has no value.
    """

    metric: str
    cell: str
    factors: Mapping[str, str]
    observed: Observed
    fit: Fit
    causes: tuple[Cause, ...]
    confidence: float
    middle: float
    unmeasured: Mapping[str, str]

    def lowest(self, kind: str) -> list[Shift]:
        """The shifts of a kind, that which is furthest towards worse first."""
        shifts = [shift for shift in self.fit.shifts if shift.kind == kind]
        return sorted(shifts, key=lambda s: s.ratio, reverse=self.fit.limits.get(kind, 0) > 1)


def metrics_of(result: Result) -> list[str]:
    """The metrics that a fleet is judged by: throughput, and those that `repeat` asks for."""
    return [m for m in dict.fromkeys((FALLBACK, *result.repeat.metrics)) if m in result.metrics]


def fleets_of(result: Result, metric: str) -> list[Fleet]:
    """A metric over the fleet, an entry a cell that a pair has values of; none without a fleet."""
    if not result.is_fleet:
        return []
    ok, cells = result.ok, result.cells
    rows = dict(tuple(ok.groupby("cell", observed=True, sort=False)))
    return [
        fleet
        for cell in cells
        if cell.cell in rows
        and (fleet := _fleet(result, metric, cell.cell, cell.factors, rows[cell.cell], len(cells)))
    ]


def facts_that_differ(result: Result) -> Known:
    """The facts in which hosts of the fleet differ."""
    known = known_facts(result, list(result.hosts))
    return {name: values for name, values in known.items() if len(set(values.values())) > 1}


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
    plan, repeat = result.plan, result.repeat
    better = result.describe(metric).better
    links = {name: link.hosts for name, link in plan.links.items()}
    fitted = fit(o, better, repeat.confidence, families, links, plan.groups)
    return Fleet(
        metric,
        cell,
        factors,
        o,
        fitted,
        tuple(causes(o.pairs, fitted, odd_facts(known_facts(result, o.hosts, cell)))),
        repeat.confidence,
        math.exp(float(np.median(o.mean))),
        _unmeasured(result, cell, metric, o),
    )


def _unmeasured(result: Result, cell: str, metric: str, o: Observed) -> dict[str, str]:
    """Pairs without a value, each with the reason of its last run."""
    runs = result.runs[result.runs["cell"] == cell]
    last = {
        str(pair): f"its {metric} is 0"
        if status == "ok"
        else ": ".join(filter(None, (status, why)))
        for pair, status, why in zip(runs["pair"], runs["status"], runs["reason"], strict=True)
    }
    known = set(o.pairs)
    return {
        pair: last.get(pair, "no run of it is recorded")
        for pair in result.plan.pairs
        if pair not in known
    }
