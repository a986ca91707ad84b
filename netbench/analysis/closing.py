"""Which cells have been run often enough, over a whole campaign: one rule for the conductor and for
the report.

Without `compare` each cell closes alone, by its own intervals (stopping.assess). With it, a cell
closes once its ratio to the baseline is settled: as precise as asked or, with `until: verdict`,
better, worse or equivalent; paired within blocks, so what drifts between blocks cancels. The
interval is at the level of the whole family, which no interval of the report is wider than
(verdicts.corrected). A closed cell leaves the blocks; the baseline stays until the last is closed.
Where runs lie in several boots, means and ratios are judged by boots (stopping.assess, pairs).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from netbench.analysis.boots import BOOTED
from netbench.analysis.dependence import (
    NONE_SEEN,
    NOTHING,
    Dependences,
    Lag,
    lag_of,
    relative,
)
from netbench.analysis.intervals import Interval, mean_interval, ratio_confidence
from netbench.analysis.pairs import (
    NO_BUILDS,
    NO_SERIES,
    Builds,
    Rounds,
    Series,
    differences,
    rounds,
)
from netbench.analysis.stopping import Assessment, assess, most
from netbench.model import Compare, Repeat

Key = tuple[str, str]  # cell, pair
ByBlock = Mapping[str, Mapping[int, float]]  # metric -> block -> value, in order of execution


@dataclass(frozen=True)
class Standing:
    """One (cell, pair): its factors, its values, why it is closed already ("" if it is not), and
    how many of its runs are ok.

    `boots`: the boot of each block that is not in boot 0; `builds`: as a Series has them. `lost`:
    runs that failed and are not repeated (stopping.assess).
    """

    factors: Mapping[str, str]
    values: ByBlock
    closed: str = ""
    runs: int = 0
    boots: Mapping[int, int] = field(default_factory=dict)
    lost: int = 0
    builds: Builds = field(default_factory=lambda: NO_BUILDS)

    def alone(self, repeat: Repeat, seen: Dependences = NONE_SEEN) -> Assessment:
        """Where it stands by its own intervals; seen: how far runs of its pair follow each
        other.
        """
        boots = {
            name: [self.boots.get(block, 0) for block in values]
            for name, values in self.values.items()
        }
        values = {name: list(each.values()) for name, each in self.values.items()}
        return assess(values, repeat, boots, self.lost, seen, self.builds)

    @cached_property
    def series(self) -> Mapping[str, Series]:
        """The values of each metric, as they are at the first look."""
        return {metric: _series(self, values) for metric, values in self.values.items()}

    def lag(self, metric: str) -> Lag:
        """What its values tell of their order; those of several boots tell nothing."""
        series = self.series.get(metric, NO_SERIES)
        return lag_of(relative(series.values)) if len(series.boots) == 1 else NOTHING

    def lag_against(self, base: Standing, metric: str, repeat: Repeat) -> tuple[Lag, float]:
        """What its differences to a baseline tell of their order, where they are paired by block,
        and the sum of the variances of the logarithms of both.
        """
        here, there = (each.series.get(metric, NO_SERIES) for each in (self, base))
        if not len(here.values) or not len(there.values):
            return NOTHING, 0.0
        if (here.values <= 0).any() or (there.values <= 0).any():
            return NOTHING, 0.0
        if not here.boots & there.boots:
            return NOTHING, 0.0
        unit, log_differences = differences(here, there, repeat.boots, {})
        if unit != "block":
            return NOTHING, 0.0
        apart = sum(float(np.log(each.values).var()) for each in (here, there))
        return lag_of(log_differences), apart

    def is_settled_against(
        self, base: Standing, target: Target, order: Rounds, seen: Dependences
    ) -> bool:
        """Whether its ratio to the baseline is settled in every chosen metric that both have, and
        there is one.
        """
        return ratios_settled(self, base, target, order, seen)


@dataclass(frozen=True)
class Target:
    """What settles a ratio: what the campaign asks for, of a family of so many comparisons."""

    repeat: Repeat
    family: int = 1
    margin: float | None = None

    def is_met(self, interval: Interval) -> bool:
        """Whether the interval of a mean log difference settles the ratio."""
        if not interval.known:
            return False
        if self.repeat.until == "precision":
            return math.expm1(interval.half_width) <= self.repeat.precision
        if interval.low > 0 or interval.high < 0:
            return True
        low, high = self.band
        return self.margin is not None and low <= interval.low and interval.high <= high

    @property
    def band(self) -> tuple[float, float]:
        """The log differences that do not matter."""
        margin = self.margin or 0.0
        return math.log1p(-margin), math.log1p(margin)

    def limits(self, interval: Interval) -> list[tuple[float, float]]:
        """What `is_met` compares with what, in a unit of 1: a change, and its limit."""
        if self.repeat.until == "precision":
            return [(math.expm1(interval.half_width), self.repeat.precision)]
        ends = interval.low, interval.high
        return [(1 + end, 1 + limit) for end in ends for limit in (0.0, *self.band)]


def target_of(
    cells: Mapping[Key, Mapping[str, str]], compare: Compare | None, repeat: Repeat
) -> Target:
    """What settles the ratios of a campaign, given the factors of its (cell, pair)s."""
    if compare is None:
        return Target(repeat)
    levels = [each.get(compare.factor) for each in cells.values()]
    family = sum(level != compare.baseline for level in levels)
    return Target(repeat, max(family, 1), compare.margin)


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
    target = target_of(factors, compare, repeat)
    each = [{key: cells[key] for key in group} for group in groups(factors, swept, compare)]
    seen = {key[1]: Dependences() for key in cells}
    for group in each:
        see_group(group, compare, target, seen[next(iter(group))[1]])
    for group in each:
        closed |= group_closings(group, compare, target, order, seen[next(iter(group))[1]])
    return closed


def see_group(
    group: Mapping[Key, Standing], compare: Compare | None, target: Target, seen: Dependences
) -> None:
    """Put what the runs of cells, and their differences to their baseline's, tell of their order to
    what is seen of their pair of hosts.
    """
    base = baseline_of(group, compare)
    for key, cell in group.items():
        for metric in target.repeat.metrics:
            seen.see_cell(key[0], metric, cell.lag(metric))
            if base is not None and base != key:
                lag, apart = cell.lag_against(group[base], metric, target.repeat)
                seen.see_differences(key[0], metric, lag, apart)


def baseline_of(group: Mapping[Key, Standing], compare: Compare | None) -> Key | None:
    """The cell that the others of its group are compared with."""
    if compare is None:
        return None
    levels = ((key, cell.factors.get(compare.factor)) for key, cell in group.items())
    return next((key for key, level in levels if level == compare.baseline), None)


def group_closings(
    group: Mapping[Key, Standing],
    compare: Compare | None,
    target: Target,
    order: Rounds,
    seen: Dependences,
) -> dict[Key, str]:
    """`closings` of the cells that are compared with one baseline; seen: how far runs of their pair
    of hosts follow each other.
    """
    base = baseline_of(group, compare)
    if base is None or group[base].closed or all(c.closed for k, c in group.items() if k != base):
        return {
            key: cell.closed or _alone(cell, target.repeat, seen) for key, cell in group.items()
        }
    closed = {
        key: cell.closed or _against(cell, group[base], target, order, seen)
        for key, cell in group.items()
        if key != base
    }
    compared = {reason for key, reason in closed.items() if not group[key].closed}
    alone = group[base].alone(target.repeat, seen)
    enough = alone.n + group[base].lost >= target.repeat.min
    if enough and all(compared):
        closed[base] = "converged" if compared == {"converged"} else "max"
    else:
        closed[base] = _exhausted(group[base], alone, target.repeat)
    return {key: closed[key] for key in group}


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


def _alone(cell: Standing, repeat: Repeat, seen: Dependences) -> str:
    """Why a cell that is compared with nothing is closed, "" if it is not."""
    alone = cell.alone(repeat, seen)
    return alone.reason if alone.closed else _exhausted(cell, alone, repeat)


def _exhausted(cell: Standing, alone: Assessment, repeat: Repeat) -> str:
    """`max` for a cell that has had all its runs."""
    return "max" if alone.spent or cell.runs + cell.lost >= most(repeat) else ""


def _against(
    mine: Standing, base: Standing, target: Target, order: Rounds, seen: Dependences
) -> str:
    """Why a cell that is compared with a baseline is closed, "" if it is not."""
    alone = mine.alone(target.repeat, seen)
    enough = alone.n + mine.lost >= target.repeat.min
    if enough and mine.is_settled_against(base, target, order, seen):
        return "converged"
    return _exhausted(mine, alone, target.repeat)


def ratios_settled(
    mine: Standing, base: Standing, target: Target, order: Rounds, seen: Dependences
) -> bool:
    """As Standing.is_settled_against."""
    repeat, judged = target.repeat, 0
    for metric in repeat.metrics:
        here, there = (each.series.get(metric, NO_SERIES) for each in (mine, base))
        if not len(here.values) or not len(there.values):
            continue
        if (here.values <= 0).any() or (there.values <= 0).any():
            return False  # no ratio
        unit, log_differences = differences(here, there, repeat.boots, order)
        confidence, enough = ratio_target(unit in BOOTED, mine, base, target)
        if unit == "build":
            enough = len(set(mine.builds.values()))
        interval = mean_interval(log_differences, confidence)
        if unit == "block":
            interval = seen.of_ratio(metric).widened(interval, confidence)
        if len(log_differences) < enough or not target.is_met(interval):
            return False
        judged += 1
    return judged > 0


def ratio_target(
    by_boot: bool, mine: Standing, base: Standing, target: Target
) -> tuple[float, float]:
    """The confidence of a ratio's interval, and how many differences it must be of. The number of
    boots is not chosen by looking, so nothing is widened there; boots that were not asked for are
    never enough.
    """
    repeat = target.repeat
    if by_boot:
        confidence = 1 - (1 - repeat.confidence) / target.family
        return confidence, repeat.boots if repeat.boots > 1 else math.inf
    confidence = ratio_confidence(repeat, target.family)
    return confidence, repeat.min - max(mine.lost, base.lost)


def _series(cell: Standing, values: Mapping[int, float]) -> Series:
    blocks = np.array(list(values), dtype=np.int64)
    boots = np.array([cell.boots.get(block, 0) for block in values], dtype=np.int64)
    return Series(blocks, boots, np.array(list(values.values()), dtype=float), cell.builds)
