"""What is asked of one simulated campaign: how often the thing in question happened, and how often
it could have. Each is one trial of a row of truth.py.
"""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from netbench.analysis.gates import parse
from netbench.analysis.intervals import Interval
from netbench.report.question import of_two
from netbench.report.source import Source
from tools.bench import regimes
from tools.bench.regimes import Draw, Random, blocks
from tools.bench.simulated import TRUTH, Counts, Drawn, Simulated

METRIC = "throughput"
SPARE = 2
"""Values for so many times `repeat.max` blocks: cells whose runs fail go on."""


@dataclass(frozen=True)
class Count:
    """So many of so many looks."""

    hits: int
    looks: int

    def __add__(self, other: Count) -> Count:
        return Count(self.hits + other.hits, self.looks + other.looks)


Trial = Callable[[Random], Count]


@cache
def simulated(text: str) -> Simulated:
    """One for each campaign: its plan is made once."""
    return Simulated(text)


def times(of: Simulated) -> Counts:
    """The times of all runs that it could make."""
    return blocks(len(of.plan.units), SPARE * of.plan.repeat.max)


def drawn(rng: Random, text: str, draw: Draw) -> Source:
    """The report of a campaign whose runs vary so."""
    mine = simulated(text)
    return mine.run(Drawn(draw(rng, times(mine))))


def verdicts(source: Source, *which: str) -> int:
    """How many comparisons of throughput say so."""
    return sum(c.verdict in which for c in source.comparisons.get(METRIC, ()))


def any_difference(rng: Random, text: str, draw: Draw) -> Count:
    """Whether any level is called better or worse."""
    return Count(verdicts(drawn(rng, text, draw), "better", "worse") > 0, 1)


def any_equivalent(rng: Random, text: str, draw: Draw) -> Count:
    """Whether any level is called equivalent."""
    return Count(verdicts(drawn(rng, text, draw), "equivalent") > 0, 1)


def holds(interval: Interval, truth: float = TRUTH) -> bool:
    """Whether there is an interval and the true mean is in it."""
    return interval.known and interval.low <= truth <= interval.high


def cells_hold(rng: Random, text: str, draw: Draw) -> Count:
    """How many cells' intervals hold the true mean."""
    return _cells(drawn(rng, text, draw), or_withheld=False)


def cells_hold_or_say_so(rng: Random, text: str, draw: Draw) -> Count:
    """How many cells are not called converged, or have an interval that holds the true mean."""
    return _cells(drawn(rng, text, draw), or_withheld=True)


def _cells(source: Source, or_withheld: bool) -> Count:
    cells = source.cells
    hits = sum(
        (or_withheld and cell.status != "converged") or holds(cell.intervals[METRIC])
        for cell in cells
    )
    return Count(hits, len(cells))


def rebooted(rng: Random, between: float, within: float, of: Simulated) -> Drawn:
    """Runs of a campaign whose hosts come up anew after its 3rd to 9th block."""
    reboot = int(rng.integers(3, 10))
    return Drawn(
        regimes.with_boots(rng, times(of), reboot, between, within),
        reboot=reboot,
    )


def reboot_cells(rng: Random, text: str, between: float, within: float) -> Count:
    """As cells_hold_or_say_so, with a reboot that nobody planned."""
    mine = simulated(text)
    return _cells(mine.run(rebooted(rng, between, within, mine)), or_withheld=True)


def reboot_verdict(rng: Random, text: str, between: float, within: float) -> Count:
    """As any_difference, with a reboot that nobody planned."""
    mine = simulated(text)
    source = mine.run(rebooted(rng, between, within, mine))
    return Count(verdicts(source, "better", "worse") > 0, 1)


def slow_runs_fail(rng: Random, text: str, p: float, spread: float) -> Count:
    """Whether a level is called better because those of its runs that are slow fail, each with
    probability p.
    """
    mine = simulated(text)
    are_slow = regimes.slow(rng, times(mine))
    failed = are_slow & (rng.random(are_slow.shape) < p)
    failed[0] = False  # the baseline's never fail
    source = mine.run(Drawn(regimes.in_modes(are_slow, rng, spread), failed))
    return Count(verdicts(source, "better", "worse") > 0, 1)


