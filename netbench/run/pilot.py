"""`duration: auto`: the window, and the warm-up, with which a campaign is soonest as precise as
asked, found before it begins by runs of one cell, its baseline.

Runs that follow each other closely have slow noise in common, which cancels from their ratio; but
each costs its warm-up and its beginning, and has the noise of its own connection. So the spread
from run to run is measured for windows of several lengths, a burst of runs each. Levels are not
compared here: what is found cannot favour one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean, median
from typing import NamedTuple

import numpy as np

from netbench.base.errors import RequestError
from netbench.base.units import format_time
from netbench.campaign.load import changed
from netbench.model import Campaign, Repeat, Sink, Transfer
from netbench.plan.plan import Plan, Unit
from netbench.read.accounts import accounts_of
from netbench.read.derive import metrics_of
from netbench.result.journal import Journal
from netbench.run import transfer
from netbench.run.ends import EndFinder, Ends
from netbench.run.job import MadeSinks
from netbench.run.recorder import empty_record
from netbench.run.run_history import described
from netbench.run.worker_pool import WorkerPool
from netbench.stats.intervals import ratio_confidence, t_quantile

MS = 10**6
RUNS = {50 * MS: 16, 100 * MS: 12, 200 * MS: 8, 500 * MS: 6}
"""How many runs of each length the pilot has, one after another."""
LENGTHS = (*RUNS, 1000 * MS, 2000 * MS, 5000 * MS, 10_000 * MS)
SAMPLE, LOOK = 10 * MS, 500 * MS  # of a run that shows when the rate is steady
LOOKS = 5
STEADY = 0.9  # of the rate that the second half of it has
WARMUP_LEAST = 20 * MS
SHARES = np.array([0, *np.geomspace(0.01, 1000, 51)])
"""How much larger the variance that a window averages may be than the one that it does not, at the
shortest length.
"""
FEW = 1000  # degrees of freedom at which Student's t is as good as normal


class Burst(NamedTuple):
    """Runs of one length, one after another: the seconds of each in all, and its value."""

    length: int
    seconds: float
    runs: Sequence[Mapping[str, float]]


def with_window(campaign: Campaign, pool: WorkerPool) -> tuple[Campaign, str]:
    """The campaign with what its `duration: auto` stands for, and in words why. Errors:
    RequestError where no length will do; EngineError; Lost.
    """
    begun = time.monotonic()
    unit = _baseline(campaign)
    ends = EndFinder(campaign, pool).ends(unit)
    cell = unit.cell.transfer._replace(sink=Sink(), sample=0)
    if "warmup" in campaign.auto:
        cell = cell._replace(warmup=_warmup(cell, ends))
    bursts = [_burst(unit, cell._replace(duration=length), ends) for length in RUNS]
    prices = prices_of(bursts, campaign.repeat)
    best = min(prices, key=lambda length: prices[length])
    times = {"duration": best, "warmup": cell.warmup}
    keys = {f"transfer.{key}": format_time(times[key]) for key in campaign.auto}
    why = (
        f"duration: auto: {format_time(best)} after a warm-up of {format_time(cell.warmup)}: by a"
        f" pilot of {time.monotonic() - begun:.0f} s, a comparison within"
        f" ±{campaign.repeat.precision * 100:.3g}% takes about {prices[best]:.0f} s,"
        f" with runs of 1 s about {prices[10**9]:.0f} s"
    )
    edited = changed(campaign, keys)
    return campaign._replace(cells=edited.cells, text=edited.text, auto=()), why


def _baseline(campaign: Campaign) -> Unit:
    """The unit that others are compared with, or the first. Errors: RequestError without any."""
    compare = campaign.compare
    units = [u for u in Plan(campaign).units if not u.cell.transfer.tool.external]
    if not units:
        raise RequestError("transfer.duration: auto needs a cell without a tool; write a time")
    is_base = (u for u in units if compare and u.cell.factors[compare.factor] == compare.baseline)
    return next(is_base, units[0])


def _warmup(cell: Transfer, ends: Ends) -> int:
    """Twice the time after which the rate is steady, in ns: the least of some runs, since what
    disturbs a host only delays it.
    """
    steady = min(_steady_after(cell, ends) for _ in range(LOOKS))
    return max(2 * -(-steady // SAMPLE) * SAMPLE, WARMUP_LEAST)


def _steady_after(cell: Transfer, ends: Ends) -> int:
    looked = cell._replace(warmup=0, duration=LOOK, sample=SAMPLE)
    lines = transfer.measure(looked, ends, MadeSinks(Journal())).samples
    flow = [
        (line["ns"], line["flow"].get("answered") or sum(line["flow"].get("bytes", ())))
        for line in lines
        if line["side"] == "receiver" and "flow" in line
    ]
    steps = [(then, (b - a) / (then - now)) for (now, a), (then, b) in pairwise(flow) if then > now]
    if not steps:
        return LOOK
    least = STEADY * median(rate for _, rate in steps[len(steps) // 2 :])
    return next((at - flow[0][0] for at, rate in steps if rate >= least), LOOK)


def _burst(unit: Unit, cell: Transfer, ends: Ends) -> Burst:
    started, length = time.monotonic(), cell.duration or 0
    runs = [_metrics(unit, cell, ends) for _ in range(RUNS[length])]
    return Burst(length, (time.monotonic() - started) / len(runs), runs)


def prices_of(bursts: Sequence[Burst], repeat: Repeat) -> dict[int, float]:
    """By length, the seconds that a comparison would take to be as precise as asked in every metric
    that is asked for. Errors: RequestError where one of them has no value in runs of any length.
    """
    deviations = t_quantile(FEW, ratio_confidence(repeat)) / math.log1p(repeat.precision)
    beside = fmean(burst.seconds - burst.length / 1e9 for burst in bursts)
    blocks = {length: float(repeat.min) for length in LENGTHS}
    for name in repeat.metrics:
        whole = [burst for burst in bursts if all(run.get(name, 0) > 0 for run in burst.runs)]
        if not whole:
            longest = format_time(bursts[-1].length)
            raise RequestError(
                f"transfer.duration: auto: runs of {longest} have no {name}; write a time"
            )
        variance = variance_of(name, whole)
        for length, most in list(blocks.items()):
            needed = deviations**2 * variance(length) if length >= whole[0].length else math.inf
            blocks[length] = max(most, needed)
    return {length: 2 * n * (length / 1e9 + beside) for length, n in blocks.items()}


def variance_of(metric: str, bursts: Sequence[Burst]) -> Callable[[int], float]:
    """The variance of the log ratio of a run to the one before it, by length: what a window
    averages and what it does not, a + b / length. Where all runs are of one level that ratio's
    mean is 0 (von Neumann's mean square successive difference) and its square follows chi-squared:
    a and b are the likeliest of all bursts.
    """
    logs = [[math.log(run[metric]) for run in burst.runs] for burst in bursts]
    seen = np.array([fmean((b - a) ** 2 for a, b in pairwise(each)) for each in logs])
    freedom = np.array([len(each) - 1 for each in logs])
    shapes = 1 + SHARES[:, None] * LENGTHS[0] / np.array([burst.length for burst in bursts])
    scales = np.average(seen / shapes, axis=1, weights=freedom)
    unlikely = freedom.sum() * np.log(scales) + (freedom * np.log(shapes)).sum(axis=1)
    at = int(np.argmin(unlikely))
    return lambda length: float(scales[at] * (1 + SHARES[at] * LENGTHS[0] / length))


def _metrics(unit: Unit, cell: Transfer, ends: Ends) -> Mapping[str, float]:
    """What one run measures. Errors: EngineError; Lost."""
    measured = transfer.measure(cell, ends, MadeSinks(Journal()))
    record = replace(
        empty_record(unit, 1, 0, 0),
        sender=measured.sender,
        receiver=measured.receiver,
        captures=measured.captures,
    )
    workers = ends.sender.worker, ends.receiver.worker
    ticks = {worker.host: worker.hello.clock_ticks for worker in workers}
    shared = workers[0].hello.boot_id == workers[1].hello.boot_id
    accounts = accounts_of(described(workers[0].catalogue.rows))
    return metrics_of(record, ticks, shared, accounts)
