"""What was measured of one cell on one pair so far, kept so that its standing after one more run
costs the same whatever came before.

The values of the chosen metrics are kept beside their sums: a ratio to another baseline, and a
decision that lies within rounding of its limit, are computed from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from netbench.analysis.closing import Standing, Target, ratio_target, ratios_settled
from netbench.analysis.dependence import (
    NONE_SEEN,
    NOTHING,
    Dependences,
    Lag,
    LagSums,
    relative,
)
from netbench.analysis.intervals import Interval, sequential_confidence
from netbench.analysis.pairs import Rounds
from netbench.analysis.stopping import CPU_FLOOR, Assessment, decide
from netbench.analysis.sums import Sums, is_close
from netbench.model import Repeat

SHOWN = "throughput"  # beside the chosen metrics, for who watches


class Tally:
    """The ok runs of one cell on one pair, of one epoch. `closed`: why it wants no more of them, ""
    while it does.
    """

    __slots__ = (
        "boots",
        "closed",
        "counts",
        "lags",
        "replaced",
        "runs",
        "sums",
        "values",
        "visited",
    )

    def __init__(self) -> None:
        self.values: dict[str, dict[int, float]] = {}
        """Of each chosen metric, by block."""
        self.sums: dict[str, Sums] = {}
        self.lags: dict[str, LagSums] = {}
        """What the values of each chosen metric tell of their order; of logarithms, where all are
        positive.
        """
        self.counts: dict[str, int] = {}
        """How many values each metric has."""
        self.boots: dict[int, int] = {}
        """Of each block that is not in boot 0."""
        self.visited: set[int] = set()
        """The boots of the values."""
        self.runs = 0
        self.replaced = 0
        self.closed = ""

    def add(
        self, block: int, boot: int, metrics: Mapping[str, float], chosen: Iterable[str]
    ) -> None:
        """Take in the metrics of an ok run. A second run of a block replaces the first."""
        self.runs += 1
        if boot:
            self.boots[block] = boot
        if not metrics:
            return
        self.visited.add(boot)
        again = [name for name in self.values if block in self.values[name]]
        for name in metrics:
            if not again or name not in self.counts:
                self.counts[name] = self.counts.get(name, 0) + 1
        for name in chosen:
            if name in metrics:
                self.values.setdefault(name, {})[block] = metrics[name]
        if again:
            self._sum_anew()
            return
        shown = [name for name in (*self.values, SHOWN) if name in metrics] or list(metrics)
        for name in dict.fromkeys(shown):
            sums, value = self.sums.setdefault(name, Sums()), metrics[name]
            turns = sums.n and sums.lowest > 0 >= value
            sums.add(value, boot)
            if name in self.values:
                if turns:
                    self._follow_anew(name)
                else:
                    order = self.lags.setdefault(name, LagSums())
                    order.add(math.log(value) if sums.lowest > 0 else value)

    def _follow_anew(self, name: str) -> None:
        values = np.array(list(self.values[name].values()))
        self.lags[name] = LagSums(relative(values).tolist())

    def _sum_anew(self) -> None:
        self.replaced += 1
        self.visited = {0} if not self.boots else set()
        for name, values in self.values.items():
            self.counts[name] = len(values)
            self.sums[name] = Sums(
                (value, self.boots.get(block, 0)) for block, value in values.items()
            )
            self.visited |= set(self.sums[name].boots)
            self._follow_anew(name)

    def intervals(self, repeat: Repeat, by_boot: bool, seen: Dependences) -> dict[str, Interval]:
        """The interval of each metric that is summed; seen: how far runs of its pair follow each
        other.
        """
        if by_boot:
            return {
                name: sums.interval_of_boots(repeat.confidence) for name, sums in self.sums.items()
            }
        confidence = sequential_confidence(repeat.confidence, repeat.min, repeat.max)
        return {
            name: seen.of_cell(name).widened(sums.interval(confidence), confidence)
            for name, sums in self.sums.items()
        }


class Ratio:
    """The log differences of a cell to its baseline, summed block by block."""

    def __init__(self, mine: Tally, base: Tally) -> None:
        self._tallies = mine, base
        self._sums: dict[str, Sums] = {}
        self._lags: dict[str, LagSums] = {}
        self._seen: dict[str, tuple[int, ...]] = {}

    def is_of(self, mine: Tally, base: Tally) -> bool:
        """Whether these are the two that it compares."""
        return self._tallies[0] is mine and self._tallies[1] is base

    def of(self, metric: str, block: int) -> Sums:
        """The sums of a metric that both have, up to a block. All values must be above 0."""
        mine, base = self._tallies
        here, there = mine.values[metric], base.values[metric]
        now = len(here), len(there), mine.replaced, base.replaced
        before = self._seen.get(metric, (0, 0, 0, 0))
        if now == before:
            return self._sums[metric]
        if now == (before[0] + (block in here), before[1] + (block in there), *before[2:]):
            new: Iterable[int] = (block,)
        else:
            self._sums[metric], self._lags[metric] = Sums(), LagSums()
            new = here
        sums = self._sums.setdefault(metric, Sums())
        order = self._lags.setdefault(metric, LagSums())
        for value, boot in self._differences(new, here, there):
            sums.add(value, boot)
            order.add(value)
        self._seen[metric] = now
        return sums

    def lag(self, metric: str) -> Lag:
        """What the differences that are summed tell of their order."""
        return self._lags[metric].lag

    def _differences(
        self, blocks: Iterable[int], here: Mapping[int, float], there: Mapping[int, float]
    ) -> Iterator[tuple[float, int]]:
        mine, base = (tally.boots for tally in self._tallies)
        for block in blocks:
            boot = mine.get(block, 0)
            if block in here and block in there and boot == base.get(block, 0):
                yield math.log(here[block]) - math.log(there[block]), boot


@dataclass(frozen=True, kw_only=True)
class Running(Standing):
    """A standing from a tally. Decides as Standing does, which the fields inherited from it are
    for.

    `against` gives the Ratio to a baseline, `rounds` those of all boots; `block` is the last one
    that was run.
    """

    tally: Tally
    block: int
    against: Callable[[Running], Ratio]
    rounds: Callable[[], Rounds]

    def alone(self, repeat: Repeat, seen: Dependences = NONE_SEEN) -> Assessment:
        """As Standing.alone. Metrics are those that are summed."""
        tally = self.tally
        by_boot = repeat.boots > 1 or len(tally.visited) > 1
        intervals = tally.intervals(repeat, by_boot, seen)
        if any(_is_doubtful(name, intervals, repeat) for name in repeat.metrics):
            intervals |= super().alone(repeat, seen).intervals
        visited = len(tally.visited) if by_boot else repeat.boots
        return decide(intervals, tally.counts, visited, repeat, self.lost)

    def lag(self, metric: str) -> Lag:
        """As Standing.lag."""
        sums = self.tally.sums.get(metric)
        if metric not in self.values or sums is None or len(list(sums.boots)) != 1:
            return NOTHING
        return self.tally.lags[metric].lag

    def lag_against(self, base: Standing, metric: str, repeat: Repeat) -> tuple[Lag, float]:
        """As Standing.lag_against."""
        assert isinstance(base, Running)
        if repeat.boots > 1 or metric not in self.values or metric not in base.values:
            return NOTHING, 0.0
        mine, other = self.tally.sums[metric], base.tally.sums[metric]
        if mine.lowest <= 0 or other.lowest <= 0 or not set(mine.boots) & set(other.boots):
            return NOTHING, 0.0
        ratio = self.against(base)
        if len(list(ratio.of(metric, self.block).boots)) > 1:
            return NOTHING, 0.0
        apart = sum(each.lags[metric].lag.variance for each in (self.tally, base.tally))
        return ratio.lag(metric), apart

    def is_settled_against(
        self, base: Standing, target: Target, order: Rounds, seen: Dependences
    ) -> bool:
        """As Standing.is_settled_against."""
        assert isinstance(base, Running)
        answer = self._quick_answer(base, target, seen)
        if answer is None:
            return ratios_settled(self, base, target, self.rounds(), seen)
        return answer

    def _quick_answer(self, base: Running, target: Target, seen: Dependences) -> bool | None:
        """From the sums; None where they cannot tell."""
        repeat = target.repeat
        both = [name for name in repeat.metrics if name in self.values and name in base.values]
        for metric in both:
            mine, other = self.tally.sums[metric], base.tally.sums[metric]
            if mine.lowest <= 0 or other.lowest <= 0:
                return False
            if not set(mine.boots) & set(other.boots):
                return None
            sums = self.against(base).of(metric, self.block)
            by_boot = repeat.boots > 1 or len(list(sums.boots)) > 1
            confidence, enough = ratio_target(by_boot, self, base, target)
            if by_boot:
                interval = sums.interval_of_boots(confidence)
            else:
                interval = seen.of_ratio(metric).widened(sums.interval(confidence), confidence)
            if interval.n < enough or not interval.known:
                return False
            if any(is_close(*limit) for limit in target.limits(interval)):
                return None
            if not target.is_met(interval):
                return False
        return bool(both)


def _is_doubtful(name: str, intervals: Mapping[str, Interval], repeat: Repeat) -> bool:
    """Whether rounding could decide if a metric is precise."""
    interval = intervals.get(name)
    if interval is None or interval.n < 2:
        return interval is not None and not math.isfinite(interval.mean)
    return is_close(interval.precision, repeat.precision) or is_close(
        interval.half_width, CPU_FLOOR, max(abs(interval.mean), 1.0)
    )
