"""What a section returns: data, not strings. A renderer (text, html, markdown, json) decides how it
looks.
"""

from __future__ import annotations

from dataclasses import dataclass

from netbench.analysis.cautions.base import Caution
from netbench.analysis.intervals import Interval

Value = (
    str | int | float | Interval | None
)  # None: there is none; an Interval is a mean with its half-width


@dataclass(frozen=True)
class Column:
    """`kind`: `key` (what the row is about), `value` (a number or word), or `prose` (long text,
    wrapped).
    """

    name: str
    unit: str = ""
    kind: str = "value"


@dataclass(frozen=True)
class Table:
    """Rows are as long as `columns`. `notes` are lines under the table; `marked` are numbers of
    rows that carry the mark †, `marked_values` values that do, each by its row and column.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    notes: tuple[str, ...] = ()
    marked: frozenset[int] = frozenset()
    marked_values: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True)
class Prose:
    """Paragraphs; with `bullets` each is a point of a list."""

    lines: tuple[str, ...]
    bullets: bool = False


@dataclass(frozen=True)
class Cautions:
    """What a reader must know, with remedies."""

    items: tuple[Caution, ...]


@dataclass(frozen=True)
class Plot:
    """A drawing that plots.py knows by `kind` (means, order, ratios, matrix); renderers without
    pictures leave it out.

    `label` is its title; `number` says which of several matrices it is of.
    """

    kind: str
    metric: str
    caption: str
    label: str = ""
    number: int = 0


Block = Table | Prose | Cautions | Plot


@dataclass(frozen=True)
class Section:
    """One part of a report. `key` is its name in JSON and its anchor in HTML."""

    key: str
    title: str
    blocks: tuple[Block, ...]
