"""A report as markdown (GitHub's tables), for a commit message, an issue or an archive."""

from __future__ import annotations

import re
from collections.abc import Iterator

from netbench.base.control_characters import escape_controls
from netbench.report.blocks import Block, Cautions, Prose, Table
from netbench.report.build import Report
from netbench.report.text import PLACES, as_words, is_number

_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~])")


def render(report: Report) -> str:
    """The whole report, ending with a newline."""
    lines: list[str] = []
    for section in report.sections:
        lines += [f"## {escape(section.title)}", ""]
        lines += [line for block in section.blocks for line in _block(block)]
    return "\n".join(lines).rstrip("\n") + "\n"


def escape(text: str) -> str:
    """Text that markdown shows as it is, also within a table."""
    return _SPECIAL.sub(r"\\\1", escape_controls(text)).replace("\n", " ")


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Prose):
        for line in block.lines:
            yield f"- {escape(line)}" if block.bullets else f"{escape(line)}\n"
        yield ""
    elif isinstance(block, Table):
        yield from _table(block)
    elif isinstance(block, Cautions):
        for number, item in enumerate(block.items, 1):
            more = " …" if len(item.where) > PLACES else ""
            where = f" Where: {escape('; '.join(item.where[:PLACES]))}{more}." if item.where else ""
            rest = f"Evidence: {escape(item.evidence)}. *Remedy*: {escape(item.remedy)}."
            yield f"{number}. **{escape(item.kind)}**: {escape(item.what)}{where} {rest}"
        yield ""


def _table(table: Table) -> Iterator[str]:
    if table.title:
        yield f"### {escape(table.title)}\n"
    rows = as_words(table)
    numbers = [is_number(c, [row[i] for row in rows]) for i, c in enumerate(table.columns)]
    heads = [f"{c.name} ({c.unit})" if c.unit else c.name for c in table.columns]
    yield _row(map(escape, heads))
    yield _row("---:" if number else "---" for number in numbers)
    yield from (_row(map(escape, row)) for row in rows)
    yield ""
    yield from (f"{escape(note)}\n" for note in table.notes)
    yield ""


def _row(cells: Iterator[str]) -> str:
    return f"| {' | '.join(cells)} |"
