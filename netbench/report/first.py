"""The first screen of a report, as text: what was asked, the cells, a line a caution, and last,
where a terminal ends, the answer. At most LINES lines; `report --full` has everything.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from operator import itemgetter

from netbench.base.control_characters import escape_controls
from netbench.base.units import count
from netbench.read.cells import CellResult
from netbench.read.control import holds
from netbench.read.pivot import copies_here
from netbench.report import text
from netbench.report.blocks import Findings, Prose, Table
from netbench.report.build import Report
from netbench.report.label import explained
from netbench.report.numbers import MISSING, share
from netbench.report.phrases import fixed, in_short_of, title, where
from netbench.report.sections.summary import gone_along
from netbench.report.source import Source
from netbench.stats.comparison import Comparison

LINES, WIDTH = 45, 80
CELLS, CAUTIONS, COMPARISONS = 10, 8, 12  # that have a line each
SETTLED = 8  # words of what is the same in all cells
FULL = "--full"


def render(report: Report, width: int = WIDTH, more: str = FULL) -> str:
    """The first screen, ending with a newline; `width`: columns; `more`: what tells the rest."""
    source = report.source
    below = [*_cautions(source, width, more), *_answers(report, width)]
    above = [*_head(report, width), ""]
    room = LINES - len(above) - len(below) - 1
    cells = _cells(report, width, room)
    lines = [*above, *cells, *([""] if cells else []), *below]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _prose(lines: Sequence[str], width: int, bullets: bool = False) -> list[str]:
    return list(text.block_lines(Prose(tuple(lines), bullets=bullets), width))


def _head(report: Report, width: int) -> Iterator[str]:
    """What was asked, how much was done, and what all cells have."""
    result = report.source.result
    state, *_ = report.section("summary").blocks[-1].lines  # type: ignore[union-attr]
    about = f"{result.name}: {result.about}" if result.about else result.name
    settings = fixed(result).removesuffix(".").split(", ")
    rest = f", and {len(settings) - SETTLED} more ({FULL})" if len(settings) > SETTLED else ""
    settled = f"{', '.join(settings[:SETTLED])}{rest}." if settings != [""] else ""
    lines = [about, state, settled, report.source.offered]
    yield from _prose([*explained(report.label), *filter(None, lines)], width)


def _cells(report: Report, width: int, room: int) -> list[str]:
    """The table of cells, as far as it has room: those that moved most where there are many. Of a
    single cell the answers say as much.
    """
    source = report.source
    section = next((s for s in report.sections if s.key == "cells"), None)
    table = next((b for b in section.blocks if isinstance(b, Table)), None) if section else None
    if table is None or source.result.is_fleet or len(table.rows) == 1:
        return []
    if text.fitted(table, width).columns != table.columns:  # what was asked for has room first
        asked = {source.result.describe(metric).title for metric in source.answers}
        heads = enumerate((head.kind != "key", head.name not in asked) for head in table.columns)
        pick = itemgetter(*(at for at, _ in sorted(heads, key=itemgetter(1))))
        table = table._replace(columns=pick(table.columns), rows=tuple(map(pick, table.rows)))
    order = list(range(len(table.rows)))
    if len(order) > CELLS:
        order.sort(key=lambda at: _rank(source, source.cells[at]))
    for shown in range(min(len(order), CELLS), 0, -1):
        rows = [tuple(MISSING if v == "" else v for v in table.rows[at]) for at in order[:shown]]
        marked = frozenset(n for n, at in enumerate(order[:shown]) if at in table.marked)
        notes = tuple(note for note in table.notes if marked and note.startswith(text.MARK))
        part = table._replace(title="", rows=tuple(rows), marked=marked, notes=())
        lines = list(text.table_lines(text.fitted(part, width)._replace(notes=notes), width))
        if more := len(order) - shown:
            copied = sum(copies_here(source.result, cell) for cell in source.cells)
            copies = f", and {copied} of tools that copy on one host, not ranked" if copied else ""
            line = f"and {count(more, 'more cell')} ({FULL}): they moved less{copies}"
            lines += _prose([line if len(order) > CELLS else line.partition(":")[0]], width)
        if len(lines) <= room:
            return lines
    return []


def _rank(source: Source, cell: CellResult) -> float:
    """Less for what moved more; copies on one host, which send nothing, are last."""
    first = cell.intervals.get(source.metrics[0]) if source.metrics else None
    return -first.mean if first and not copies_here(source.result, cell) else math.inf


def _cautions(source: Source, width: int, more: str) -> list[str]:
    """A line for each caution, with its number; controls, and what else differs or is compared."""
    every = source.cautions
    lines = [f"{count(len(every), 'caution')} (evidence and remedies: {more}):"] if every else []
    for number, each in enumerate(every[:CAUTIONS], 1):
        line = escape_controls(f"{number}. {each.kind}: {each.what}")
        lines.append(textwrap.shorten(line, width, placeholder=" ..."))
    if rest := ", ".join(dict.fromkeys(each.kind for each in every[CAUTIONS:])):
        lines += _prose([f"and {len(every) - CAUTIONS} more: {rest}"], width)
    controls = [c for f in source.answers.values() for c in source.controls(f)]
    if known := [c for c in controls if not math.isnan(c.low)]:
        differ = len(known) - sum(map(holds, known))
        line = f"controls: the baseline differs from itself in {differ} of {len(known)} comparisons"
        lines += _prose([line], width)
    lines += _prose([*gone_along(source, source.answers)], width)
    if others := ", ".join(source.other_answers):
        lines += _prose([f"also compared: {others} ({more})"], width)
    return [*lines, ""] if lines else []


def _answers(report: Report, width: int) -> list[str]:
    """A line for each comparison; of many, or of none, the sentences of the summary."""
    source = report.source
    family = [c for each in source.answers.values() for c in each]
    if family and len(family) <= COMPARISONS and not source.result.is_fleet:
        return list(_compared(source, family, width))
    blocks = report.section("summary").blocks
    every = [line for block in blocks if isinstance(block, Findings) for line in block.lines]
    known = [c for c in family if not math.isnan(c.ratio)]
    largest = [max(known, key=lambda c: abs(math.log(c.ratio)))] if known else []
    last = ["largest:", *_compared(source, largest, width)] if largest else []
    if not every:
        return [*_prose(["No run has given a result."], width), *last]
    for many in range(min(len(every), LINES), 0, -1):  # a line each at least
        rest = [f"and {count(len(every) - many, 'more answer')} ({FULL})"][: len(every) - many]
        lines = _prose([*every[:many], *rest], width, bullets=True)
        if len(lines) + len(last) <= LINES // 2:
            break
    return [*lines, *last]


def _compared(source: Source, family: Sequence[Comparison], width: int) -> Iterator[str]:
    """By levels and metric: the change, its interval, the verdict, and where it is, where that
    tells it from others of the campaign.
    """
    rows = [[*map(escape_controls, _words(source, c))] for c in family]
    widths = [max(len(row[at]) for row in rows) for at in range(3)]
    before, level = ("", ""), f" ({share(source.result.repeat.confidence)} intervals)"
    places = [(c.level, where(c, source.several, source.apart)) for c in family]
    measured = {place for c, place in zip(family, places, strict=True) if c.n}
    seen = set[tuple[str, str]]()
    for c, row, place in zip(family, rows, places, strict=True):
        if place in seen - measured:  # what has no value at all is told once
            continue
        seen.add(place)
        heads = " against ".join(c.names), title(c.metric, source.result)
        if heads != before:
            yield from _prose([f"{', '.join(heads)}{level}"], width)
        before, level = heads, ""
        change, interval, verdict = (
            word.ljust(room) for word, room in zip(row, widths, strict=False)
        )
        start = f"  {change.strip():>{widths[0]}}  {interval}  {verdict}  "
        yield from textwrap.wrap(f"{start}{row[3]}", width, subsequent_indent=" " * len(start))


def _words(source: Source, c: Comparison) -> tuple[str, str, str, str]:
    """A change, its interval, the verdict; which of its family it is, and why it has none."""
    change, interval = in_short_of(c, source.answers[c.metric])
    verdict = f"{c.verdict}{', in doubt' if c.flags else ''}" if c.n else "not compared"
    place = where(c, source.several, source.apart)
    return change, interval, verdict, f"{place}: {c.why}" if place and c.why else place or c.why
