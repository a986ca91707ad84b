"""What verdicts and intervals hold: whole campaigns of made-up runs, whose truth is known, through
plan, ledger and report; a row a regime.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import betaincinv

from tools.bench import netperf, questions, regimes, simulated
from tools.bench.questions import Count, Trial
from tools.bench.regimes import Draw
from tools.bench.table import Part, Row

SEED = 14
TOGETHER = 50  # trials that a process makes before it answers
HOW = (
    "Made-up runs of known truth go through the plan, the conductor's ledger, a result folder and"
    " the report, a whole campaign a trial: cells close as in a campaign, and what is counted is"
    " what the report says. Shares are of all trials (or cells, where it says so), with exact"
    " binomial 95% intervals (Clopper and Pearson); a budget is of the share itself. Unless a row"
    " says otherwise: 10 to 30 runs, precision 2.5%, confidence 95%, runs with a standard deviation"
    " of 3%, no level differs. netperf: its own loop (-I 95,5 -i 30,3), simulated on the same"
    " regime; two of its cells count as different where their intervals do not overlap."
)
PAIR = "sweep: {send: [write, sendfile]}\ncompare: {factor: send, baseline: write}\n"
SEVEN = "sweep: {chunk: [1K, 2K, 4K, 8K, 16K, 32K, 64K]}\ncompare: {factor: chunk, baseline: 1K}\n"
AT_MARGIN = SEVEN.replace("baseline: 1K", "baseline: 1K, margin: 3%, control: off")
THREE = "sweep: {chunk: [1K, 2K, 4K]}\n"
ALONE = "{}"


def runs(least: int, most: int, more: str = "") -> str:
    """How often a campaign repeats."""
    return f"repeat: {{min: {least}, max: {most}{more}}}\n"


def cells(number: int) -> str:
    """A campaign that compares nothing."""
    return f"sweep: {{chunk: [{', '.join(f'{i + 1}K' for i in range(number))}]}}\n"


@dataclass(frozen=True)
class Budget:
    """Between which shares the measured one must be."""

    low: float
    high: float

    def __str__(self) -> str:
        if self.high >= 1:
            return f"at least {self.low:.1%}"
        if self.low <= 0:
            return f"at most {percent(self.high)}"
        return f"{percent(self.low)} to {percent(self.high)}"


def at_most(share: float) -> Budget:
    return Budget(0.0, share)


def at_least(share: float) -> Budget:
    return Budget(share, 1.0)


def percent(share: float) -> str:
    """`4.9%`, `0.08%`, `0%`."""
    return f"{share:.1%}" if share >= 0.01 or share == 0 else f"{share:.2%}"


@dataclass(frozen=True)
class Regime:
    """A row: what it is, a trial of it, how many are made, its budget, and the same by netperf's
    rule.
    """

    what: str
    trial: Trial
    trials: int
    budget: Budget | None = None
    peer: Callable[[regimes.Random], Count] | None = None

    def row(self, count: Count) -> Row:
        """The row of what was counted."""
        share = count.hits / count.looks if count.looks else math.nan
        low, high = binomial(count)
        rng = np.random.default_rng([SEED, *self.what.encode()])
        beside = self.peer(rng) if self.peer else None
        return Row(
            self.what,
            percent(share) if count.looks else "never",
            f"netperf: {percent(beside.hits / beside.looks)}" if beside else "",
            f"{percent(low)} to {percent(high)}, n = {count.looks}" if count.looks else "",
            str(self.budget) if self.budget else "",
            self.budget.low <= share <= self.budget.high if self.budget and count.looks else None,
        )


def binomial(count: Count, confidence: float = 0.95) -> tuple[float, float]:
    """The exact interval of a share (Clopper and Pearson 1934, doi:10.1093/biomet/26.4.404)."""
    hits, misses, tail = count.hits, count.looks - count.hits, (1 - confidence) / 2
    low = float(betaincinv(hits, misses + 1, tail)) if hits else 0.0
    return low, float(betaincinv(hits + 1, misses, 1 - tail)) if misses else 1.0


def false_verdicts(
    what: str, draw: Draw, trials: int, budget: float | None, repeat: str = runs(10, 30)
) -> Regime:
    """How often two equal levels are called better or worse."""
    return Regime(
        f"two equal levels, {what}: a false verdict",
        partial(questions.any_difference, text=PAIR + repeat, draw=draw),
        trials,
        at_most(budget) if budget else None,
        partial(netperf.any_difference, draw=draw, cells=2),
    )


def covering(what: str, draw: Draw, trials: int, budget: float, number: int = 4) -> Regime:
    """How many of a campaign's cells have an interval that holds the true mean."""
    return Regime(
        f"{number} cells, {what}: intervals hold the mean",
        partial(questions.cells_hold, text=cells(number) + runs(10, 30), draw=draw),
        trials,
        at_least(budget),
        partial(netperf.cells_hold, draw=draw, cells=number),
    )


