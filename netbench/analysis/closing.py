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
from netbench.analysis.stopping import Assessment, assess, most
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

    def alone(self, repeat: Repeat) -> Assessment:
        """Where it stands by its own intervals."""
        boots = {
            name: [self.boots.get(block, 0) for block in values]
            for name, values in self.values.items()
        }
        values = {name: list(each.values()) for name, each in self.values.items()}
        return assess(values, repeat, boots, self.lost)

    def is_precise_against(self, base: Standing, repeat: Repeat, order: Rounds) -> bool:
        """Whether its ratio to the baseline is as precise as asked in every chosen metric that both
        have, and there is one.
        """
        return ratios_precise(self, base, repeat, order)


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
    factors = {key: cell.factors for key, cell in cells.items()}
    for group in groups(factors, swept, compare):
        closed |= group_closings({key: cells[key] for key in group}, compare, repeat, order)
    return closed


def group_closings(
    group: Mapping[Key, Standing], compare: Compare | None, repeat: Repeat, order: Rounds
) -> dict[Key, str]:
    """`closings` of cells that close together."""
    base = None
    if compare is not None:
        levels = (
            key
            for key, cell in group.items()
            if cell.factors.get(compare.factor) == compare.baseline
        )
        base = next(levels, None)
    reasons = {
        key: cell.closed or _reason(key, group, base, repeat, order) for key, cell in group.items()
    }
    together = all(reasons.values())
    return {
        key: reason if together or reason != "converged" else "" for key, reason in reasons.items()
    }


def groups(
    cells: Mapping[Key, Mapping[str, str]], swept: Iterable[str], compare: Compare | None
) -> list[list[Key]]:
    """Cells that close together, given the factors of each. Keys that `include` attached belong to
    their level and do not keep cells apart.
    """
    if compare is None:
        return [[key] for key in cells]
    others = [name for name in swept if name != compare.factor]
    by_context: dict[tuple[str | None, ...], list[Key]] = {}
    for key, factors in cells.items():
        context = key[1], *(factors.get(name) for name in others)
        by_context.setdefault(context, []).append(key)
    return list(by_context.values())


def _rounds(cells: Iterable[Standing], compare: Compare | None) -> Rounds:
    """The rounds of boots by the compared factor's levels."""
    by_level: dict[str | None, set[int]] = {}
    for cell in cells if compare is not None else ():
        mine = by_level.setdefault(cell.factors.get(compare.factor) if compare else None, set())
        mine |= {cell.boots.get(block, 0) for values in cell.values.values() for block in values}
    return rounds(by_level.values())


def _reason(
    key: Key, group: Mapping[Key, Standing], base: Key | None, repeat: Repeat, order: Rounds
) -> str:
    mine = group[key]
    alone = mine.alone(repeat)
    exhausted = "max" if alone.spent or mine.runs + mine.lost >= most(repeat) else ""
    if base is None or len(group) == 1 or group[base].closed:
        return alone.reason if alone.closed else exhausted
    if alone.n + mine.lost < repeat.min:
        return exhausted
    judged = (
        [cell for other, cell in group.items() if other != base and not cell.closed]
        if key == base
        else [mine]
    )
    precise = all(cell.is_precise_against(group[base], repeat, order) for cell in judged)
    return "converged" if precise else exhausted


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
        confidence, enough = ratio_target(unit == "boot", mine, base, repeat)
        interval = mean_interval(log_differences, confidence)
        if (
            len(log_differences) < enough
            or not interval.known
            or math.expm1(interval.half_width) > repeat.precision
        ):
            return False
        judged += 1
    return judged > 0


def ratio_target(
    by_boot: bool, mine: Standing, base: Standing, repeat: Repeat
) -> tuple[float, int]:
    """The confidence of a ratio's interval, and how many differences it must be of. The number of
    boots is not chosen by looking, so nothing is widened there.
    """
    if by_boot:
        return repeat.confidence, repeat.boots
    confidence = sequential_confidence(repeat.confidence, repeat.min, repeat.max)
    return confidence, repeat.min - max(mine.lost, base.lost)


def _series(cell: Standing, metric: str) -> Series:
    values = cell.values.get(metric, {})
    blocks = np.array(list(values), dtype=np.int64)
    boots = np.array([cell.boots.get(block, 0) for block in values], dtype=np.int64)
    return Series(blocks, boots, np.array(list(values.values()), dtype=float))
