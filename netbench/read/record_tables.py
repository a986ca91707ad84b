"""Runs as columns of numbers: those whose records differ in their cell and in what was measured
alone lie in one table, so that what is computed of them is computed once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property, lru_cache
from itertools import compress, count
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from netbench.result.codec import of_json
from netbench.result.record import NO_SETTINGS, SIDES, Record, Settings, parse_record

MEASURED = ("run", "block", "sender", "receiver", "captures", "proof", "cut")
"""Keys of a record whose numbers differ from run to run."""
NOTED = ("reason", "settings", "concurrent")
"""Keys whose texts and numbers may do so, too."""
OF_CELL = ("cell", "factors", "pair")
"""Keys that differ from cell to cell and from pair to pair, as do the hosts of both sides."""


@dataclass(frozen=True, eq=False)
class Note:
    """NOTED of a record, shared by runs that have the same; `line`: one that says so."""

    reason: str
    settings: Settings
    concurrent: tuple[str, ...] | None
    line: bytes

    @staticmethod
    def of(record: Record, line: bytes) -> Note:
        """What a record notes, and its line."""
        return Note(record.reason, record.settings, record.concurrent, line)


def note_of(line: bytes) -> Note:
    """NOTED of a line. Errors: StoreError."""
    return Note.of(parse_record(line, "a line that was kept"), line)


@dataclass(frozen=True)
class Head:
    """OF_CELL of a record, and the hosts of its sides; "" where there is no side."""

    cell: str
    factors: Mapping[str, str]
    pair: str
    sender: str
    receiver: str

    @staticmethod
    def of(record: Record) -> Head:
        """What a record says of them."""
        sender, receiver = (side.host if side else "" for side in (record.sender, record.receiver))
        return Head(record.cell, record.factors, record.pair, sender, receiver)

    def on(self, record: Record) -> Record:
        """The record with this head."""
        return replace(
            record,
            cell=self.cell,
            factors=self.factors,
            pair=self.pair,
            sender=record.sender and replace(record.sender, host=self.sender),
            receiver=record.receiver and replace(record.receiver, host=self.receiver),
        )


NO_HEAD = Head("", {}, "", "", "")


class Kind:
    """What the lines of some runs have in common: all but their heads, NOTED, `started`, what tools
    printed, and the numbers of MEASURED; `integers` and `reals` are the groups of these.
    """

    def __init__(self, line: bytes, groups: Groups | None = None) -> None:
        """line: of one of them; groups: of a line with the same keys and types, where known."""
        self.line, raw = line, json.loads(line)
        groups = groups or Groups(raw)
        self.integers, self.reals = groups.measured(int), groups.measured(float)
        layout, self.constants = _layout(raw)
        self.layout = NO_HEAD.on(layout)
        sides = (layout.sender, layout.receiver)
        self.windows = [side.time_ns for side in sides if side and side.time_ns]

    def columns(self, integers: npt.NDArray[Any], reals: npt.NDArray[Any]) -> list[Any]:
        """What each group is: a constant, or a number a run. Errors: ValueError where these are not
        as many.
        """
        columns = list(self.constants)
        for groups, table in ((self.integers, integers), (self.reals, reals)):
            for group, column in zip(groups, table, strict=True):
                columns[group] = column
        return columns

    def record(self, columns: Sequence[Any]) -> Record:
        """What the records say, but for their heads."""
        fill = _filler_of(self)
        return fill(columns) if fill else self.layout


@dataclass(frozen=True, eq=False)
class Table:
    """Runs of one kind, one cell after the other.

    rows: the places of their lines in records.jsonl, from 0. integers, reals: what was measured, a
    row a number and a column a run.
    """

    kind: Kind
    rows: npt.NDArray[np.int64]
    integers: npt.NDArray[Any]
    reals: npt.NDArray[Any]

    @cached_property
    def columns(self) -> list[Any]:
        """As Kind.columns."""
        return self.kind.columns(self.integers, self.reals)

    @cached_property
    def record(self) -> Record:
        """As Runs.record, of all runs and without a head."""
        return self.kind.record(self.columns)


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of one cell, pair, boot and status whose records have the same keys: those of a table at
    `at`. started, notes: one each.
    """

    head: Head
    started: Sequence[str]
    notes: Sequence[Note]
    table: Table
    at: slice

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """The places of their lines in records.jsonl, from 0."""
        return self.table.rows[self.at]

    def __len__(self) -> int:
        return len(self.started)

    @cached_property
    def record(self) -> Record:
        """What the record of each says. A number of MEASURED is an array with one value a run; what
        `started` and `notes` hold, and what tools printed, is left out.
        """
        if len(self) == len(self.table.rows):
            record = self.table.record
        else:
            record = self.table.kind.record(
                [
                    each[self.at] if isinstance(each, np.ndarray) else each
                    for each in self.table.columns
                ]
            )
        return self.head.on(record)

    def chosen(self, which: npt.NDArray[np.bool_]) -> Runs:
        """Those at which `which` is true."""
        table = self.table
        mine = (
            array[..., self.at][..., which] for array in (table.rows, table.integers, table.reals)
        )
        started, notes = list(compress(self.started, which)), list(compress(self.notes, which))
        whole = slice(0, len(started))
        return Runs(self.head, started, notes, Table(table.kind, *mine), whole)


