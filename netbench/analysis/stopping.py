"""When a cell has been run often enough: one rule, used by the conductor after each block and by the report for the status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from netbench.analysis.intervals import Interval, mean_interval, sequential_confidence
from netbench.model import Repeat

CPU_FLOOR = 0.005  # CPUs: half a percent of one CPU is as narrow as any meter of the kernel resolves in a run of seconds


@dataclass(frozen=True)
class Assessment:
    """Where a cell stands: `n` usable runs, whether it is `closed`, why (`converged`, `max`, or `open`), and the interval of each
    metric.

    `intervals` holds only metrics that have a value; their `mean` and `half_width` are what progress shows (NaN half-width: no
    interval yet).
    """

    n: int
    closed: bool
    reason: str
    intervals: Mapping[str, Interval]


def assess(values: Mapping[str, Sequence[float]], repeat: Repeat) -> Assessment:
    """Decide one (cell, pair) from the values of its ok runs, one list a metric (its own unit, in order of execution).

    Closed when n >= repeat.min and every metric of repeat.metrics is precise (`converged`), or when n >= repeat.max (`max`). n is
    the number of values of the best-filled metric. A metric without any value (throughput of `null`) is left out of the rule;
    when none is left only `max` closes the cell. A metric of repeat.metrics with fewer values than n is not precise until they
    are enough: what is missing is no evidence.
    """
    confidence = sequential_confidence(repeat.confidence, repeat.min, repeat.max)
    intervals = {name: mean_interval(list(found), confidence) for name, found in values.items() if len(found)}
    n = max((i.n for i in intervals.values()), default=0)
    asked = [name for name in repeat.metrics if name in intervals]
    precise = bool(asked) and all(reached(name, intervals[name], repeat) for name in asked)
    if n >= repeat.min and precise:
        return Assessment(n, True, "converged", intervals)
    if n >= repeat.max:
        return Assessment(n, True, "max", intervals)
    return Assessment(n, False, "open", intervals)


def reached(metric: str, interval: Interval, repeat: Repeat) -> bool:
    """Whether one metric's interval is as narrow as asked, or, for CPU metrics, as narrow as a CPU meter can tell (CPU_FLOOR)."""
    if interval.n < repeat.min or not interval.known:
        return False
    small = metric.partition(".")[0].endswith("_cpu") and interval.half_width <= CPU_FLOOR
    return small or interval.precision <= repeat.precision
