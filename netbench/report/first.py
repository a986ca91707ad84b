"""The first screen of a report, as text: what was asked, the cells, a line of cautions, and last,
where a terminal ends, the answer. At most LINES lines; `report --full` has everything.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from netbench.base.control_characters import escape_controls
from netbench.base.units import count
from netbench.read.control import holds
from netbench.read.shown_levels import shown, used
from netbench.report import text
from netbench.report.blocks import Findings, Prose, Table
from netbench.report.build import Report
from netbench.report.numbers import share
from netbench.report.phrases import fixed, title
from netbench.report.source import Source
from netbench.stats.comparison import Comparison
from netbench.stats.words import in_short

LINES, WIDTH = 45, 80
CELLS, COMPARISONS = 10, 12  # that have a line each
NAMED = 3
SETTLED = 6  # words of what is the same in all cells


def render(report: Report, width: int = WIDTH) -> str:
    """The first screen, ending with a newline; `width`: columns."""
    source = report.source
    below = [*_cautions(source, width), *_answers(report, width)]
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
    quick = "; few runs: for trying" if result.repeat.max <= NAMED else ""
    about = f"{result.name}: {result.about}" if result.about else result.name
    yield from _prose([*([report.label] if report.label else []), about], width)
    yield from _prose([f"{state.removesuffix('.')}{quick}."], width)
    told = fixed(result).removesuffix(".").split(", ")
    some = ", ".join(told[:SETTLED]) + ("" if len(told) <= SETTLED else ", and more")
    yield from _prose([f"{some}."], width) if told != [""] else []


def _cells(report: Report, width: int, room: int) -> list[str]:
    """The table of cells, as far as it has room."""
    section = next((s for s in report.sections if s.key == "cells"), None)
    table = next((b for b in section.blocks if isinstance(b, Table)), None) if section else None
    if table is None or report.source.result.is_fleet:
        return []
    shown = min(len(table.rows), CELLS)
    while shown > 0:
        rows = table.rows[:shown]
        marked = {row for row in table.marked if row < shown}
        part = replace(table, title="", rows=rows, marked=frozenset(marked), notes=())
        part = text.fitted(part, width)
        lines = list(text.table_lines(part, width))
        if more := len(table.rows) - shown:
            lines.append(f"and {count(more, 'more cell')} (--full)")
        if len(lines) <= room:
            return lines
        shown -= 1
    return []


def _cautions(source: Source, width: int) -> list[str]:
    """All kinds of cautions in a line, each with how often it is there; a line on controls, and one
    on the other factors.
    """
    kinds: dict[str, int] = {}
    for each in source.cautions:
        kinds[each.kind] = kinds.get(each.kind, 0) + max(len(each.where), 1)
    named = ", ".join(f"{kind} ({n})" if n > 1 else kind for kind, n in kinds.items())
    told = [f"{count(len(source.cautions), 'caution')}: {named}; --full tells"] if kinds else []
    controls = [c for f in source.answers.values() for c in source.controls(f)]
    if known := [c for c in controls if not math.isnan(c.low)]:
        held = sum(map(holds, known))
        told.append(f"controls: {held} of {len(known)} hold, the baseline against itself")
    if source.other_answers:
        told.append(f"also compared: {', '.join(source.other_answers)}; --full tells")
    return [*_prose(told, width), ""] if told else []


def _answers(report: Report, width: int) -> list[str]:
    """A line for each comparison; of many, or of none, the sentences of the summary."""
    source = report.source
    family = [c for each in source.answers.values() for c in each]
    if family and len(family) <= COMPARISONS and not source.result.is_fleet:
        return list(_compared(source, family, width))
    every = [
        line
        for block in report.section("summary").blocks
        if isinstance(block, Findings)
        for line in block.lines
    ]
    known = [c for c in family if not math.isnan(c.ratio)]
    largest = [max(known, key=lambda c: abs(math.log(c.ratio)))] if known else []
    last = ["largest:", *_compared(source, largest, width)] if largest else []
    lines = _prose(every or ["No run has given a result."], width, bullets=bool(every))
    told = len(every)
    while told > 1 and len(lines) + len(last) > LINES // 2:
        told -= 1
        rest = f"and {count(len(every) - told, 'more answer')} (--full)"
        lines = _prose([*every[:told], rest], width, bullets=True)
    return [*lines, *last]


def _compared(source: Source, family: Sequence[Comparison], width: int) -> Iterator[str]:
    """By levels and metric: the change, its interval, the verdict, and where it is, where that
    tells it from others of the campaign.
    """
    contexts = [used(c.context) for each in source.answers.values() for c in each]
    apart = {n for each in contexts for n in each if len({o.get(n) for o in contexts}) > 1}
    rows = [[*map(escape_controls, (*_words(c), _where(c, apart, source.several)))] for c in family]
    widths = [max(len(row[at]) for row in rows) for at in range(3)]
    before, level = ("", ""), f" ({share(source.result.repeat.confidence)} intervals)"
    for c, row in zip(family, rows, strict=True):
        heads = " against ".join(c.names), title(c.metric, source.result)
        if heads != before:
            yield from _prose([f"{', '.join(heads)}{level}"], width)
        before, level = heads, ""
        change, interval, verdict = (
            word.ljust(room) for word, room in zip(row, widths, strict=False)
        )
        told = f"  {change.strip():>{widths[0]}}  {interval}  {verdict}  "
        yield from textwrap.wrap(f"{told}{row[3]}", width, subsequent_indent=" " * len(told))


def _where(c: Comparison, apart: Collection[str], several: bool) -> str:
    words = [f"{name}={shown(level)}" for name, level in used(c.context).items() if name in apart]
    return " ".join([c.pair, *words] if several else words)


def _words(c: Comparison) -> tuple[str, str, str]:
    """A change, its interval or why there is none, and the verdict."""
    change, interval = in_short(c.ratio, c.low, c.high)
    return change, interval or c.why, f"{c.verdict}{', in doubt' if c.flags else ''}"
