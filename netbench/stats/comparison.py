"""A comparison: the ratio of two means with its interval and verdict, and its sentence: "tso=on
moves 84.1% more than tso=off, 95% interval 80.2 to 88.1%".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from netbench.base.names import is_measured
from netbench.base.units import count
from netbench.stats.failures import Failures
from netbench.stats.histogram import QUANTILES
from netbench.stats.intervals import NAN
from netbench.stats.words import bounds, change, times

DEPENDENT, WITHIN_CONTROL = "dependence", "control"
FLAGS = {
    DEPENDENT: "runs follow each other, so that this could turn",
    WITHIN_CONTROL: "no larger than what the control shows",
}
"""What puts a verdict in doubt, in words."""
RESULT = "result"
"""The factor of a comparison of results: its levels name themselves."""
CHANGES = ("better", "worse")
SURE = (*CHANGES, "equivalent")
VERDICTS = (*SURE, "inconclusive")
NO_VERDICT = "no verdict"
"""In place of a verdict, where what was measured cannot carry one (grounds.py)."""
FEW = 3  # runs of a cell, in one boot, that are for trying alone
FEW_RUNS = f"too few runs (a cell has at most {FEW})"
CUT_SHORT = "too few runs: its cells were to have more"
UNPLANNED = "its runs lie in boots that were not planned; run it anew, or with repeat.boots"
LATE_CLIENT = "the client was late: its own delay is in the latency"
NO_LATENESS = "how late the client was is not known"


@dataclass(frozen=True)
class Comparison:
    """One level against the baseline, in one context (levels of the other factors) and pair.

    `ratio`, `low`, `high`: level over baseline; NaN when unknown. `p`: two-sided, of ratio 1,
    uncorrected. `n` pairs of `unit` (`block`, `boot` or `build`); where nothing is
    paired, `n` and `against` are the units (`run`, `boot` or `build`) of level and of baseline.
    `error` is the standard error of the mean log difference, with `freedom` degrees; `sd` the
    deviation that it comes from. `why`: why there is no interval. Of two results, `earlier` is the
    number of earlier results whose spread is in the interval, `between` the standard deviation of
    their mean logarithms. `unsettled`: why an interval gives no verdict, where more runs would not.
    `failures`: of both levels, where any run failed; `stands_at(end, above, side)`: whether the
    interval lies above or below a ratio with these ranked last, too; `side`: 1 where more is
    better, -1 where less is, of what has no direction.
    """

    factor: str
    level: str
    baseline: str
    context: Mapping[str, str]
    pair: str
    metric: str
    n: int
    unit: str = "block"
    ratio: float = NAN
    low: float = NAN
    high: float = NAN
    p: float = NAN
    confidence: float = NAN  # of the family
    corrected: float = NAN  # of this interval alone, after widening and Holm's correction
    sd: float = NAN  # of the log differences
    error: float = NAN
    freedom: float = NAN
    against: int | None = None  # None: paired
    margin: float | None = None
    verdict: str = "inconclusive"
    why: str = ""
    unsettled: str = ""
    earlier: int | None = None  # None: within one result
    between: float = NAN
    better: int | None = None  # whether more is; None: as the metric of that name has it
    flags: tuple[str, ...] = ()  # of FLAGS
    failures: Failures | None = None
    stands_at: Callable[..., bool] | None = field(default=None, compare=False)

    def but(self, **changes: Any) -> Comparison:
        """As dataclasses.replace, which takes seven times as long, of thousands."""
        if not changes.keys() <= self.__dict__.keys():
            raise TypeError(f"no such field: {sorted(changes.keys() - self.__dict__.keys())}")
        copy = object.__new__(Comparison)
        copy.__dict__.update(self.__dict__, **changes)
        return copy

    @property
    def lacks_history(self) -> bool:
        """Whether it is of two results, and lacks nothing but earlier ones that tell how far
        campaigns lie apart: one has no spread.
        """
        alone = self.earlier is not None and self.earlier < 2 and not self.why
        return alone and self.unsettled not in (FEW_RUNS, CUT_SHORT, UNPLANNED)

    @property
    def refused(self) -> bool:
        """Whether no interval, however narrow, would have given a verdict."""
        whys = (FEW_RUNS, CUT_SHORT, UNPLANNED, LATE_CLIENT, NO_LATENESS)
        return self.verdict == NO_VERDICT or self.unsettled in whys

    @property
    def names(self) -> tuple[str, str]:
        """Level and baseline in words, with the factor; those of two results say enough."""
        if self.factor == RESULT:
            return self.level, self.baseline
        return f"{self.factor}={self.level}", f"{self.factor}={self.baseline}"

    @property
    def sentence(self) -> str:
        """The comparison in words, without its context."""
        return "; ".join((_sentence(self), *(FLAGS[flag] for flag in self.flags)))


_VERBS = {
    "throughput": ("moves", ""),
    "retransmits": ("retransmits", ""),
    "steps": ("makes", " steps"),
    "fsync_time": ("spends", " time in fsync(2)"),
}
_COSTS = {"cpu": "CPU", "demand": "CPU per KB", "user_cpu": "user CPU", "kernel_cpu": "kernel CPU"}
_SIDES = {"sender": " on the sender", "receiver": " on the receiver"}


def _verb(metric: str) -> tuple[str, str]:
    """The words for a metric: (verb, object)."""
    bare, _, meter = (
        metric.partition(".") if metric.rpartition("_")[2] not in QUANTILES else (metric, "", "")
    )
    by = f", by {meter}" if meter else ""
    who, _, what = bare.partition("_")
    if what in _COSTS and is_measured(bare):
        return "uses", f" {_COSTS[what]}{_SIDES.get(who, '')}{by}"
    return _VERBS.get(bare, ("has", f" {bare}{by}"))


def _sentence(c: Comparison) -> str:
    """One comparison as a sentence, without its context (the other factors' levels)."""
    does, thing = _verb(c.metric)
    level, baseline = c.names
    if math.isnan(c.ratio):
        return f"{level} against {baseline}{' in' + thing if thing else ''}: no comparison, {c.why}"
    if math.isnan(c.low):
        return f"{level} {does} {change(c.ratio)}{thing} than {baseline}, but {c.why}: inconclusive"
    unpaired = "" if c.against is None else ", unpaired"
    interval = f"{c.confidence * 100:.3g}% interval {_short(c)}{unpaired}"
    if c.verdict == "equivalent":
        return (
            f"{level} {does} as much{thing} as {baseline}, within the margin of {c.margin:.2%}:"
            f" {interval}".replace(".00%", "%")
        ) + _despite(c)
    claim = f"{level} {does} {change(c.ratio)}{thing} than {baseline}, {interval}"
    if c.verdict in SURE:
        return claim + times(c.ratio) + _despite(c)
    if c.unsettled:
        return f"{claim}: {c.verdict}, {c.unsettled}"
    return f"{claim}: inconclusive" + (f", {failures_said(c)}" if c.failures else "")


def _despite(c: Comparison) -> str:
    """What a verdict stands in spite of."""
    if c.failures is None:
        return ""
    failed = c.failures.failed + c.failures.baseline_failed
    are = "is" if failed == 1 else "are"
    return f", even if the {count(failed, 'run')} that {_lost(c)} {are} ranked last"


def _lost(c: Comparison) -> str:
    """What runs without a value did."""
    return "failed" + f" or gave no {c.metric}" * (c.metric != "throughput")


def undone_by_failures(c: Comparison) -> str:
    """Why what was found of a comparison does not hold."""
    return f"{failures_said(c)}, and it does not stand with these ranked last"


def failures_said(c: Comparison) -> str:
    """`3 of 20 runs of send=splice and 1 of 20 runs of send=write failed`."""
    f, (level, baseline) = c.failures or Failures(0, 0, 0, 0), c.names
    counts = ((f.failed, f.runs, level), (f.baseline_failed, f.baseline_runs, baseline))
    parts = (
        f"{failed} of {count(runs, 'run')} of {name}" for failed, runs, name in counts if failed
    )
    return f"{' and '.join(parts)} {_lost(c)}"


def _short(c: Comparison) -> str:
    """The interval without a direction where the sentence has already said it."""
    text = bounds(c.low, c.high)
    if (c.low >= 1) != (c.high >= 1) or c.verdict == "equivalent":
        return text
    return text.removesuffix(" more").removesuffix(" less")
