"""A report as plain text: no line is longer than the width, whatever the factors are called."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar, cast

from netbench.base.control_characters import escape_controls
from netbench.read.cautions.rule import Caution
from netbench.report.blocks import Block, Cautions, Column, Plot, Prose, Section, Table
from netbench.report.build import Report
from netbench.report.numbers import column_parts, joined

MARK = "†"
GAP = "  "
HARD = "\xa0"  # a space where no line is broken
PROSE_MIN = 32  # characters that wrapped text in a table needs beside the other columns
PLACES = 6  # places that a caution names; the rest are counted


def render(report: Report, width: int = 80) -> str:
    """The whole report, ending with a newline."""
    return (
        "\n".join(
            line.rstrip() for section in report.sections for line in section_lines(section, width)
        ).rstrip("\n")
        + "\n"
    )


def section_lines(section: Section, width: int) -> Iterator[str]:
    """A heading, its blocks, each followed by an empty line."""
    section = escaped(section)
    yield from _fold(section.title, width)
    yield "=" * min(width, len(section.title))
    for block in section.blocks:
        if isinstance(block, Plot):
            continue
        yield from block_lines(block, width)
        yield ""


T = TypeVar("T")
_WITH_TEXT = (Section, Column, Table, Prose, Cautions, Caution)


def escaped(value: T) -> T:
    """A section, or a part of it, with its control characters escaped: before lines are laid out,
    which makes them longer.
    """
    result: Any = value
    if isinstance(value, str):
        result = escape_controls(value)
    elif isinstance(value, tuple):
        result = tuple(map(escaped, value))
    elif isinstance(value, _WITH_TEXT):
        parts = {each.name: escaped(getattr(value, each.name)) for each in fields(value)}
        result = replace(value, **parts)
    return cast("T", result)


def block_lines(block: Block, width: int) -> Iterator[str]:
    """One block's lines."""
    if isinstance(block, Prose):
        for line in block.lines:
            yield from _fold(
                line, width, "- " if block.bullets else "", "  " if block.bullets else ""
            )
    elif isinstance(block, Table):
        yield from table_lines(block, width)
    elif isinstance(block, Cautions):
        for item in block.items:
            yield from _fold(f"[{item.kind}] {item.what}", width, "! ", "  ")
            if item.where:
                more = f", and {len(item.where) - PLACES} more" if len(item.where) > PLACES else ""
                yield from _fold(
                    "; ".join(item.where[:PLACES]) + more, width, "  where:    ", " " * 12
                )
            yield from _fold(item.evidence, width, "  evidence: ", " " * 12)
            yield from _fold(item.remedy, width, "  remedy:   ", " " * 12)


class _Wrapper(textwrap.TextWrapper):
    """Breaks what is longer than a line, such as the id of a cell, behind one of its commas."""

    def _handle_long_word(
        self, reversed_chunks: list[str], cur_line: list[str], cur_len: int, width: int
    ) -> None:
        room, chunk = width - cur_len, reversed_chunks[-1]
        if end := chunk.rfind(",", 0, room) + 1:
            cur_line.append(chunk[:end])
            reversed_chunks[-1] = chunk[end:]
        elif not cur_line or "," not in chunk:
            super()._handle_long_word(reversed_chunks, cur_line, cur_len, width)