def confident(confidence: float, trials: int) -> Regime:
    """How often intervals of many cells of many spreads miss, at a confidence."""
    number = 180
    repeat = runs(10, 30, f", confidence: {confidence:.1%}")
    return Regime(
        f"{number} cells of spreads 0.3 to 4 times the precision, confidence {confidence:.1%}:"
        " intervals miss the mean",
        partial(missing, text=cells(number) + repeat, draw=regimes.of_spreads),
        trials,
        Budget(0.7 * (1 - confidence), 1.2 * (1 - confidence)),
    )


def missing(rng: regimes.Random, text: str, draw: Draw) -> Count:
    """How many cells' intervals miss the mean."""
    count = questions.cells_hold(rng, text, draw)
    return Count(count.looks - count.hits, count.looks)


def modes(what: str, text: str, spread: float, trials: int, budget: float | None) -> Regime:
    """Cells of which a fifth of the runs are 30% slower."""
    number = len(questions.simulated(text).plan.units)
    draw = partial(regimes.two_modes, spread=spread)
    return Regime(
        f"two modes, {spread:.0%} within each, {what}: intervals hold the mean, or `converged` is"
        " withheld",
        partial(questions.cells_hold_or_say_so, text=text, draw=draw),
        trials,
        at_least(budget) if budget else None,
        partial(netperf.cells_hold, draw=draw, cells=number, or_withheld=True),
    )


def counting(name: str, mean: float, k: float | None, budget: float | None) -> Iterator[Regime]:
    """Intervals of mean retransmits."""
    text = cells(4) + runs(10, 10)
    yield Regime(
        f"retransmits, {name}, mean {mean:g}: intervals hold the mean, where there are any",
        partial(questions.count_interval, text=text, mean=mean, k=k),
        250,
        at_least(budget) if budget else None,
    )
    yield Regime(
        f"retransmits, {name}, mean {mean:g}: intervals that reach below 0",
        partial(questions.count_below_0, text=text, mean=mean, k=k),
        250,
        at_most(0.0),
    )


