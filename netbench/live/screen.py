"""An overview as lines of a terminal of any size, by rich. Text of a result is escaped, and never
markup.
"""

from __future__ import annotations

import io
import os
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console, JustifyMethod
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from netbench.base.control_characters import escape_controls
from netbench.base.units import count, format_duration
from netbench.live.standing import STATES, Overview, chosen, in_words, unit_of
from netbench.read.shown_levels import shown
from netbench.report.numbers import column_parts, joined, number, share
from netbench.stats.intervals import Interval
from netbench.stats.words import bounds, signed

if TYPE_CHECKING:
    from netbench.stats.comparison import Comparison

BARS = "▁▂▃▄▅▆▇█"
STYLES = {
    **{"failed": "bold red", "refused": "red", "unsupported": "yellow", "max": "yellow"},
    **{"unstable": "yellow", "interrupted": "yellow"},
    **{"converged": "green", "better": "bold green", "worse": "bold red", "equivalent": "green"},
}
STATE_STYLES = {"running": "bold green", "done": "bold green"}
LABEL_MOST = 30  # columns of a level
NARROW = 60  # columns, below which words are left out
GAP = "  "


@dataclass(frozen=True)
class _Part:
    """A part of the screen: a title, and rows of one line each, of which it gets `step` at a time
    while there is room. `keep`: which rows to show where there is room for so many; `more`: what
    stands for the others.
    """

    title: list[str]
    rows: list[str]
    step: int
    more: Callable[[Sequence[int]], str]
    keep: Callable[[int], Sequence[int]] = range

    def lines(self, room: int) -> list[str]:
        """The part with so many rows, after an empty line; nothing where it has none."""
        if not room or not self.rows:
            return []
        kept = self.keep(room if room >= len(self.rows) else room - 1)
        more = self.more(kept)
        shown = [self.rows[i] for i in kept if i < len(self.rows)]
        return ["", *self.title, *shown, *([more] if more else [])]


def render(
    view: Overview, width: int = 80, height: int | None = None, colour: bool = False
) -> list[str]:
    """The lines of an overview, `height` of them at most; None: all that there is to say."""
    page = _Page(view, width, colour)
    head = page.head()
    foot = [page.line(Text(escape_controls(view.note), "dim"))] if view.note else []
    parts = [page.cells(), page.comparisons(), page.cautions(), page.log()]
    rows = [len(part.rows) for part in parts]
    if height is not None:
        rows = _shared(parts, height - len(head) - len(foot))
    body = [line for part, room in zip(parts, rows, strict=True) for line in part.lines(room)]
    return [*head, *body, *foot][:height]


def _shared(parts: Sequence[_Part], room: int) -> list[int]:
    """How many rows each part gets in so many lines: in turns, so that each has something to say
    before any says all.
    """
    rows = [0] * len(parts)
    while True:
        before = room
        for i, part in enumerate(parts):
            title = 0 if rows[i] else 1 + len(part.title)
            more = min(part.step, len(part.rows) - rows[i], room - title)
            if more > 0 and (rows[i] or more >= min(len(part.rows), 2)):
                rows[i] += more
                room -= title + more
        if room == before:
            return rows


