"""What the user sees while a campaign runs: a bar on a terminal, plain lines otherwise; always on
standard error.
"""

from __future__ import annotations

import sys
import textwrap
import time
from contextlib import suppress
from typing import Any, Protocol, TextIO

from tqdm import tqdm

from netbench.analysis.stopping import Assessment
from netbench.control_characters import escape_controls
from netbench.units import count, format_duration

WIDTH = 80


class Progress(Protocol):
    """Who is told what the conductor does."""

    def begin(self, units: int, runs: int) -> None:
        """`units` to measure in at least `runs` runs."""

    def ran(self, run: int, cell: str, text: str, open_units: int, left: float) -> None:
        """A run is over: `text` says how the cell stands, `left` is the estimated time in
        seconds.
        """

    def say(self, message: str) -> None:
        """Something the user should know."""

    def end(self) -> None:
        """The campaign is over."""


class Silent:
    """Says nothing: for notebooks and tests."""

    def begin(self, units: int, runs: int) -> None:
        pass

    def ran(self, run: int, cell: str, text: str, open_units: int, left: float) -> None:
        pass

    def say(self, message: str) -> None:
        pass

    def end(self) -> None:
        pass


class Lines:
    """One line a run at most, and no more than one every few seconds: for logs."""

    def __init__(self, out: TextIO | None = None, every: float = 5.0) -> None:
        self._out = out or sys.stderr
        self._every = every
        self._last = 0.0
        self._units = 0

    def _print(self, text: str) -> None:
        try:
            print(
                "\n".join(map(_fold, escape_controls(text).split("\n"))), file=self._out, flush=True
            )
        except OSError:
            return  # the terminal is gone; the campaign goes on, log.txt has it all

    def begin(self, units: int, runs: int) -> None:
        self._units = units
        self._print(f"{count(units, 'cell')}, at least {count(runs, 'run')}")

    def ran(self, run: int, cell: str, text: str, open_units: int, left: float) -> None:
        if time.monotonic() - self._last < self._every:
            return
        self._last = time.monotonic()
        closed = self._units - open_units
        self._print(
            f"run {run}: {cell}: {text}; {closed} of {count(self._units, 'cell')} closed,"
            f" {format_duration(left)} left"
        )

    def say(self, message: str) -> None:
        self._print(message)

    def end(self) -> None:
        pass


class Bar(Lines):
    """A progress bar: runs done, the cell just measured with its running mean, cells closed, time
    left.
    """

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self._bar: tqdm[Any] | None = None

    def begin(self, units: int, runs: int) -> None:
        self._units = units
        layout = "{n_fmt} runs |{bar:8}| {desc}"
        self._bar = tqdm(
            total=runs, file=self._out, bar_format=layout, leave=False, dynamic_ncols=True
        )

    def ran(self, run: int, cell: str, text: str, open_units: int, left: float) -> None:
        if self._bar is None:
            return
        closed = self._units - open_units
        self._bar.total = max(self._bar.total or 0, self._bar.n + 1 + open_units)
        standing = f"{text} | {closed}/{self._units} closed, {format_duration(left)} left | {cell}"
        with suppress(OSError):  # the terminal is gone
            self._bar.set_description_str(escape_controls(standing), refresh=False)
            self._bar.update(1)

    def say(self, message: str) -> None:
        with suppress(OSError):
            if self._bar is not None:
                self._bar.clear()
        self._print(message)

    def end(self) -> None:
        with suppress(OSError):
            if self._bar is not None:
                self._bar.close()


def _fold(line: str) -> str:
    indent = " " * (len(line) - len(line.lstrip())) * 2
    return textwrap.fill(
        line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def for_terminal() -> Progress:
    """A bar when standard error is a terminal, else lines."""
    return Bar() if sys.stderr.isatty() else Lines()


def standing(assessment: Assessment, metrics: tuple[str, ...]) -> str:
    """A cell's first chosen metric: its running mean and half-width."""
    from netbench.analysis.metrics import METRICS

    for name in (*metrics, "throughput", *assessment.intervals):
        if name in assessment.intervals:
            interval = assessment.intervals[name]
            width = f" ± {interval.half_width:.2g}" if interval.known else ""
            unit = METRICS[name.partition(".")[0]].unit if name.partition(".")[0] in METRICS else ""
            return f"{name} {interval.mean:.3g}{width} {unit}".rstrip()
    return "no metric yet"
