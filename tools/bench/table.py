"""What a part of the bench answers: a table; each row has an interval, budget and verdict."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    """One question. Texts carry their units; `holds` is None where there is no budget or it could
    not be measured.
    """

    what: str
    ours: str
    peer: str
    result: str  # ratio or difference, with its 95% interval
    budget: str
    holds: bool | None


def at_most(what: str, value: float, unit: str, most: float | None, result: str = "") -> Row:
    """A row of one number, and of its budget where it has one."""
    holds = None if most is None else value <= most
    budget = "" if most is None else f"at most {most:g} {unit}".strip()
    return Row(what, f"{value:.4g} {unit}".strip(), "", result, budget, holds)


@dataclass(frozen=True)
class Part:
    """A part of the bench: its rows, how they were measured, and what a reader must know."""

    title: str
    how: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = field(default=())


def verdict(row: Row) -> str:
    """holds, MISSED, or nothing."""
    return {True: "holds", False: "**missed**", None: ""}[row.holds]


def wrapped(text: str, bullet: str = "") -> str:
    """A paragraph at 100 columns."""
    return textwrap.fill(
        text,
        100,
        initial_indent=bullet,
        subsequent_indent=" " * len(bullet),
        break_long_words=False,
        break_on_hyphens=False,
    )


def markdown(part: Part) -> str:
    """A part as a section of docs/performance.md."""
    lines = [
        f"## {part.title}",
        "",
        wrapped(part.how),
        "",
        "| | netbench | peer | result | budget | |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.what} | {row.ours} | {row.peer} | {row.result} | {row.budget} | {verdict(row)} |"
        for row in part.rows
    ]
    lines += [""] + [wrapped(note, "- ") for note in part.notes] + ([""] if part.notes else [])
    return "\n".join(lines)