def _fold(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    wrapper = _Wrapper(width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
    lines = wrapper.wrap(text)
    return [line.replace(HARD, " ") for line in lines] or [first.rstrip()]


def table_lines(table: Table, width: int) -> Iterator[str]:
    """As a grid where it fits; else each row's keys on lines of their own, with the values below in
    as many grids as it takes.
    """
    if table.title:
        title = _fold(table.title, width)
        yield from title
        yield "-" * len(title[-1])
    rows = as_words(table)
    if table.columns[-1].kind == "prose":
        yield from _with_prose(table.columns, rows, width)
    elif _width(table.columns, rows) <= width:
        yield from _grid(table.columns, rows)
    else:
        yield from _stacked(table.columns, rows, width)
    for note in table.notes:
        yield from _fold(note, width)


def as_words(table: Table) -> list[list[str]]:
    """The table's values as text with their marks, row by row."""
    columns = [
        [joined(part) for part in column_parts(values)] for values in zip(*table.rows, strict=True)
    ]
    rows = [list(row) for row in zip(*columns, strict=True)]
    marked = {(i, _last_key(table.columns)) for i in table.marked} | table.marked_values
    for i, j in marked:
        rows[i][j] += f" {MARK}"
    return rows


def _last_key(columns: Sequence[Column]) -> int:
    return max((i for i, c in enumerate(columns) if c.kind == "key"), default=0)


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[int]:
    """A column is as wide as its longest value; its heading is folded at spaces to fit."""
    return [
        max(len(text) for text in (*c.name.split(), c.unit, "", *(row[i] for row in rows)))
        for i, c in enumerate(columns)
    ]


def _width(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> int:
    return sum(_widths(columns, rows)) + len(GAP) * (len(columns) - 1)


def _right(column: Column, cells: Sequence[str]) -> bool:
    """Numbers stand to the right."""
    return column.kind == "value" and all(text[:1] in "0123456789-+<±" for text in cells)


def _grid(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], indent: str = ""
) -> Iterator[str]:
    """Heading lines and rows, aligned."""
    widths = _widths(columns, rows)
    right = [_right(column, [row[i] for row in rows]) for i, column in enumerate(columns)]

    def line(cells: Sequence[str]) -> str:
        parts = [
            text.rjust(w) if r else text.ljust(w)
            for text, w, r in zip(cells, widths, right, strict=True)
        ]
        return (indent + GAP.join(parts)).rstrip()

    for cells in _heading(columns, widths):
        yield line(cells)
    for row in rows:
        yield line(row)


def _heading(columns: Sequence[Column], widths: Sequence[int]) -> list[list[str]]:
    """Names folded to their column's width, and units, as lines that end together."""
    folded = [
        textwrap.wrap(c.name, max(w, 1), break_long_words=False, break_on_hyphens=False)
        for c, w in zip(columns, widths, strict=True)
    ]
    if any(c.unit for c in columns):
        folded = [[*lines, c.unit] for lines, c in zip(folded, columns, strict=True)]
    height = max(len(lines) for lines in folded)
    return [
        list(cells)
        for cells in zip(*([""] * (height - len(lines)) + lines for lines in folded), strict=True)
    ]


def _stacked(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Keys as `name=level` on a line of their own, with what has no unit where the rest fills a
    line; measures aligned below.
    """
    keys = [i for i, c in enumerate(columns) if c.kind == "key"]
    values = [i for i, c in enumerate(columns) if c.kind != "key"]
    if len(_groups(values, columns, rows, width - 2)) > 1 and any(columns[i].unit for i in values):
        keys += [i for i in values if not columns[i].unit]
        values = [i for i in values if columns[i].unit]
    if not values:
        for row in rows:
            yield from _fold(_row_text(columns, row, keys), width, "", "  ")
        return
    for number, group in enumerate(_groups(values, columns, rows, width - 2)):
        if number:
            yield ""
        chosen = [columns[i] for i in group]
        lines = list(_grid(chosen, [[row[i] for i in group] for row in rows], "  "))
        yield from lines[: len(lines) - len(rows)]
        for row, line in zip(rows, lines[len(lines) - len(rows) :], strict=True):
            yield from _fold(_row_text(columns, row, keys), width, "", "  ")
            yield line


def _row_text(columns: Sequence[Column], row: Sequence[str], chosen: Sequence[int]) -> str:
    """Values in words: `send=splice pin=apart (n 10, status max)`."""
    keys = [f"{columns[i].name}={row[i]}" for i in chosen if columns[i].kind == "key" and row[i]]
    rest = ", ".join(
        f"{columns[i].name} {row[i]}" for i in chosen if columns[i].kind != "key" and row[i]
    )
    return " ".join([*keys, f"({rest})".replace(" ", HARD)] if rest else keys)


def _groups(
    values: Sequence[int], columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int
) -> list[list[int]]:
    """Columns put together as long as a line holds them."""
    groups: list[list[int]] = [[]]
    for i in values:
        trial = [*groups[-1], i]
        if (
            groups[-1]
            and _width([columns[j] for j in trial], [[row[j] for j in trial] for row in rows])
            > width
        ):
            groups.append([i])
        else:
            groups[-1] = trial
    return groups


def _with_prose(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int
) -> Iterator[str]:
    """The last column is wrapped beside the others, or below them where they leave no room."""
    heads, left = columns[:-1], [row[:-1] for row in rows]
    taken = _width(heads, left) + len(GAP)
    if width - taken < PROSE_MIN:
        for row in rows:
            said = list(zip(heads, row, strict=False))
            keys = " ".join(text for column, text in said if column.kind == "key")
            rest = ", ".join(f"{c.name} {text}" for c, text in said if c.kind != "key")
            yield from _fold(f"{keys} ({rest})" if rest else keys, width)
            yield from _fold(row[-1], width, "    ", "    ")
        return
    grid = list(_grid(heads, left))
    first = len(grid) - len(rows)
    yield from grid[: first - 1]
    yield grid[first - 1].ljust(taken) + columns[-1].name
    for line, row in zip(grid[first:], rows, strict=True):
        folded = _fold(row[-1], width - taken)
        yield line.ljust(taken) + folded[0]
        yield from (" " * taken + rest for rest in folded[1:])
