"""When a cell has been run often enough: one rule, used by the conductor after each block and by
the report for the status.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from netbench.model import Repeat
from netbench.stats.by_boot import runs_a_boot
from netbench.stats.dependence import run_intervals
from netbench.stats.intervals import Interval, mean_interval, sequential_confidence
from netbench.stats.pairs import Series, by_unit

# CPUs: half a percent of one CPU is as narrow as any meter of the kernel resolves in a run of
# seconds
CPU_FLOOR = 0.005


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


def assess(series: Mapping[str, Series], repeat: Repeat, lost: int = 0) -> Assessment:
    """Decide one (cell, pair) from its ok runs, a series a metric (its own unit, in order of
    execution).

    Closed when n >= repeat.min and every metric of repeat.metrics is precise (`converged`), or when
    n >= repeat.max (`max`). n is the number of values of the best-filled metric. A metric without
    any value (throughput of `null`) is left out of the rule; when none is left only `max` closes
    the cell. A metric of repeat.metrics with fewer values than n is not precise until they are
    enough: what is missing is no evidence.

    With values of several boots, or with repeat.boots > 1, intervals are over the means of boots,
    and a cell closes only when it has been in all boots that were asked for, as `max` when it has
    had all its runs there. With boots that were not asked for no precision closes it: a reboot is
    no draw that was planned. lost: runs that failed and are not repeated, because boots decide how
    many there are.
    """
    counts = {name: len(each.values) for name, each in series.items()}
    boots: frozenset[int] = frozenset().union(*(each.boots for each in series.values()))
    by_boot = repeat.boots > 1 or len(boots) > 1
    confidence = sequential_confidence(repeat.confidence, repeat.min, repeat.max)
    intervals = {
        name: mean_interval(by_unit(each.boot, each.values, each.builds)[1], repeat.confidence)
        if by_boot
        else run_intervals(each.values[None], confidence)[0]
        for name, each in series.items()
        if counts[name]
    }
    n = max(counts.values(), default=0)
    asked = [name for name in repeat.metrics if counts.get(name)]
    everywhere = len(boots) >= repeat.boots or not by_boot
    spent = n + lost >= most(repeat) and everywhere
    if (
        asked
        and everywhere
        and (repeat.boots > 1 or not by_boot)
        and all(counts[name] + lost >= repeat.min for name in asked)
        and all(reached(name, intervals[name], repeat) for name in asked)
    ):
        return Assessment(n, True, "converged", intervals, spent)
    return Assessment(n, spent, "max" if spent else "open", intervals, spent)


def reached(metric: str, interval: Interval, repeat: Repeat) -> bool:
    """Whether one metric's interval is as narrow as asked, or, for CPU metrics, as narrow as a CPU
    meter can tell (CPU_FLOOR).
    """
    if not interval.known:
        return False
    small = metric.partition(".")[0].endswith("_cpu") and interval.half_width <= CPU_FLOOR
    return small or interval.precision <= repeat.precision
