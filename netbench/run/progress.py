"""What is told on standard error while a campaign runs: lines here; netbench/live/ has a view."""

from __future__ import annotations

import math
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from netbench.base.control_characters import escape_controls
from netbench.base.terminal import fold
from netbench.base.units import count, format_duration
from netbench.model import Repeat
from netbench.plan.plan import Plan
from netbench.result.record import Record

if TYPE_CHECKING:
    from netbench.run.ledger import Ledger
    from netbench.stats.closing import Assessment

SHARE = 0.02  # of the time, that telling may take


class Progress:
    """Who is told what the conductor does; by itself it says nothing, for notebooks and tests."""

    def begin(self, plan: Plan, ledger: Ledger, folder: Path) -> None:
        """A campaign begins or goes on; the ledger stands where its records end."""

    def ran(self, record: Record, ledger: Ledger) -> None:
        """A run is over."""

    def say(self, message: str) -> None:
        """Something the user should know."""

    def end(self) -> None:
        """The campaign is over."""


class Lines(Progress):
    """One line a run at most, and no more than one every few seconds: for logs."""

    def __init__(self, out: TextIO | None = None, every: float = 5.0) -> None:
        self._out = out or sys.stderr
        self._every = every
        self._due = 0.0

    def _print(self, text: str) -> None:
        self.show(self.folded(text))

    def show(self, text: str) -> None:
        """Print a text as it is."""
        with suppress(OSError):  # the terminal is gone; the campaign goes on, log.txt has it all
            print(escape_controls(text), file=self._out, flush=True)

    @staticmethod
    def folded(text: str) -> str:
        """A message in lines of 80 columns."""
        return "\n".join(map(_fold, escape_controls(text).split("\n")))

    def begin(self, plan: Plan, ledger: Ledger, folder: Path) -> None:
        self._plan = plan
        self._print(f"{count(ledger.size, 'cell')}, at least {count(plan.runs_total, 'run')}")

    def ran(self, record: Record, ledger: Ledger) -> None:
        if (begun := time.monotonic()) < self._due:
            return
        metrics = self._plan.repeat.metrics
        text = standing(ledger.assessment((record.cell, record.pair)), metrics)
        closed, left = ledger.size - ledger.open_count, seconds_left(self._plan, ledger)
        self._print(
            f"run {record.run}: {record.cell}: {text}; {closed} of {count(ledger.size, 'cell')}"
            f" closed, {format_duration(left)} left"
        )
        now = time.monotonic()
        self._due = now + max(self._every, (now - begun) / SHARE)

    def say(self, message: str) -> None:
        self._print(message)


def _fold(line: str) -> str:
    indent = " " * (len(line) - len(line.lstrip())) * 2
    return fold(line, indent)


def standing(assessment: Assessment, metrics: tuple[str, ...]) -> str:
    """A cell's first chosen metric: its running mean and half-width."""
    for name in (*metrics, "throughput", *assessment.intervals):
        if name in assessment.intervals:
            interval = assessment.intervals[name]
            width = f" ± {interval.half_width:.2g}" if interval.known else ""
            return f"{name} {interval.mean:.3g}{width} {unit_of(name)}".rstrip()
    return "no metric yet"


def unit_of(metric: str) -> str:
    """The unit of a metric; "" of one that a tool prints."""
    from netbench.read.metrics import METRICS

    known = METRICS.get(metric.partition(".")[0])
    return known.unit if known else ""


def seconds_left(plan: Plan, ledger: Ledger) -> float:
    """Estimated time of the runs of all open units, if intervals shrink with the square root of the
    number of runs, and of the boots after that of the block.
    """
    runs = (
        _runs_left(ledger.assessment(unit.key), plan.repeat) * plan.run_seconds(unit)
        for unit in plan.units
        if ledger.is_open(unit.key)
    )
    return math.fsum(runs) + plan.seconds_of_boots(ledger.block)


def _runs_left(assessment: Assessment, repeat: Repeat) -> int:
    """Runs of a unit until its least precise metric is as precise as the campaign wants it."""
    intervals = (assessment.intervals.get(name) for name in repeat.metrics)
    widths = [interval.precision for interval in intervals if interval and interval.known]
    ratio = max(widths, default=1.0) / repeat.precision
    needed = math.ceil(assessment.n * ratio**2) if assessment.n else repeat.min
    return max(min(max(needed, repeat.min), repeat.max) - assessment.n, 0)