class Groups:
    """The texts and numbers of a line, numbered from 1 in their order, by the key of the record
    that they are part of.
    """

    def __init__(self, raw: Mapping[str, Any]) -> None:
        numbers = count(1)
        self._of_key = {
            key: [(next(numbers), leaf) for leaf in _leaves(value)] for key, value in raw.items()
        }
        self.printed = self._named("captures", raw.get("captures", {}).values(), "text")
        self.hosts = [
            group for who in SIDES for group in self._named(who, [raw.get(who) or {}], "host")
        ]

    def _named(self, key: str, objects: Iterable[Mapping[str, Any]], name: str) -> list[int]:
        """The groups of a key that are what its objects have under a name."""
        names = (at for each in objects for at, value in each.items() for _ in _leaves(value))
        return [
            group for (group, _), at in zip(self.of_pairs(key), names, strict=True) if at == name
        ]

    def of_pairs(self, key: str) -> list[tuple[int, str | int | float]]:
        """The groups of a key with their values."""
        return self._of_key.get(key, [])

    def of(self, *keys: str, kind: tuple[type, ...] = (str, int, float)) -> list[int]:
        """Those of some keys, of all keys without any."""
        return [
            group
            for key in keys or self._of_key
            for group, leaf in self._of_key.get(key, ())
            if isinstance(leaf, kind)
        ]

    def measured(self, kind: type) -> list[int]:
        """Those of numbers that differ from run to run: integers, or reals."""
        return self.of(*MEASURED, kind=(kind,))


def _leaves(value: Any) -> list[str | int | float]:
    """The texts and numbers of a JSON value."""
    leaves: list[str | int | float] = []
    ahead = [value]
    while ahead:
        part = ahead.pop()
        if isinstance(part, dict):
            ahead += reversed(part.values())
        elif isinstance(part, list):
            ahead += reversed(part)
        elif isinstance(part, str | int | float) and not isinstance(part, bool):
            leaves.append(part)
    return leaves


def _layout(raw: Mapping[str, Any]) -> tuple[Record, list[Any]]:
    """A record in which each number is its group; and the values by group, where group 0 is for
    numbers that are not there.
    """
    values: list[Any] = [0]

    def numbered(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: numbered(each) for key, each in value.items()}
        if isinstance(value, list):
            return [numbered(each) for each in value]
        if value is None or isinstance(value, bool):
            return value
        values.append(value)
        return value if isinstance(value, str) else len(values) - 1

    named = numbered(raw)
    layout = of_json(Record, {key: named[key] for key in named if key not in Record.head})
    captures = {name: replace(each, text="") for name, each in layout.captures.items()}
    unsaid = replace(layout, reason="", settings=NO_SETTINGS, concurrent=None, captures=captures)
    return unsaid, values


_Fill = Callable[[Sequence[Any]], Any]


@lru_cache(maxsize=1024)  # each line may be of a kind of its own
def _filler_of(kind: Kind) -> _Fill | None:
    return _filler(kind.layout)


def _filler(value: Any) -> _Fill | None:
    """What makes a part of a layout anew with the columns in place of their groups; None for a part
    without any.
    """
    if value is None or isinstance(value, str | bool):
        return None
    if isinstance(value, int | float):
        return itemgetter(int(value))
    if isinstance(value, dict):
        return _filler_of_parts(value, lambda parts: {**value, **parts})
    if isinstance(value, list | tuple):
        if len(value) > 1 and all(type(each) is int for each in value):
            get, kind = itemgetter(*value), type(value)
            return get if kind is tuple else lambda columns: kind(get(columns))
        kind, whole = type(value), dict(enumerate(value))
        return _filler_of_parts(whole, lambda parts: kind({**whole, **parts}.values()))
    if is_dataclass(value) and not isinstance(value, type):
        named = {each.name: getattr(value, each.name) for each in fields(value)}
        return _filler_of_parts(named, lambda parts: replace(value, **parts))
    return None


def _filler_of_parts(
    parts: Mapping[Any, Any], made: Callable[[Mapping[Any, Any]], Any]
) -> _Fill | None:
    """As _filler, given the parts by name, and what makes the whole of those that are filled."""
    fillers = [(name, fill) for name, part in parts.items() if (fill := _filler(part))]
    if not fillers:
        return None
    return lambda columns: made({name: fill(columns) for name, fill in fillers})
