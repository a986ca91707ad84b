"""An overview as lines of a terminal of any size, by rich. Text of a result is no markup."""

from __future__ import annotations

import io
import os
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from netbench.base.control_characters import escape_controls
from netbench.base.units import count, format_duration
from netbench.live.standing import RANK, STATES, Overview
from netbench.read.shown_levels import shown
from netbench.report.numbers import column_parts, joined, share
from netbench.run.progress import unit_of
from netbench.stats.closing import reached
from netbench.stats.intervals import Interval
from netbench.stats.words import bounds, signed

if TYPE_CHECKING:
    from netbench.stats.comparison import Comparison

STYLES = dict.fromkeys(("unsupported", "max", "unstable", "interrupted"), "yellow")
STYLES |= dict.fromkeys(("failed", "refused", "worse"), "bold red")
STYLES |= dict.fromkeys(("converged", "equivalent", "better"), "green")
LABEL_MOST = 30  # columns of a level
WIDE = 10_000  # columns in which tables are laid out; what does not fit the screen is cut
TOGETHER = 2  # rows that a part of the screen gets at a time


class _Part(NamedTuple):
    """A part of the screen: a title, and rows of one line each. `keep`: which rows to show where
    there is room for so many; `noun`: what the others are, which are counted; "" for no word.
    """

    title: Sequence[Text]
    rows: Sequence[Text]
    noun: str = ""
    keep: Callable[[int], Sequence[int]] = range

    def lines(self, room: int) -> list[Text]:
        """The part in so many rows, after an empty line; nothing where it has none."""
        if not room or not self.rows:
            return []
        if room >= len(self.rows):
            return [Text(), *self.title, *self.rows]
        places = self.keep(room - 1)
        more = Text(f"… and {count(len(self.rows) - len(places), f'more {self.noun}')}")
        return [Text(), *self.title, *(self.rows[i] for i in places), *([more] * bool(self.noun))]


def render(
    view: Overview, width: int = 80, height: int | None = None, colour: bool = False, note: str = ""
) -> list[str]:
    """The lines of an overview, `height` of them at most; None: all that there is to say."""
    head, foot = list(_head(view)), [_text(note, "dim")] if note else []
    parts = [_cells(view), _comparisons(view), _cautions(view, width), _log(view)]
    rooms = [len(part.rows) for part in parts]
    if height is not None:
        rooms = _shared(parts, height - len(head) - len(foot))
    body = [line for part, room in zip(parts, rooms, strict=True) for line in part.lines(room)]
    return _printed([*head, *body, *foot][:height], width, colour)


def _shared(parts: Sequence[_Part], room: int) -> list[int]:
    """How many rows each part gets in so many lines: in turns, so that each says something."""
    rows = [0] * len(parts)
    before = -1
    while before != room:
        before = room
        for i, part in enumerate(parts):
            title = 0 if rows[i] else 1 + len(part.title)
            more = min(TOGETHER, len(part.rows) - rows[i], room - title)
            if more > 0 and (rows[i] or more >= min(len(part.rows), TOGETHER)):
                rows[i] += more
                room -= title + more
    return rows


def _printed(lines: Sequence[Text], width: int, colour: bool) -> list[str]:
    """Each line with its colours, cut where it is too long."""
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=colour,
        color_system="standard" if colour and not os.environ.get("NO_COLOR") else None,
        legacy_windows=False,
    )
    printed = []
    for line in lines:
        line.rstrip()
        line.truncate(width, overflow="ellipsis")
        with console.capture() as captured:
            console.print(line, no_wrap=True, end="")
        printed.append(captured.get())
    return printed


def _text(words: str, style: str = "") -> Text:
    return Text(escape_controls(" ".join(words.splitlines())), style)


def _head(view: Overview) -> Iterator[Text]:
    """The campaign, and how far it is."""
    colour = "green" if view.state in ("running", "done") else "red"
    state = Text(STATES[view.state], f"bold {colour}")
    left = "" if view.left is None else f", about {format_duration(view.left)} left"
    cells = f"{count(len(view.cells), 'cell')}: {_in_words(view.statuses)}"
    yield Text.assemble(_text(view.plan.campaign.name, "bold"), "  ", state, f"{left}  {cells}")
    ledger = view.ledger
    runs = f"{view.least} to {view.most}" if view.most > view.least else f"{view.most}"
    bad = _in_words({status: n for status, n in ledger.counts.items() if status != "ok"})
    is_done = view.state == "done"
    block = count(ledger.block, "block") if is_done else f"block {ledger.block + 1}"
    runs_made = sum(cell.runs for cell in view.cells)
    done = f"{runs_made} of {runs} runs" + (f" ({bad})" if bad else "")
    yield _text("; ".join(filter(None, (done, block, view.boot, view.last))))