class _Page:
    """The parts of an overview, in lines of a width."""

    def __init__(self, view: Overview, width: int, colour: bool) -> None:
        self.view, self.width = view, width
        self._console = Console(
            file=io.StringIO(),
            width=width,
            force_terminal=colour,
            color_system="standard" if colour and not os.environ.get("NO_COLOR") else None,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
        )

    def line(self, *parts: str | Text) -> str:
        """One line, cut where it is too long."""
        text = Text("", overflow="ellipsis", no_wrap=True)
        for part in parts:
            text.append_text(part if isinstance(part, Text) else Text(part))
        text.truncate(self.width, overflow="ellipsis")
        return self._lines(text)[0]

    def _lines(self, renderable: Text | Table) -> list[str]:
        with self._console.capture() as captured:
            self._console.print(renderable, no_wrap=True, overflow="ellipsis", crop=True)
        return [line.rstrip() for line in captured.get().split("\n")][:-1] or [""]

    def head(self) -> list[str]:
        """The campaign, how far it is, and its throughput."""
        view = self.view
        state = Text(STATES[view.state], STATE_STYLES.get(view.state, "bold red"))
        left = "" if view.left is None else f", about {format_duration(view.left)} left"
        cells = f"{count(sum(view.statuses.values()), 'cell')}: {in_words(view.statuses)}"
        done = [
            self.line(Text(escape_controls(view.name), "bold"), GAP, state, left, GAP, cells),
            self.line(f"{_runs(view)}; {_block(view)}{_after(view.boot)}", _after(view.last)),
        ]
        return [*done, *([self.line(*self._sparkline())] if len(view.recent) > 1 else [])]

    def _sparkline(self) -> Iterable[str | Text]:
        """Throughput of the last runs, as many as there is room for."""
        title = "throughput, Gb/s, last {} runs: " if self.width >= NARROW else "Gb/s: "
        ends = len(title) + 2 + 2 * 7
        values = self.view.recent[-max(8, self.width - ends) :]
        low, high = min(values), max(values)
        step = (high - low) / len(BARS) or 1.0
        bars = "".join(BARS[min(int((value - low) / step), len(BARS) - 1)] for value in values)
        yield title.format(len(values)) + number(low) + " "
        yield Text(bars, "cyan")
        yield " " + number(high)

    def cells(self) -> _Part:
        """Each cell's runs, means and status; as many metrics as there is room for."""
        view, metrics = self.view, self.view.repeat.metrics
        numbers = range(len(metrics), 0, -1)
        header, *rows = self._fitting(self._cell_table(metrics[:number]) for number in numbers)
        title = [self.line(Text(_asked(view), "dim")), header]
        statuses = [cell.status for cell in view.cells]
        return _Part(title, rows, 3, self._more_cells, lambda room: chosen(statuses, room))

    def _cell_table(self, metrics: Sequence[str]) -> Table:
        table = _table(*self.view.factors)
        table.add_column("runs", justify="right", no_wrap=True)
        for name in metrics:
            title = f"{name} {unit_of(name)}".rstrip()
            table.add_column(Text(title), justify="right", no_wrap=True)
            table.add_column("±%", justify="right", no_wrap=True)
        table.add_column("status", no_wrap=True)
        columns = [self._metric(name) for name in metrics]
        for i, cell in enumerate(self.view.cells):
            failed = f" -{cell.failed}" if cell.failed else ""
            numbers = [text for column in columns for text in column[i]]
            status = Text(cell.status, STYLES.get(cell.status, ""))
            table.add_row(*_words(cell.levels), f"{cell.runs}{failed}", *numbers, status)
        return table

    def _fitting(self, tables: Iterable[Table]) -> list[str]:
        """The lines of the first table that is not wider than the screen, or of the last."""
        for table in tables:
            wide = self._console.options.update(max_width=10_000)
            if Measurement.get(self._console, wide, table).maximum <= self.width:
                break
        return self._lines(table)

    def _metric(self, name: str) -> list[tuple[Text, Text]]:
        """A metric of each cell: mean with half-width, and that in percent of the mean."""
        intervals = [cell.intervals.get(name, Interval(0)) for cell in self.view.cells]
        texts = [joined(parts) for parts in column_parts(intervals)]
        return [
            (Text(text), self._width(name, i)) for text, i in zip(texts, intervals, strict=True)
        ]

    def _width(self, name: str, interval: Interval) -> Text:
        if not interval.known:
            return Text("-")
        style = "green" if self.view.reached(name, interval) else "yellow"
        return Text(f"{min(interval.precision, 9.99):.1%}", style)

    def _more(self, n: int, noun: str) -> str:
        return self.line(f"… and {count(n, f'more {noun}')}") if n > 0 else ""

    def _more_cells(self, kept: Sequence[int]) -> str:
        view = self.view
        hidden = dict(view.hidden)
        for i, cell in enumerate(view.cells):
            if i not in kept:
                hidden[cell.status] = hidden.get(cell.status, 0) + 1
        n = sum(hidden.values())
        return self.line(f"… and {n} more cell{'s' * (n > 1)}: {in_words(hidden)}") if n else ""

    def comparisons(self) -> _Part:
        """The verdicts so far; what they are of and what they say before how many runs they
        have.
        """
        view = self.view
        tables = (self._comparison_table(columns) for columns in (5, 4, 3))
        rows = self._fitting(tables) if view.comparisons else []
        title = f"compared: {escape_controls(view.compared)}; intervals allow for looking early"
        return _Part(
            [self.line(Text(title, "dim"))],
            rows,
            2,
            lambda kept: self._more(len(rows) - len(kept), "comparison"),
        )

    def _comparison_table(self, columns: int) -> Table:
        """With level, metric and verdict, then change, its interval, and n."""
        labels = [(c.level, *_context(self.view, c)) for c in self.view.comparisons]
        table = _table(*[""] * len(labels[0]))
        table.show_header = False
        for name in ("metric", "verdict", "change", "interval", "n")[:columns]:
            justify: JustifyMethod = "right" if name == "change" else "left"
            table.add_column(justify=justify, no_wrap=True, overflow="ellipsis")
        for label, c in zip(labels, self.view.comparisons, strict=True):
            table.add_row(*_words(map(shown, label)), Text(c.metric), *_said(c)[: columns - 1])
        return table

    def cautions(self) -> _Part:
        """Runs that are not ok, and what else is in doubt."""
        view = self.view
        bad = [f"run {each.run}: {each.cell}: {each.status}: {each.reason}" for each in view.bad]
        rows = [
            self.line(Text(line, "yellow"))
            for words in (*reversed(bad), *view.cautions)
            for line in textwrap.wrap(
                " ".join(escape_controls(words).split()),
                self.width,
                initial_indent="! ",
                subsequent_indent="  ",
            )
        ]
        title = [self.line(Text("cautions", "dim"))]
        return _Part(title, rows, 2, lambda kept: self._more(len(rows) - len(kept), "line"))

    def log(self) -> _Part:
        """The last lines of log.txt."""
        rows = [self.line(Text(escape_controls(line[11:19] + line[27:]))) for line in self.view.log]
        last = len(rows)
        return _Part(
            [self.line(Text("log", "dim"))],
            rows,
            2,
            lambda kept: "",
            lambda room: range(max(0, last - room - (room < last)), last),
        )


