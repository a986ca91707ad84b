"""What was measured of one cell on one pair so far, kept so that its standing after one more run
costs the same whatever came before.

The values of the chosen metrics are kept beside their sums: a ratio to another baseline, and a
decision that lies within rounding of its limit, are computed from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from netbench.analysis.closing import Standing, ratio_target, ratios_precise
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

    __slots__ = ("boots", "closed", "counts", "replaced", "runs", "sums", "values", "visited")

    def __init__(self) -> None:
        self.values: dict[str, dict[int, float]] = {}
        """Of each chosen metric, by block."""
        self.sums: dict[str, Sums] = {}
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
            self.sums.setdefault(name, Sums()).add(metrics[name], boot)

    def _sum_anew(self) -> None:
        self.replaced += 1
        self.visited = {0} if not self.boots else set()
        for name, values in self.values.items():
            self.counts[name] = len(values)
            self.sums[name] = Sums(
                (value, self.boots.get(block, 0)) for block, value in values.items()
            )
            self.visited |= set(self.sums[name].boots)

    def intervals(self, repeat: Repeat, by_boot: bool) -> dict[str, Interval]:
        """The interval of each metric that is summed."""
        if by_boot:
            return {
                name: sums.interval_of_boots(repeat.confidence) for name, sums in self.sums.items()
            }
        confidence = sequential_confidence(repeat.confidence, repeat.min, repeat.max)
        return {name: sums.interval(confidence) for name, sums in self.sums.items()}


class Ratio:
    """The log differences of a cell to its baseline, summed block by block."""

    def __init__(self, mine: Tally, base: Tally) -> None:
        self._tallies = mine, base
        self._sums: dict[str, Sums] = {}
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
            self._sums[metric] = Sums()
            new = here
        sums = self._sums.setdefault(metric, Sums())
        for value, boot in self._differences(new, here, there):
            sums.add(value, boot)
        self._seen[metric] = now
        return sums

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

    def alone(self, repeat: Repeat) -> Assessment:
        """As Standing.alone. Metrics are those that are summed."""
        tally = self.tally
        by_boot = repeat.boots > 1 or len(tally.visited) > 1
        intervals = tally.intervals(repeat, by_boot)
        if any(_is_doubtful(name, intervals, repeat) for name in repeat.metrics):
            intervals |= super().alone(repeat).intervals
        visited = len(tally.visited) if by_boot else repeat.boots
        return decide(intervals, tally.counts, visited, repeat, self.lost)

    def is_precise_against(self, base: Standing, repeat: Repeat, order: Rounds) -> bool:
        """As Standing.is_precise_against."""
        assert isinstance(base, Running)
        answer = self._quick_answer(base, repeat)
        return ratios_precise(self, base, repeat, self.rounds()) if answer is None else answer

    def _quick_answer(self, base: Running, repeat: Repeat) -> bool | None:
        """From the sums; None where they cannot tell."""
        both = [name for name in repeat.metrics if name in self.values and name in base.values]
        for metric in both:
            mine, other = self.tally.sums[metric], base.tally.sums[metric]
            if mine.lowest <= 0 or other.lowest <= 0:
                return False
            if not set(mine.boots) & set(other.boots):
                return None
            sums = self.against(base).of(metric, self.block)
            by_boot = repeat.boots > 1 or len(list(sums.boots)) > 1
            confidence, enough = ratio_target(by_boot, self, base, repeat)
            interval = sums.interval_of_boots(confidence) if by_boot else sums.interval(confidence)
            if interval.n < enough or not interval.known:
                return False
            change = math.expm1(interval.half_width)
            if is_close(change, repeat.precision):
                return None
            if change > repeat.precision:
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
