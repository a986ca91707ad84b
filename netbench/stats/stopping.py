"""When a cell has been run often enough: one rule, used by the conductor after each block and by
the report for the status.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from netbench.model import Repeat
from netbench.stats.boots import runs_a_boot
from netbench.stats.dependence import run_intervals
from netbench.stats.intervals import Interval, Numbers, mean_interval, sequential_confidence
from netbench.stats.pairs import NO_BUILDS, Builds, by_unit
from netbench.stats.segments import joined

# CPUs: half a percent of one CPU is as narrow as any meter of the kernel resolves in a run of
# seconds
CPU_FLOOR = 0.005
Boots = Mapping[str, Sequence[int]]
"""By metric, the boot of each value."""


@dataclass(frozen=True)
class Assessment:
    """Where a cell stands: `n` usable runs, whether it is `closed`, why (`converged`, `max`, or
    `open`), and the interval of each metric; `spent`: it has had all its runs.

    `intervals` holds only metrics that have a value; their `mean` and `half_width` are what
    progress shows (NaN half-width: no interval yet).
    """

    n: int
    closed: bool
    reason: str
    intervals: Mapping[str, Interval]
    spent: bool = False


def most(repeat: Repeat) -> int:
    """How many ok runs a cell gets at most."""
    return repeat.max if repeat.boots == 1 else repeat.boots * runs_a_boot(repeat)


def assess(
    values: Mapping[str, Sequence[float] | Numbers],
    repeat: Repeat,
    boots: Boots | None = None,
    lost: int = 0,
    builds: Builds = NO_BUILDS,
) -> Assessment:
    """Decide one (cell, pair) from the values of its ok runs, one list a metric (its own unit, in
    order of execution).

    Closed when n >= repeat.min and every metric of repeat.metrics is precise (`converged`), or when
    n >= repeat.max (`max`). n is the number of values of the best-filled metric. A metric without
    any value (throughput of `null`) is left out of the rule; when none is left only `max` closes
    the cell. A metric of repeat.metrics with fewer values than n is not precise until they are
    enough: what is missing is no evidence.

    boots: with values of several, or with repeat.boots > 1, intervals are over the means of boots,
    and a cell closes only when it has been in all boots that were asked for, as `max` when it has
    had all its runs there. With boots that were not asked for no precision closes it: a reboot is
    no draw that was planned. lost: runs that failed and are not repeated, because boots decide how
    many there are.
    """
    units = _boots(boots, repeat)
    intervals = intervals_of(values, repeat, units, builds)
    visited = (
        len({boot for each in units.values() for boot in each})
        if units is not None
        else repeat.boots
    )
    return decide(
        intervals, {name: len(each) for name, each in values.items()}, visited, repeat, lost
    )


def intervals_of(
    values: Mapping[str, Sequence[float] | Numbers],
    repeat: Repeat,
    units: Boots | None,
    builds: Builds = NO_BUILDS,
) -> dict[str, Interval]:
    """The interval of each metric that has a value; over the means of `units`, where there are
    any, or of their builds.
    """
    present = {name: each for name, each in values.items() if len(each)}
    if units is None:
        confidence = sequential_confidence(repeat.confidence, repeat.min, repeat.max)
        return {
            name: run_intervals(*joined([np.array(each, dtype=float)]), confidence)[0]
            for name, each in present.items()
        }
    return {
        name: mean_interval(
            by_unit(np.array(units[name]), np.array(each, dtype=float), builds)[1],
            repeat.confidence,
        )
        for name, each in present.items()
    }


def decide(
    intervals: Mapping[str, Interval],
    counts: Mapping[str, int],
    visited: int,
    repeat: Repeat,
    lost: int,
) -> Assessment:
    """The rule of `assess`, given the intervals, how many values each metric has, and how many
    boots were visited (repeat.boots where boots do not matter).
    """
    n = max(counts.values(), default=0)
    asked = [name for name in repeat.metrics if counts.get(name)]
    enough = bool(asked) and all(counts[name] + lost >= repeat.min for name in asked)
    spent = n + lost >= most(repeat) and visited >= repeat.boots
    if (
        enough
        and visited >= repeat.boots
        and (visited == 1 or repeat.boots > 1)
        and all(reached(name, intervals[name], repeat) for name in asked)
    ):
        return Assessment(n, True, "converged", intervals, spent)
    return Assessment(n, spent, "max" if spent else "open", intervals, spent)


def _boots(boots: Boots | None, repeat: Repeat) -> Boots | None:
    """The boots of the values where these are the unit."""
    if boots is None or (
        repeat.boots == 1 and len({boot for each in boots.values() for boot in each}) < 2
    ):
        return None
    return boots


def reached(metric: str, interval: Interval, repeat: Repeat) -> bool:
    """Whether one metric's interval is as narrow as asked, or, for CPU metrics, as narrow as a CPU
    meter can tell (CPU_FLOOR).
    """
    if not interval.known:
        return False
    small = metric.partition(".")[0].endswith("_cpu") and interval.half_width <= CPU_FLOOR
    return small or interval.precision <= repeat.precision