def _table(*keys: str) -> Table:
    """A table without lines, with these columns of levels."""
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0), pad_edge=False)
    for key in keys:
        table.add_column(Text(key), max_width=LABEL_MOST, no_wrap=True, overflow="ellipsis")
    return table


def _words(levels: Iterable[str]) -> list[Text]:
    return [Text(escape_controls(level)) for level in levels]


def _runs(view: Overview) -> str:
    """`37 of 40 to 120 runs (2 failed)`."""
    ok = view.runs.get("ok", 0)
    bounds = f"{view.least} to {view.most}" if view.most > view.least else f"{view.most}"
    bad = {status: n for status, n in view.runs.items() if status != "ok"}
    return f"{ok} of {bounds} runs" + (f" ({in_words(bad)})" if bad else "")


def _asked(view: Overview) -> str:
    """What closes a cell."""
    repeat = view.repeat
    if repeat.until == "verdict" and view.compared:
        return "cells: mean ± half-width; run until each comparison has a verdict"
    what = "ratio" if view.compared else "mean"
    return f"cells: mean ± half-width; run until each {what} is known to ±{share(repeat.precision)}"


def _context(view: Overview, c: Comparison) -> tuple[str, ...]:
    pair = (c.pair,) if "pair" in view.factors else ()
    return (*pair, *c.context.values())


def _said(c: Comparison) -> tuple[Text, Text, Text, Text]:
    """Verdict, change, interval and n of a comparison."""
    verdict = Text(c.verdict + "?" * bool(c.flags), STYLES.get(c.verdict, ""))
    n = Text(count(c.n, c.unit))
    if not c.ratio > 0:
        return Text("no verdict"), Text("-"), Text(escape_controls(c.why)), n
    change = Text(f"{signed(c.ratio)}%")
    interval = bounds(c.low, c.high) if c.low > 0 else escape_controls(c.why)
    return verdict, change, Text(interval), n


def _block(view: Overview) -> str:
    """The block that is being run, or how many were."""
    return count(view.block, "block") if view.state == "done" else f"block {view.block + 1}"


def _after(text: str) -> str:
    return f"; {escape_controls(text)}" if text else ""