def table() -> Iterator[Regime]:
    """All regimes."""
    yield false_verdicts("independent", regimes.independent, 3000, 0.055)
    yield false_verdicts("spreads of 1% and 6%", regimes.heteroscedastic, 3000, 0.055)
    yield false_verdicts("drifting", regimes.drifting, 3000, 0.055)
    yield false_verdicts("lag-1 correlation 0.3", regimes.LAG_3, 3000, 0.07)
    yield false_verdicts("lag-1 correlation 0.5", regimes.LAG_5, 3000, 0.10)
    for most, trials in ((30, 2500), (100, 1000)):
        yield false_verdicts(
            f"until: verdict, 5 to {most} runs",
            regimes.independent,
            trials,
            0.055,
            runs(5, most, ", until: verdict"),
        )
    yield covering("independent", regimes.independent, 1500, 0.94)
    yield covering("lag-1 correlation 0.3", regimes.LAG_3, 1500, 0.90)
    yield covering("lag-1 correlation 0.5", regimes.LAG_5, 1500, 0.86)
    for spread in (0.01, 0.02):
        yield modes("3 cells", THREE + runs(10, 30), spread, 1000, 0.90)
        yield modes("1 cell", runs(10, 30), spread, 1000, None)
    draw = partial(regimes.one_in_modes, spread=0.01)
    yield false_verdicts("two modes in one of them, 1% within", draw, 1500, None)
    for p in (0.5, 0.8, 1.0):
        yield Regime(
            f"two equal levels, slow runs of one fail with probability {p:g}: a false verdict",
            partial(questions.slow_runs_fail, text=PAIR + runs(10, 30), p=p, spread=0.02),
            1500,
            at_most(0.055),
        )
    yield Regime(
        "two equal levels, an unplanned reboot and a resume (1% between boots and within): a false"
        " verdict",
        partial(questions.reboot_verdict, text=PAIR + runs(10, 30), between=0.01, within=0.01),
        2000,
        at_most(0.055),
    )
    yield Regime(
        "4 cells, an unplanned reboot and a resume: intervals hold the mean, or `converged` is"
        " withheld",
        partial(questions.reboot_cells, text=cells(4) + runs(10, 30), between=0.01, within=0.01),
        1000,
        at_least(0.94),
    )
    yield Regime(
        "six comparisons that converged: one is reported wider than asked",
        partial(
            questions.wider_than_asked,
            text=SEVEN + runs(10, 100),
            draw=partial(regimes.independent, spread=0.03),
        ),
        200,
        at_most(0.0),
    )
    yield Regime(
        "six comparisons at the margin of 3%, 20 runs: a false `equivalent`",
        partial(
            questions.any_equivalent,
            text=AT_MARGIN + runs(20, 20),
            draw=partial(regimes.at_levels, ratio=0.97, spread=0.01),
        ),
        1000,
        at_most(0.055),
    )
    yield Regime(
        "two equal levels, 10 runs, `about N blocks would settle it` with N <= 400: N do",
        partial(questions.promise_kept, text=PAIR + runs(10, 10), draw=regimes.independent),
        300,
    )
    for between in (0.01, 0.02):
        yield Regime(
            f"two results whose campaigns differ by {between:.0%}: a false verdict",
            partial(questions.two_results, text=cells(1) + runs(10, 10), between=between),
            500,
            at_most(0.055),
        )
    yield Regime(
        "two results whose campaigns differ by 2%: a gate of throughput<-2% falls",
        partial(
            questions.two_results, text=cells(1) + runs(10, 10), between=0.02, gate="throughput<-2%"
        ),
        500,
        at_most(0.055),
    )
    yield Regime(
        "two results whose campaigns differ by 2%, 5 earlier ones: a false verdict",
        partial(questions.two_results, text=cells(1) + runs(10, 10), between=0.02, earlier=5),
        400,
        at_most(0.055),
    )
    yield Regime(
        "two equal levels, a margin of 1% below the precision: equivalent, or the plan warns",
        partial(
            questions.settled_or_warned,
            text=PAIR.replace("write}", "write, margin: 1%}") + runs(10, 30),
            draw=regimes.independent,
        ),
        100,
        at_least(0.94),
    )
    for name, k, budget in (
        ("Poisson", None, 0.90),
        ("negative binomial, k = 1", 1, 0.90),
        ("negative binomial, k = 2", 2, 0.90),
        ("negative binomial, k = 5", 5, 0.90),
    ):
        yield from counting(name, 2.0, k, budget)
    for confidence, trials in ((0.8, 30), (0.9, 60), (0.95, 80), (0.99, 150), (0.999, 250)):
        yield confident(confidence, trials)


def _answer(job: tuple[int, int, int]) -> tuple[int, Count]:
    """Some trials of a row: its place in the table, the first and the last of them."""
    at, first, last = job
    regime = tuple(table())[at]
    total = Count(0, 0)
    for number in range(first, last):
        total += regime.trial(np.random.default_rng([SEED, at, number]))
    return at, total


def _keep_in(folder: str) -> None:
    """Where a process of the pool has its files: it is ended without a chance to remove them."""
    tempfile.tempdir = folder


def counted(rows: tuple[Regime, ...], share: float = 1.0) -> list[Count]:
    """All trials of all rows, or a share of them, on all CPUs."""
    jobs = [
        (at, first, min(first + TOGETHER, made))
        for at, row in enumerate(rows)
        if (made := max(1, round(row.trials * share)))
        for first in range(0, made, TOGETHER)
    ]
    totals = [Count(0, 0)] * len(rows)
    context = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory(dir=simulated.memory()) as folder,
        context.Pool(os.cpu_count(), _keep_in, (folder,)) as pool,
    ):
        for at, count in pool.imap_unordered(_answer, jobs):
            totals[at] += count
    return totals


def measure() -> Part:
    """A row for each regime."""
    rows = tuple(table())
    found = counted(rows, float(os.environ.get("TRUTH_SHARE", "1")))
    return Part(
        "Verdicts that hold",
        HOW,
        tuple(row.row(count) for row, count in zip(rows, found, strict=True)),
    )