def wider_than_asked(rng: Random, text: str, draw: Draw) -> Count:
    """Of campaigns that converged, whether an interval is wider than was asked."""
    source = drawn(rng, text, draw)
    if any(cell.status != "converged" for cell in source.cells):
        return Count(0, 0)
    asked = source.result.repeat.precision
    widths = (math.sqrt(c.high / c.low) - 1 for c in source.comparisons[METRIC])
    return Count(any(width > asked for width in widths), 1)


def promise_kept(rng: Random, text: str, draw: Draw) -> Count:
    """Of inconclusive comparisons that promise a width with at most 400 blocks, whether the larger
    number has it.
    """
    mine = simulated(text)
    values = draw(rng, blocks(len(mine.plan.units), 400))
    repeat = mine.plan.repeat
    source = mine.reported(mine.records(Drawn(values)), Drawn(values))
    most = [c.needed[1] for c in source.comparisons[METRIC] if c.needed and c.needed[1] <= 400]
    if not most:
        return Count(0, 0)
    words = f"min: {repeat.min}, max: {repeat.max}"
    longer = simulated(text.replace(words, f"min: {most[0]}, max: {most[0]}")).run(Drawn(values))
    widths = [math.sqrt(c.high / c.low) - 1 for c in longer.comparisons[METRIC]]
    return Count(all(width <= repeat.precision for width in widths), 1)


def two_results(rng: Random, text: str, between: float, gate: str = "", earlier: int = 0) -> Count:
    """Whether two results of equal cells, each campaign off by something of its own, are called
    different; with a gate, whether it falls. earlier: so many results of before are shown, too.
    """
    a, b = (_off(rng, f"about: {name}\n{text}", between) for name in "AB")  # folders of their own
    with tempfile.TemporaryDirectory() as name:
        for number in range(earlier):
            before = _off(rng, f"about: before\n{text}", between)
            shutil.copytree(before.result.path, Path(name) / str(number))
        history = Path(name) if earlier else None
        compared = of_two(a, b, gates=[parse(gate)] if gate else [], history=history)
    if gate:
        return Count(compared.fell, 1)
    called = {c.verdict for c in compared.families[METRIC]}
    return Count(bool(called & {"better", "worse"}), 1)


def _off(rng: Random, text: str, between: float) -> Source:
    """A campaign whose level is not quite that of other times."""
    mine = simulated(text)
    level = 1 + between * rng.standard_normal()
    return mine.run(Drawn(level * regimes.independent(rng, times(mine), 0.01)))


def settled_or_warned(rng: Random, text: str, draw: Draw) -> Count:
    """Whether all equal levels are called equivalent, or the plan had a warning."""
    if simulated(text).plan.campaign.warnings:
        return Count(1, 1)
    source = drawn(rng, text, draw)
    return Count(verdicts(source, "equivalent") == len(source.comparisons[METRIC]), 1)


def count_interval(rng: Random, text: str, mean: float, k: float | None) -> Count:
    """How many intervals of a mean count hold it, of those that there are."""
    intervals = _of_counts(rng, text, mean, k)
    known = [i for i in intervals if i.known]
    return Count(sum(holds(i, mean) for i in known), len(known))


def count_below_0(rng: Random, text: str, mean: float, k: float | None) -> Count:
    """How many intervals of a mean count reach below 0."""
    intervals = _of_counts(rng, text, mean, k)
    return Count(sum(i.known and i.low < 0 for i in intervals), len(intervals))


def _of_counts(rng: Random, text: str, mean: float, k: float | None) -> list[Interval]:
    mine = simulated(text)
    when = times(mine)
    values, seen = regimes.independent(rng, when, 0.01), regimes.counts(rng, when, mean, k)
    source = mine.run(Drawn(values, retransmits=seen))
    return [cell.intervals["retransmits"] for cell in source.cells]
