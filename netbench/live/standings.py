"""What a campaign's runs show so far, from its ledger: the comparisons that its report would make
of the same runs, by the same functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd

from netbench.plan.plan import Plan, Unit
from netbench.read.cells import cells_of
from netbench.read.compare import for_factor
from netbench.read.grounds import doubt_of_rate, without_verdict
from netbench.read.load import load
from netbench.run.ledger import Ledger
from netbench.stats.by_boot import KERNEL
from netbench.stats.comparison import Comparison

PLACED = "throughput"  # what a rate fixes


def comparisons(plan: Plan, ledger: Ledger) -> list[Comparison]:
    """Each level of the campaign's `compare` against the baseline, in each of `repeat.metrics`:
    empty where nothing is compared, or nothing can be yet.
    """
    asked = plan.campaign.compare
    if asked is None:
        return []
    swept = [factor.name for factor in plan.campaign.factors]
    found: list[Comparison] = []
    for metric in plan.repeat.metrics:
        runs = _runs(plan, ledger, metric, swept)
        if runs.empty or asked.baseline not in runs[asked.factor].cat.categories:
            continue
        family = for_factor(
            runs,
            asked.factor,
            asked.baseline,
            metric=metric,
            factors=swept,
            repeat=plan.repeat,
            margin=asked.margin,
            planned=[cell.factors for cell in plan.campaign.cells if not cell.control],
            order=ledger.rounds() if asked.factor == KERNEL else None,
            failed=_failed(plan, ledger, swept),
        )
        found += [_grounded(plan, ledger, c) for c in family]
    return found


def statuses(folder: Path) -> dict[tuple[str, str], str]:
    """The status of each cell and pair in the report of an ended campaign. Errors: as load."""
    return {(c.cell, c.pair): c.status for c in cells_of(load(folder))}


def _grounded(plan: Plan, ledger: Ledger, c: Comparison) -> Comparison:
    """The comparison, without a verdict on raw CPU where no rate held."""
    levels = [{**c.context, c.factor: level} for level in (c.level, c.baseline)]
    sides = [
        (
            unit.cell.transfer.rate,
            [fmean(moved.values())] if (moved := tally.values.get(PLACED)) else [],
        )
        for unit in _units(plan)
        if unit.pair.name == c.pair
        and any(all(unit.cell.factors.get(k, "") == v for k, v in each.items()) for each in levels)
        for tally in [ledger.tally(unit.key)]
    ]
    return without_verdict(c, doubt_of_rate(c.metric, sides))


def _units(plan: Plan, metric: str = "") -> list[Unit]:
    """Those that are compared: no controls, and of throughput none that a rate fixes."""
    return [
        unit
        for unit in plan.units
        if not unit.cell.control and not (metric == PLACED and unit.cell.transfer.rate)
    ]


def _runs(plan: Plan, ledger: Ledger, metric: str, swept: Sequence[str]) -> pd.DataFrame:
    """The ok runs that count, with a metric's values."""
    units = _units(plan, metric)
    columns: dict[str, list[Any]] = {"unit": [], "block": [], "boot": [], metric: []}
    for number, unit in enumerate(units):
        tally = ledger.tally(unit.key)
        values = tally.values.get(metric, {})
        columns["unit"] += [number] * len(values)
        columns["block"] += values
        columns["boot"] += [tally.boots.get(block, 0) for block in values]
        columns[metric] += values.values()
    frame = _with_levels(pd.DataFrame(columns), units, swept)
    builds = {
        entry.boot: entry.build
        for entries in ledger.hosts.values()
        for entry in entries
        if entry.build
    }
    return frame.assign(build=frame["boot"].map(builds).fillna(0).astype(int))


def _failed(plan: Plan, ledger: Ledger, swept: Sequence[str]) -> pd.DataFrame:
    """The runs that failed."""
    units = _units(plan)
    rows = [
        (number, *place)
        for number, unit in enumerate(units)
        for place in ledger.trail.failures(unit.key)
    ]
    return _with_levels(pd.DataFrame(rows, columns=["unit", "block", "boot"]), units, swept)


def _with_levels(frame: pd.DataFrame, units: Sequence[Unit], swept: Sequence[str]) -> pd.DataFrame:
    """Runs with their pairs and levels in place of the number of their unit, as a frame of a result
    has them.
    """
    words = {"pair": [unit.pair.name for unit in units]}
    words |= {name: [unit.cell.factors.get(name, "") for unit in units] for name in swept}
    columns = {
        name: pd.Categorical(
            [of_unit[number] or None for number in frame["unit"]],
            categories=list(dict.fromkeys(filter(None, of_unit))),
        )
        for name, of_unit in words.items()
    }
    return frame.drop(columns="unit").assign(**columns)
