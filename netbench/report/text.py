"""A report as plain text: no line is longer than the width, whatever the factors are called."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from netbench.base.control_characters import escape_controls
from netbench.report.blocks import Block, Cautions, Column, Plot, Prose, Section, Table
from netbench.report.build import Report
from netbench.report.numbers import column_parts, joined

MARK = "†"
GAP = "  "
PROSE_MIN = 32  # characters that wrapped text in a table needs beside the other columns
PLACES = 6  # places that a caution names; the rest are counted
Cells = Sequence[Sequence[str]]


def render(report: Report, width: int = 80) -> str:
    """The whole report, ending with a newline."""
    lines = (line for section in report.sections for line in section_lines(section, width))
    return "\n".join(line.rstrip() for line in lines).rstrip("\n") + "\n"


def section_lines(section: Section, width: int) -> Iterator[str]:
    """A heading, its blocks, each followed by an empty line."""
    yield from _titled(section.title, width, "=")
    for block in section.blocks:
        if not isinstance(block, Plot):
            yield from block_lines(block, width)
            yield ""


def block_lines(block: Block, width: int) -> Iterator[str]:
    """One block's lines."""
    if isinstance(block, Prose):
        marks = ("- ", "  ") if block.bullets else ("", "")
        for line in block.lines:
            yield from _fold(line, width, *marks)
    elif isinstance(block, Table):
        yield from table_lines(block, width)
    elif isinstance(block, Cautions):
        for number, item in enumerate(block.items, 1):
            yield from _fold(f"{number} [{item.kind}] {item.what}", width, "", "  ")
            more = f", and {len(item.where) - PLACES} more" if len(item.where) > PLACES else ""
            fields = {"where": "; ".join(item.where[:PLACES]) + more}
            fields |= {"evidence": item.evidence, "remedy": item.remedy}
            for name, words in fields.items():
                if words:
                    yield from _fold(words, width, f"  {name + ':':9} ", " " * 12)


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
    """Lines of a text; control characters are escaped before, which makes it longer."""
    wrapper = _Wrapper(width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
    return wrapper.wrap(escape_controls(text)) or [first.rstrip()]


def _titled(title: str, width: int, rule: str) -> Iterator[str]:
    lines = _fold(title, width)
    yield from lines
    yield rule * len(lines[-1])


def table_lines(table: Table, width: int) -> Iterator[str]:
    """As a grid where it fits; else as several with as many columns as fit, each begun with the
    keys, which have lines of their own where they leave no room.
    """
    if table.title:
        yield from _titled(table.title, width, "-")
    rows = [[escape_controls(text) for text in row] for row in as_words(table)]
    columns = [
        Column(escape_controls(c.name), escape_controls(c.unit), c.kind) for c in table.columns
    ]
    if columns[-1].kind == "prose":
        yield from _with_prose(columns, rows, width)
    elif _width(columns, rows) <= width:
        yield from _grid(columns, rows)
    else:
        yield from _parted(columns, rows, width)
    for note in table.notes:
        yield from _fold(note, width)


def fitted(table: Table, width: int) -> Table:
    """The table with as many of its columns of values, from the left, as a line holds."""
    rows = [[escape_controls(text) for text in row] for row in as_words(table)]
    columns = len(table.columns)
    while columns > 1 and _width(table.columns[:columns], [row[:columns] for row in rows]) > width:
        columns -= 1
    cut = tuple(row[:columns] for row in table.rows)
    return table._replace(columns=table.columns[:columns], rows=cut, marked_values=frozenset())


def as_words(table: Table) -> list[list[str]]:
    """The table's values as text with their marks, row by row."""
    columns = [map(joined, column_parts(values)) for values in zip(*table.rows, strict=True)]
    rows = [list(row) for row in zip(*columns, strict=True)]
    for i, j in table.marks:
        rows[i][j] += f" {MARK}"
    return rows


def is_number(column: Column, cells: Sequence[str]) -> bool:
    """Whether a column stands to the right."""
    return column.kind == "value" and all(text[:1] in "0123456789-+<±" for text in cells)


def _widths(columns: Sequence[Column], rows: Cells) -> list[int]:
    """A column is as wide as its longest value; its heading is folded at spaces to fit."""
    return [
        max(len(text) for text in (*c.name.split(), c.unit, "", *(row[i] for row in rows)))
        for i, c in enumerate(columns)
    ]


def _width(columns: Sequence[Column], rows: Cells) -> int:
    return sum(_widths(columns, rows)) + len(GAP) * (len(columns) - 1)


def _grid(columns: Sequence[Column], rows: Cells, indent: str = "") -> list[str]:
    """Heading lines and rows, aligned."""
    widths = _widths(columns, rows)
    right = [is_number(column, [row[i] for row in rows]) for i, column in enumerate(columns)]
    lines = []
    for cells in (*_heading(columns, widths), *rows):
        parts = [
            text.rjust(w) if r else text.ljust(w)
            for text, w, r in zip(cells, widths, right, strict=True)
        ]
        lines.append((indent + GAP.join(parts)).rstrip())
    return lines


def _heading(columns: Sequence[Column], widths: Sequence[int]) -> list[list[str]]:
    """Names folded to their column's width, and units, as lines that end together."""
    folded = [
        textwrap.wrap(c.name, max(w, 1), break_long_words=False, break_on_hyphens=False)
        for c, w in zip(columns, widths, strict=True)
    ]
    if any(c.unit for c in columns):
        folded = [[*lines, c.unit] for lines, c in zip(folded, columns, strict=True)]
    height = max(len(lines) for lines in folded)
    padded = ([""] * (height - len(lines)) + lines for lines in folded)
    return [list(cells) for cells in zip(*padded, strict=True)]


def _chosen(
    places: Sequence[int], columns: Sequence[Column], rows: Cells
) -> tuple[list[Column], Cells]:
    """Some columns of a table."""
    return [columns[i] for i in places], [[row[i] for i in places] for row in rows]


def _parted(columns: Sequence[Column], rows: Cells, width: int) -> Iterator[str]:
    """Several grids: each begins with the keys, unless these leave no room, or lines of their own
    for keys make fewer grids of it.
    """
    keys = [i for i, c in enumerate(columns) if c.kind == "key"]
    values = [i for i, c in enumerate(columns) if c.kind != "key"]

    def fits(places: Sequence[int], room: int) -> bool:
        return _width(*_chosen(places, columns, rows)) <= room

    def parts(before: Sequence[int], room: int) -> list[list[int]]:
        """Columns put together as long as a line holds them."""
        groups: list[list[int]] = [[*before]]
        for i in values:
            if len(groups[-1]) > len(before) and not fits([*groups[-1], i], room):
                groups.append([*before])
            groups[-1].append(i)
        return groups

    with_keys, alone = parts(keys, width), parts([], width - 2)
    if all(fits(part, width) for part in with_keys) and len(with_keys) <= len(alone):
        for number, part in enumerate(with_keys):
            yield from [""] * bool(number)
            yield from _grid(*_chosen(part, columns, rows))
        return
    labels = (" ".join(f"{columns[i].name}={row[i]}" for i in keys if row[i]) for row in rows)
    folded = [_fold(label.removeprefix("="), width, "", "  ") for label in labels]
    for number, part in enumerate(alone):
        yield from [""] * bool(number)
        grid = _grid(*_chosen(part, columns, rows), "  ") if part else [""] * len(rows)
        yield from grid[: len(grid) - len(rows)]
        for label, line in zip(folded, grid[len(grid) - len(rows) :], strict=True):
            yield from label
            yield from [line] * bool(part)


def _with_prose(columns: Sequence[Column], rows: Cells, width: int) -> Iterator[str]:
    """The last column is wrapped beside the others, or below them where they leave no room."""
    *heads, last = columns
    left = [row[:-1] for row in rows]
    taken = _width(heads, left) + len(GAP)
    if width - taken < PROSE_MIN:
        for row in rows:
            pairs = list(zip(heads, row, strict=False))
            label = " ".join(text for column, text in pairs if column.kind == "key")
            rest = ", ".join(f"{c.name} {text}" for c, text in pairs if c.kind != "key")
            yield from _fold(f"{label} ({rest})" if rest else label, width)
            yield from _fold(row[-1], width, "    ", "    ")
        return
    grid = _grid(heads, left)
    first = len(grid) - len(rows)
    yield from grid[: first - 1]
    yield grid[first - 1].ljust(taken) + last.name
    for line, row in zip(grid[first:], rows, strict=True):
        for at, part in enumerate(_fold(row[-1], width - taken)):
            yield (line if at == 0 else "").ljust(taken) + part