def _cells(view: Overview) -> _Part:
    """Each cell's runs, status and means."""
    metrics = {name: _metric(view, name) for name in view.plan.repeat.metrics}
    rows = [
        [
            *map(_text, cell.levels),
            Text(f"{cell.runs} -{cell.failed}" if cell.failed else f"{cell.runs}"),
            _text(cell.status, STYLES.get(cell.status, "")),
            *(text for column in metrics.values() for text in column[i]),
        ]
        for i, cell in enumerate(view.cells)
    ]
    heads = [(name, f"{name} {unit_of(name)}".rstrip()) for name in metrics]
    numbers = [head for _, title in heads for head in (title, "±%")]
    header, *lines = _table([*view.factors, ">runs", "status", *(f">{n}" for n in numbers)], rows)
    return _Part([_text(_asked(view), "dim"), header], lines, "cell", lambda n: _chosen(view, n))


def _asked(view: Overview) -> str:
    """What closes a cell."""
    repeat, compare = view.plan.repeat, view.plan.campaign.compare
    if repeat.until == "verdict" and compare:
        return "cells: mean ± half-width; run until each comparison has a verdict"
    what = "ratio" if compare else "mean"
    return f"cells: mean ± half-width; run until each {what} is known to ±{share(repeat.precision)}"


def _metric(view: Overview, name: str) -> list[tuple[Text, Text]]:
    """A metric of each cell: mean with half-width, and that in percent of the mean."""
    intervals = [cell.intervals.get(name, Interval(0)) for cell in view.cells]
    widths = []
    for each in intervals:
        style = "green" if each.known and reached(name, each, view.plan.repeat) else "yellow"
        precision = f"{min(each.precision, 9.99):.1%}" if each.known else "-"
        widths.append(Text(precision, style))
    return list(zip(map(Text, map(joined, column_parts(intervals))), widths, strict=True))


def _chosen(view: Overview, room: int) -> list[int]:
    """Places of the cells to show, in file order: first those that somebody may have to act on."""
    statuses = [cell.status for cell in view.cells]
    ranked = sorted(
        range(len(statuses)), key=lambda i: RANK.index(statuses[i]) if statuses[i] in RANK else 0
    )
    return sorted(ranked[:room])


def _comparisons(view: Overview) -> _Part:
    """The verdicts so far."""
    rows = []
    for c in view.findings.comparisons:
        pair = (c.pair,) if "pair" in view.factors else ()
        levels = [_text(shown(each)) for each in (c.level, *pair, *c.context.values())]
        rows.append([*levels, _text(c.metric), *_verdict(c), Text(count(c.n, c.unit))])
    columns = [*[""] * (len(rows[0]) - 5 if rows else 0), "", "", ">", "", ""]
    asked = view.plan.campaign.compare
    if not rows or asked is None:
        return _Part([], [])
    against = f"{asked.factor}, against {shown(asked.baseline)}"
    title = f"compared: {against}; intervals allow for looking early"
    return _Part([_text(title, "dim")], _table(columns, rows)[1:], "comparison")


def _verdict(c: Comparison) -> tuple[Text, Text, Text]:
    """Verdict, change and interval of a comparison."""
    if not c.ratio > 0:
        return Text("no verdict"), Text("-"), _text(c.why)
    verdict = Text(c.verdict + "?" * bool(c.flags), STYLES.get(c.verdict, ""))
    interval = bounds(c.low, c.high) if c.low > 0 else c.why
    return verdict, Text(f"{signed(c.ratio)}%"), _text(interval)


def _table(columns: Sequence[str], rows: Iterable[Sequence[Text]]) -> list[Text]:
    """The lines of a table, its heads first; `>`: columns of numbers."""
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0), pad_edge=False)
    for name in columns:
        justify = "right" if name.startswith(">") else "left"
        most = None if name.startswith(">") else LABEL_MOST
        head = _text(name.removeprefix(">"))
        table.add_column(head, justify=justify, max_width=most, no_wrap=True, overflow="ellipsis")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*row)
    lines = Console(width=WIDE, file=io.StringIO()).render_lines(table, pad=False)
    return [Text.assemble(*((part.text, part.style or "") for part in line)) for line in lines]


def _cautions(view: Overview, width: int) -> _Part:
    """Runs that are not ok, and what else is in doubt."""
    bad = [f"run {each.run}: {each.cell}: {each.status}: {each.reason}" for each in view.ledger.bad]
    every = (escape_controls(words).split() for words in (*reversed(bad), *view.findings.cautions))
    folded = textwrap.TextWrapper(width, initial_indent="! ", subsequent_indent="  ")
    rows = [Text(line, "yellow") for words in every for line in folded.wrap(" ".join(words))]
    return _Part([Text("cautions", "dim")], rows, "line")


def _log(view: Overview) -> _Part:
    """The last lines of log.txt."""
    rows = [_text(line[11:19] + line[27:]) for line in view.log]
    last = len(rows)
    return _Part([Text("log", "dim")], rows, keep=lambda room: range(last - room - 1, last))


def _in_words(counts: Mapping[str, int]) -> str:
    """`2 open, 1 converged`."""
    return ", ".join(f"{n} {status}" for status, n in counts.items())
