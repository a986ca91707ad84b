"""Which cells have been run often enough, over a whole campaign: one rule for the conductor and for
the report.

Without `compare` each cell closes alone, by its own intervals (stopping.assess). With it, the cells
that differ only in the compared factor close together, once the ratio of each to the baseline is as
precise as asked: paired within blocks, so what drifts between blocks cancels. Where runs lie in
several boots, means and ratios are judged by boots (stopping.assess, pairs).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from netbench.analysis.intervals import mean_interval, sequential_confidence
from netbench.analysis.pairs import Rounds, Series, differences, rounds
from netbench.analysis.stopping import assess, most
from netbench.model import Compare, Repeat

Key = tuple[str, str]  # cell, pair
ByBlock = Mapping[str, Mapping[int, float]]  # metric -> block -> value, in order of execution


@dataclass(frozen=True)
class Standing:
    """One (cell, pair): its factors, its values, why it is closed already ("" if it is not), and
    how many of its runs are ok.

    `boots`: the boot of each block that is not in boot 0. `lost`: runs that failed and are not
    repeated (stopping.assess).
    """

    factors: Mapping[str, str]
    values: ByBlock
    closed: str = ""
    runs: int = 0
    boots: Mapping[int, int] = field(default_factory=dict)
    lost: int = 0


def closings(
    cells: Mapping[Key, Standing],
    swept: Iterable[str],
    compare: Compare | None,
    repeat: Repeat,
    order: Rounds | None = None,
) -> dict[Key, str]:
    """Why each (cell, pair) is closed: `converged`, `max`, what it was closed for before, or ""
    while it wants more runs.

    order: the rounds of boots of the compared factor, where more is known of them than the cells
    show.
    """
    order = order or _rounds(cells.values(), compare)
    closed: dict[Key, str] = {}
    for group in _groups(cells, swept, compare):
        reasons = {
            key: cells[key].closed or _reason(key, group, cells, compare, repeat, order)
            for key in group
        }
        together = all(reasons.values())
        for key, reason in reasons.items():
            closed[key] = reason if together or reason != "converged" else ""
    return closed


def _groups(
    cells: Mapping[Key, Standing], swept: Iterable[str], compare: Compare | None
) -> list[list[Key]]:
    """Cells that close together. Keys that `include` attached belong to their level and do not keep
    cells apart.
    """
    if compare is None:
        return [[key] for key in cells]
    others = [name for name in swept if name != compare.factor]
    groups: dict[tuple[str | None, ...], list[Key]] = {}
    for key, cell in cells.items():
        groups.setdefault((key[1], *(cell.factors.get(name) for name in others)), []).append(key)
    return list(groups.values())


def _rounds(cells: Iterable[Standing], compare: Compare | None) -> Rounds:
    """The rounds of boots by the compared factor's levels."""
    by_level: dict[str | None, set[int]] = {}
    for cell in cells if compare is not None else ():
        mine = by_level.setdefault(cell.factors.get(compare.factor) if compare else None, set())
        mine |= {cell.boots.get(block, 0) for values in cell.values.values() for block in values}
    return rounds(by_level.values())


def _reason(
    key: Key,
    group: list[Key],
    cells: Mapping[Key, Standing],
    compare: Compare | None,
    repeat: Repeat,
    order: Rounds,
) -> str:
    mine = cells[key]
    boots = {
        name: [mine.boots.get(block, 0) for block in values] for name, values in mine.values.items()
    }
    alone = assess(
        {name: list(values.values()) for name, values in mine.values.items()},
        repeat,
        boots,
        mine.lost,
    )
    exhausted = "max" if alone.spent or mine.runs + mine.lost >= most(repeat) else ""
    base = None
    if compare is not None:
        levels = (
            other for other in group if cells[other].factors.get(compare.factor) == compare.baseline
        )
        base = next(levels, None)
    if base is None or len(group) == 1 or cells[base].closed:
        return alone.reason if alone.closed else exhausted
    judged = (
        [other for other in group if other != base and not cells[other].closed]
        if key == base
        else [key]
    )
    precise = all(ratios_precise(cells[other], cells[base], repeat, order) for other in judged)
    if precise and alone.n + mine.lost >= repeat.min:
        return "converged"
    return exhausted


def ratios_precise(mine: Standing, base: Standing, repeat: Repeat, order: Rounds) -> bool:
    """Whether the ratio to the baseline is as precise as asked in every chosen metric that both
    have, and there is one.
    """
    judged = 0
    for metric in repeat.metrics:
        here, there = _series(mine, metric), _series(base, metric)
        if not len(here.values) or not len(there.values):
            continue
        if (here.values <= 0).any() or (there.values <= 0).any():
            return False  # no ratio
        unit, log_differences = differences(here, there, repeat.boots, order)
        plain = unit == "boot"  # the number of boots is not chosen by looking
        confidence = (
            repeat.confidence
            if plain
            else sequential_confidence(repeat.confidence, repeat.min, repeat.max)
        )
        interval = mean_interval(log_differences, confidence)
        enough = repeat.boots if plain else repeat.min - max(mine.lost, base.lost)
        if (
            len(log_differences) < enough
            or not interval.known
            or math.expm1(interval.half_width) > repeat.precision
        ):
            return False
        judged += 1
    return judged > 0


def _series(cell: Standing, metric: str) -> Series:
    values = cell.values.get(metric, {})
    blocks = np.array(list(values), dtype=np.int64)
    boots = np.array([cell.boots.get(block, 0) for block in values], dtype=np.int64)
    return Series(blocks, boots, np.array(list(values.values()), dtype=float))
