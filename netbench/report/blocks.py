"""What a section returns: data, not strings. A renderer decides how it looks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from netbench.read.cautions.rule import Caution
from netbench.stats.intervals import Interval

Value = str | int | float | Interval | None
"""None: there is none; an Interval is a mean with its half-width."""


class Column(NamedTuple):
    """`kind`: `key` (what the row is about), `value` or `prose` (long, wrapped, the last)."""

    name: str
    unit: str = ""
    kind: str = "value"


Head = Column | str
Row = Mapping[Any, Value]
"""Values by Head: a mapping of strings is no mapping of heads to a type checker."""


def column(head: Head) -> Column:
    """A column of values by its name and unit: `change [%]`."""
    if isinstance(head, Column):
        return head
    name, _, unit = head.partition(" [")
    return Column(name, unit.removesuffix("]"))


def keys(*names: str) -> tuple[Column, ...]:
    """Columns of what rows are about."""
    return tuple(Column(name, kind="key") for name in names)


def keyed(names: Sequence[str] | str, *words: Value) -> dict[Any, Value]:
    """What a row is about, by columns of these names (`"side method"`)."""
    names = names.split() if isinstance(names, str) else names
    return dict(zip(keys(*names), words, strict=True))


def prose(name: str) -> Column:
    """A column of long text."""
    return Column(name, kind="prose")


class Table(NamedTuple):
    """Rows are as long as `columns`. `notes` are lines under the table; `marked` are numbers of
    rows that carry the mark †, `marked_values` values that do, each by its row and column.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    notes: tuple[str, ...] = ()
    marked: frozenset[int] = frozenset()
    marked_values: frozenset[tuple[int, int]] = frozenset()

    @property
    def marks(self) -> set[tuple[int, int]]:
        """What carries the mark, by row and column: of a row its last key."""
        last = max((i for i, c in enumerate(self.columns) if c.kind == "key"), default=0)
        return {(row, last) for row in self.marked} | self.marked_values


def tabled(
    title: str,
    rows: Iterable[Row],
    *notes: str,
    marked: Iterable[int] = (),
    marked_values: Iterable[tuple[int, Head]] = (),
) -> Table:
    """A table of rows that have their values by column; a key blank in all rows has no column."""
    rows = list(rows)
    every = dict.fromkeys(head for row in rows for head in row)
    heads = [h for h in every if column(h).kind != "key" or any(row.get(h) != "" for row in rows)]
    return Table(
        title,
        tuple(map(column, heads)),
        tuple(tuple(row.get(head) for head in heads) for row in rows),
        notes,
        frozenset(marked),
        frozenset((row, heads.index(head)) for row, head in marked_values),
    )


@dataclass(frozen=True)
class Prose:
    """Paragraphs; with `bullets` each is a point of a list."""

    lines: tuple[str, ...]
    bullets: bool = False


class Span(NamedTuple):
    """A mean, or a change in percent, with its interval (NaN: not known) and its verdict."""

    label: str
    at: float
    low: float = math.nan
    high: float = math.nan
    verdict: str = ""


class Finding(NamedTuple):
    """One answer of a result: a sentence and what it is drawn from.

    `unit` is that of `spans`; `reference`: what these are held against (0 for changes), with a
    `margin` to both sides. `head`: of one comparison its change and interval, or the most of some
    cells; `of`: what is compared; `place`: which of these it is, or what is the most. `doubts`:
    numbers of cautions.
    """

    sentence: str
    spans: tuple[Span, ...] = ()
    unit: str = ""
    reference: float | None = None
    margin: float = 0.0
    head: tuple[str, str] = ("", "")
    of: str = ""
    place: str = ""
    doubts: tuple[int, ...] = ()


@dataclass(frozen=True)
class Findings(Prose):
    """Prose whose lines are the sentences of `items`: a renderer that draws makes cards of them."""

    items: tuple[Finding, ...] = ()


class Cautions(NamedTuple):
    """What a reader must know, with remedies."""

    items: tuple[Caution, ...]


class Plot(NamedTuple):
    """A drawing that plots.py knows by `kind`; renderers without pictures leave it out.

    `label` is its title; `number` says which of several matrices it is of.
    """

    kind: str
    metric: str
    caption: str
    label: str = ""
    number: int = 0


Block = Table | Prose | Cautions | Plot


class Section(NamedTuple):
    """One part of a report. `key` is its name in JSON and its anchor in HTML."""

    key: str
    title: str
    blocks: tuple[Block, ...]
