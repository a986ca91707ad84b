"""Which cells have been run often enough: one rule for the conductor, after each block, and for the
report's statuses.

Without `compare` each cell closes alone, by its own intervals. With it, a cell closes once its
ratio to the baseline is settled: as precise as asked or, with `until: verdict`, better, worse or
equivalent; paired within blocks, so what drifts between blocks cancels. The interval is at the
level of the whole family, which no interval of the report is wider than (verdicts.corrected). A
closed cell leaves the blocks; the baseline stays until the last is closed. Where runs lie in
several boots, means and ratios are judged by boots (pairs.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from netbench.model import Compare, Repeat
from netbench.stats.by_boot import BOOTED, Builds, runs_a_boot
from netbench.stats.dependence import followed, run_intervals
from netbench.stats.intervals import (
    Interval,
    Means,
    Numbers,
    mean_interval,
    means_of,
    ratio_confidence,
    sequential_confidence,
)
from netbench.stats.pairs import NO_BUILDS, Rounds, Series, by_unit, differences, rounds

Key = tuple[str, str]  # cell, pair
Flags = npt.NDArray[np.bool_]
ByBlock = Mapping[str, Mapping[int, float]]  # metric -> block -> value, in order of execution
# CPUs: half a percent of one CPU is as narrow as any meter of the kernel resolves in a run of
# seconds
CPU_FLOOR = 0.005


class Assessment(NamedTuple):
    """Where a cell stands by its own intervals: `n` usable runs, whether it is `converged`, `max`
    or `open`, and the interval of each metric that has a value (NaN half-width: none yet); `spent`:
    it has had all its runs.
    """

    n: int
    reason: str
    intervals: Mapping[str, Interval]
    spent: bool = False


def most(repeat: Repeat) -> int:
    """How many ok runs a cell gets at most."""
    return repeat.max if repeat.boots == 1 else repeat.boots * runs_a_boot(repeat)


def reached(metric: str, interval: Interval, repeat: Repeat) -> bool:
    """Whether one metric's interval is as narrow as asked, or, for CPU metrics, as narrow as a CPU
    meter can tell (CPU_FLOOR).
    """
    if not interval.known:
        return False
    small = metric.partition(".")[0].endswith("_cpu") and interval.half_width <= CPU_FLOOR
    return small or interval.precision <= repeat.precision


@dataclass(frozen=True)
class Standing:
    """One (cell, pair): its factors, its values, why it is closed already ("" if it is not), and
    how many of its runs are ok.

    `boots`: the boot of each block that is not in boot 0; `builds`: as a Series has them. `lost`:
    runs that failed and are not repeated, because boots decide how many there are.
    """

    factors: Mapping[str, str]
    values: ByBlock
    closed: str = ""
    runs: int = 0
    boots: Mapping[int, int] = field(default_factory=dict)
    lost: int = 0
    builds: Builds = field(default_factory=lambda: NO_BUILDS)

    def alone(self, repeat: Repeat) -> Assessment:
        """Where it stands by its own intervals.

        `converged` with repeat.min runs once every metric of repeat.metrics is precise, `max` with
        repeat.max. n is the number of values of the best-filled metric. A metric without any value
        (throughput of `null`) is left out of the rule; when none is left only `max` closes the
        cell. A metric with fewer values than n is not precise until they are enough: what is
        missing is no evidence.

        With values of several boots, or with repeat.boots > 1, intervals are over the means of
        boots, and a cell closes only when it has been in all boots that were asked for. With boots
        that were not asked for no precision closes it: a reboot is no draw that was planned.
        """
        series = self.series
        boots: frozenset[int] = frozenset().union(*(each.boots for each in series.values()))
        by_boot = repeat.boots > 1 or len(boots) > 1
        confidence = sequential_confidence(repeat.confidence, repeat.min, repeat.max)
        intervals = {
            name: mean_interval(by_unit(each.boot, each.values, each.builds)[1], repeat.confidence)
            if by_boot
            else run_intervals(each.values[None], confidence)[0]
            for name, each in series.items()
        }
        n = max((len(each.values) for each in series.values()), default=0)
        asked = [name for name in repeat.metrics if name in series]
        everywhere = len(boots) >= repeat.boots or not by_boot
        spent = n + self.lost >= most(repeat) and everywhere
        converged = (
            asked
            and everywhere
            and (repeat.boots > 1 or not by_boot)
            and all(len(series[name].values) + self.lost >= repeat.min for name in asked)
            and all(reached(name, intervals[name], repeat) for name in asked)
        )
        reason = "converged" if converged else "max" if spent else "open"
        return Assessment(n, reason, intervals, spent)

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


class Target(NamedTuple):
    """What settles a ratio: what the campaign asks for, of a family of so many comparisons."""

    repeat: Repeat
    family: int = 1
    margin: float | None = None

    def width(self, mean: Means, *, fixed: bool) -> Numbers:
        """The half-widths of the ratios of some mean log differences, as fractions; fixed: their
        units are boots or builds, whose number is not chosen by looking, so nothing is widened.
        """
        level = ratio_confidence(self.repeat, self.family, fixed=fixed)
        return np.asarray(np.expm1(mean.half_widths(level)))

    def met(self, mean: Means, *, fixed: bool) -> Flags:
        """Which mean log differences settle their ratios; fixed: as width."""

        def half(sides: int) -> Numbers:
            level = ratio_confidence(self.repeat, self.family, sides=sides, fixed=fixed)
            return mean.half_widths(level)

        if self.repeat.until == "precision":
            return np.asarray(self.width(mean, fixed=fixed) <= self.repeat.precision)
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
    order = _rounds(cells, compare) if order is None else order
    target, together = _together(cells, swept, compare, repeat)
    closed: dict[Key, str] = {}
    for group in together:
        closed |= group_closings(group, compare, target, order)
    return closed


def _together(
    cells: Mapping[Key, Standing], swept: Iterable[str], compare: Compare | None, repeat: Repeat
) -> tuple[Target, list[Mapping[Key, Standing]]]:
    """What settles ratios, and the cells that close together."""
    factors = {key: cell.factors for key, cell in cells.items()}
    each = groups(factors, swept, compare)
    return target_of(factors, compare, repeat), [{key: cells[key] for key in of} for of in each]


def ratio_widths(
    cells: Mapping[Key, Standing],
    swept: Iterable[str],
    compare: Compare | None,
    repeat: Repeat,
    order: Rounds | None = None,
) -> dict[Key, dict[str, float]]:
    """By (cell, pair) and metric that is asked for, the half-width of the ratio to the baseline by
    which the cell closes, as a fraction, where there is one; of a baseline the widest. Without
    cells that close by themselves. order: as closings.
    """
    order = _rounds(cells, compare) if order is None else order
    target, together = _together(cells, swept, compare, repeat)
    widths: dict[Key, dict[str, float]] = {}
    for group in together if compare else ():
        base = baseline_of({key: cell.factors for key, cell in group.items()}, compare)
        if base is None:
            continue
        widest: dict[str, float] = {}
        for key in (key for key in group if key != base):
            widths[key] = {
                metric: float(target.width(mean, fixed=fixed))
                for metric, mean, fixed, _ in _ratios(group[key], group[base], repeat, order)
                if mean and mean.n > 1
            }
            widest |= {metric: max(w, widest.get(metric, w)) for metric, w in widths[key].items()}
        widths[base] = widest
    return widths


def _rounds(cells: Mapping[Key, Standing], compare: Compare | None) -> Rounds:
    """The rounds of boots, as far as the cells show them."""
    by_level: dict[str | None, set[int]] = {}
    for cell in cells.values() if compare else ():
        boots = by_level.setdefault(cell.factors.get(compare.factor) if compare else None, set())
        boots |= {cell.boots.get(block, 0) for each in cell.values.values() for block in each}
    return rounds(by_level.values())


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


def baseline_of(group: Mapping[Key, Mapping[str, str]], compare: Compare | None) -> Key | None:
    """The cell that the others of its group are compared with, given the factors of each."""
    if compare is None:
        return None
    levels = ((key, factors.get(compare.factor)) for key, factors in group.items())
    return next((key for key, level in levels if level == compare.baseline), None)


def group_closings(
    group: Mapping[Key, Standing], compare: Compare | None, target: Target, order: Rounds
) -> dict[Key, str]:
    """`closings` of the cells that are compared with one baseline."""
    repeat = target.repeat

    def enough(cell: Standing, alone: Assessment) -> bool:
        return alone.n + cell.lost >= repeat.min

    def reason(cell: Standing, alone: Assessment, converged: bool) -> str:
        spent = alone.spent or cell.runs + cell.lost >= most(repeat)
        return "converged" if converged else "max" if spent else ""

    alone = {key: cell.alone(repeat) for key, cell in group.items() if not cell.closed}
    closed = {key: cell.closed for key, cell in group.items()}
    base = baseline_of({key: cell.factors for key, cell in group.items()}, compare)
    if base is None or base not in alone or not alone.keys() - {base}:
        by_itself = {k: reason(group[k], a, a.reason == "converged") for k, a in alone.items()}
        return closed | by_itself
    for key, assessments in alone.items():
        if key != base:
            cell = group[key]
            settled = enough(cell, assessments) and _is_settled(cell, group[base], target, order)
            closed[key] = reason(cell, assessments, settled)
    compared = {closed[key] for key in alone if key != base}
    if enough(group[base], alone[base]) and all(compared):
        closed[base] = "converged" if compared == {"converged"} else "max"
    else:
        closed[base] = reason(group[base], alone[base], False)
    return closed


def _is_settled(mine: Standing, base: Standing, target: Target, order: Rounds) -> bool:
    """Whether a ratio is settled in every chosen metric that both have, and there is one."""
    ratios = list(_ratios(mine, base, target.repeat, order))
    return bool(ratios) and all(
        mean is not None and mean.n >= max(enough, 2) and bool(target.met(mean, fixed=fixed))
        for _, mean, fixed, enough in ratios
    )


def _ratios(
    mine: Standing, base: Standing, repeat: Repeat, order: Rounds
) -> Iterator[tuple[str, Means | None, bool, float]]:
    """Of every chosen metric that both have the mean log difference (None: there is no ratio),
    whether its units are boots or builds, and how many of them are enough.
    """
    for metric in (m for m in repeat.metrics if m in mine.series and m in base.series):
        here, there = mine.series[metric], base.series[metric]
        if (here.values <= 0).any() or (there.values <= 0).any():
            yield metric, None, False, math.inf
            continue
        unit, logs = differences(here, there, repeat.boots, order)
        fixed = unit in BOOTED
        enough: float = repeat.min - max(mine.lost, base.lost)
        if fixed:  # boots that were not asked for are never enough
            enough = repeat.boots if repeat.boots > 1 else math.inf
        if unit == "build":
            enough = len(set(mine.builds.values()))
        few = len(logs) < 2  # for a deviation
        yield metric, (means_of if fixed or few else followed)(logs), fixed, enough
