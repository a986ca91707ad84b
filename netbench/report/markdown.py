"""A report as markdown (GitHub's tables), for a commit message, an issue or a mailing list's web
archive.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from netbench.base.control_characters import escape_controls
from netbench.report.blocks import Cautions, Column, Plot, Prose, Section, Table
from netbench.report.build import Report
from netbench.report.text import as_words

_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~])")


def render(report: Report) -> str:
    """The whole report, ending with a newline."""
    return (
        "\n".join(line for section in report.sections for line in _section(section)).rstrip("\n")
        + "\n"
    )


def escape(text: str) -> str:
    """Text that markdown shows as it is, also within a table."""
    return _SPECIAL.sub(r"\\\1", escape_controls(text)).replace("\n", " ")


def _section(section: Section) -> Iterator[str]:
    yield f"## {escape(section.title)}"
    yield ""
    for block in section.blocks:
        if isinstance(block, Plot):
            continue
        if isinstance(block, Prose):
            for line in block.lines:
                yield f"- {escape(line)}" if block.bullets else escape(line)
                if not block.bullets:
                    yield ""
        elif isinstance(block, Table):
            yield from _table(block)
        elif isinstance(block, Cautions):
            for item in block.items:
                where = (
                    " Where:"
                    f" {escape('; '.join(item.where[:6]))}{' …' if len(item.where) > 6 else ''}."
                    if item.where
                    else ""
                )
                rest = f"Evidence: {escape(item.evidence)}. *Remedy*: {escape(item.remedy)}."
                yield f"- **{escape(item.kind)}**: {escape(item.what)}{where} {rest}"
        yield ""


def _table(table: Table) -> Iterator[str]:
    if table.title:
        yield f"### {escape(table.title)}"
        yield ""
    rows = as_words(table)
    yield _row(
        [f"{escape(c.name)}{f' ({escape(c.unit)})' if c.unit else ''}" for c in table.columns]
    )
    yield _row([_rule(column, [row[i] for row in rows]) for i, column in enumerate(table.columns)])
    for row in rows:
        yield _row([escape(text) for text in row])
    yield ""
    for note in table.notes:
        yield escape(note)
        yield ""


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _rule(column: Column, cells: Sequence[str]) -> str:
    number = column.kind == "value" and all(text[:1] in "0123456789-+<" for text in cells)
    return "---:" if number else "---"
