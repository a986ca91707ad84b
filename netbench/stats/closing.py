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
import numpy.typing as npt

from netbench.model import Compare, Repeat
from netbench.stats.by_boot import BOOTED, Builds
from netbench.stats.dependence import followed
from netbench.stats.intervals import Means, Numbers, means_of, ratio_confidence
from netbench.stats.pairs import NO_BUILDS, Rounds, Series, differences, rounds
from netbench.stats.stopping import Assessment, assess, most

Key = tuple[str, str]  # cell, pair
Flags = npt.NDArray[np.bool_]
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

    def alone(self, repeat: Repeat) -> Assessment:
        """Where it stands by its own intervals."""
        return assess(self.series, repeat, self.lost)

    @cached_property
    def series(self) -> Mapping[str, Series]:
        """The values of each metric that has any."""
        return {
            metric: Series(
                np.array(list(each)),
                np.array([self.boots.get(block, 0) for block in each]),
                np.array(list(each.values()), dtype=float),
                self.builds,
            )
            for metric, each in self.values.items()
            if each
        }


@dataclass(frozen=True)
class Target:
    """What settles a ratio: what the campaign asks for, of a family of so many comparisons."""

    repeat: Repeat
    family: int = 1
    margin: float | None = None

    def met(self, mean: Means, *, fixed: bool) -> Flags:
        """Which mean log differences settle their ratios; fixed: their units are boots or builds,
        whose number is not chosen by looking, so nothing is widened.
        """

        def half(sides: int) -> Numbers:
            level = ratio_confidence(self.repeat, self.family, sides=sides, fixed=fixed)
            return mean.half_widths(level)

        if self.repeat.until == "precision":
            return np.asarray(np.expm1(half(2)) <= self.repeat.precision)
        differs = np.abs(mean.mean) > half(2)
        if self.margin is None:
            return np.asarray(differs)
        low, high = math.log1p(-self.margin), math.log1p(self.margin)
        return differs | (mean.mean - half(1) >= low) & (mean.mean + half(1) <= high)


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
    for group in each:
        closed |= group_closings(group, compare, target, order)
    return closed


def baseline_of(group: Mapping[Key, Mapping[str, str]], compare: Compare | None) -> Key | None:
    """The cell that the others of its group are compared with, given the factors of each."""
    if compare is None:
        return None
    levels = ((key, factors.get(compare.factor)) for key, factors in group.items())
    return next((key for key, level in levels if level == compare.baseline), None)


def group_closings(
    group: Mapping[Key, Standing],
    compare: Compare | None,
    target: Target,
    order: Rounds,
) -> dict[Key, str]:
    """`closings` of the cells that are compared with one baseline."""
    base = baseline_of({key: cell.factors for key, cell in group.items()}, compare)
    if base is None or group[base].closed or all(c.closed for k, c in group.items() if k != base):
        return {key: cell.closed or _alone(cell, target.repeat) for key, cell in group.items()}
    closed = {
        key: cell.closed or _against(cell, group[base], target, order)
        for key, cell in group.items()
        if key != base
    }
    compared = {reason for key, reason in closed.items() if not group[key].closed}
    alone = group[base].alone(target.repeat)
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


def _alone(cell: Standing, repeat: Repeat) -> str:
    """Why a cell that is compared with nothing is closed, "" if it is not."""
    alone = cell.alone(repeat)
    return alone.reason if alone.closed else _exhausted(cell, alone, repeat)


def _exhausted(cell: Standing, alone: Assessment, repeat: Repeat) -> str:
    """`max` for a cell that has had all its runs."""
    return "max" if alone.spent or cell.runs + cell.lost >= most(repeat) else ""


def _against(mine: Standing, base: Standing, target: Target, order: Rounds) -> str:
    """Why a cell that is compared with a baseline is closed, "" if it is not."""
    alone = mine.alone(target.repeat)
    enough = alone.n + mine.lost >= target.repeat.min
    if enough and _is_settled(mine, base, target, order):
        return "converged"
    return _exhausted(mine, alone, target.repeat)


def _is_settled(mine: Standing, base: Standing, target: Target, order: Rounds) -> bool:
    """Whether a ratio is settled in every chosen metric that both have, and there is one."""
    repeat = target.repeat
    both = [name for name in repeat.metrics if name in mine.series and name in base.series]
    for metric in both:
        here, there = mine.series[metric], base.series[metric]
        if (here.values <= 0).any() or (there.values <= 0).any():
            return False  # no ratio
        unit, found = differences(here, there, repeat.boots, order)
        fixed = unit in BOOTED
        enough: float = repeat.min - max(mine.lost, base.lost)
        if fixed:  # boots that were not asked for are never enough
            enough = repeat.boots if repeat.boots > 1 else math.inf
        if unit == "build":
            enough = len(set(mine.builds.values()))
        if len(found) < max(enough, 2):
            return False
        if not target.met((means_of if fixed else followed)(found), fixed=fixed):
            return False
    return bool(both)
