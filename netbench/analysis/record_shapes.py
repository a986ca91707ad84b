"""Lines of records.jsonl as columns of numbers.

A line with keys or texts that are new is parsed by `parse_record`, which checks it, and its shape
is kept: a regular expression of the line with a group for each text and number. A later line that
the expression matches, with texts that were checked, says what an earlier one said, but for its
time and the numbers that were measured: only these are taken from it. Every other line is parsed,
so what is refused, and how, is for the types of record.py alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from itertools import compress, count
from typing import Any

import numpy as np
import numpy.typing as npt

from netbench.codec import of_json
from netbench.record import NO_SETTINGS, Record, Settings, check_time, parse_record

MEASURED = ("run", "block", "sender", "receiver", "captures", "proof", "cut")
"""Keys of a record whose numbers differ from run to run."""
NOTED = ("reason", "settings")
"""Keys whose texts and numbers may do so, too."""
_TOKEN = re.compile(
    rb'(?P<key>"(?:[^"\\]|\\.)*"\s*:)|(?P<text>"(?:[^"\\]|\\.)*")'
    rb"|(?P<real>-?\d+(?:\.\d+(?:[eE][-+]?\d+)?|[eE][-+]?\d+))|(?P<integer>-?\d+)"
)
_VALUES = {
    "text": rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")',
    "real": rb"(-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][-+]?\d++)?)",
    "integer": rb"(0|[1-9]\d{0,17}+)",  # an int64 holds any of them
    "negative": rb"(-[1-9]\d{0,17}+)",
    "from one": rb"([1-9]\d{0,17}+)",
}


@dataclass(frozen=True, eq=False)
class Note:
    """NOTED of a record, shared by runs that have the same; `line`: one that says so."""

    reason: str
    settings: Settings
    line: bytes


def note_of(line: bytes) -> Note:
    """NOTED of a line. Errors: StoreError."""
    record = parse_record(line, "a line that was kept")
    return Note(record.reason, record.settings, line)


@dataclass(frozen=True)
class Runs:
    """Runs of one cell, pair, boot and status whose records have the same keys.

    rows: the places of their lines in records.jsonl, from 0. started, notes: one each. line: of one
    of them.
    """

    rows: npt.NDArray[np.int64]
    started: Sequence[str]
    notes: Sequence[Note]
    line: bytes
    _layout: Record
    _columns: Sequence[Any]

    def numbers(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """The measured integers and reals, each a table of one row a number and one column a
        run.
        """
        integers, reals = _measured(_Groups(json.loads(self.line)))
        return self._table(integers, np.int64), self._table(reals, np.float64)

    def _table(self, groups: Sequence[int], kind: type) -> npt.NDArray[Any]:
        columns = [self._columns[group] for group in groups]
        return np.stack(columns) if columns else np.empty((0, len(self)), kind)

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def record(self) -> Record:
        """What the record of each says. A number of MEASURED is an array with one value a run; what
        `started` and `notes` hold, and what tools printed, is left out.
        """
        return _filled(self._layout, self._columns)  # type: ignore[no-any-return]

    def chosen(self, which: npt.NDArray[np.bool_]) -> Runs:
        """Those at which `which` is true."""
        return Runs(
            self.rows[which],
            list(compress(self.started, which)),
            list(compress(self.notes, which)),
            self.line,
            self._layout,
            [each[which] if isinstance(each, np.ndarray) else each for each in self._columns],
        )


class RecordShapes:
    """Takes in lines, and gives them as runs."""

    def __init__(self, where: Callable[[int], object]) -> None:
        """where: for messages, the place of a line by its number from 1."""
        self._where = where
        self._likely: dict[bytes, list[_Shape]] = {}  # by a line without its digits
        self._shapes: dict[bytes, _Shape] = {}  # by expression
        self._odd: list[Runs] = []  # each of one run, which its own expression does not match
        self._lines = 0

    def add(self, line: bytes) -> tuple[int, str]:
        """Take in the next line; its run and its cell. Errors: StoreError with its place."""
        row, self._lines = self._lines, self._lines + 1
        likely = self._likely.setdefault(line.translate(None, b"0123456789"), [])
        for shape in likely:
            match = shape.match(line)
            if match:
                head = shape.take(row, match) or shape.learn(row, match, self._parsed(line))
                return int(match[shape.run]), head.cell
        record = self._parsed(line)
        shape = self._shape(_Groups(json.loads(line)), line)
        match = shape.match(line)
        if match:
            likely.append(shape)
            shape.learn(row, match, record)
        else:  # such as a number beyond 18 digits
            self._odd.append(_alone(row, record, line))
        return record.run, record.cell

    def _parsed(self, line: bytes) -> Record:
        return parse_record(line, self._where(self._lines))

    def _shape(self, groups: _Groups, line: bytes) -> _Shape:
        expression = _expression(line, groups.of("run")[0])
        if expression not in self._shapes:
            self._shapes[expression] = _Shape(expression, groups)
        return self._shapes[expression]

    def take_all(self) -> list[Runs]:
        """What was added since the last time, in order of the first lines."""
        heads = (head for shape in self._shapes.values() for head in shape.heads.values())
        taken = self._odd + [head.take_all() for head in heads if head.rows]
        self._odd = []
        return sorted(taken, key=lambda runs: int(runs.rows[0]))


class _Groups:
    """The texts and numbers of a line, numbered from 1 in their order, by the key of the record
    that they are part of.
    """

    def __init__(self, raw: Mapping[str, Any]) -> None:
        numbers = count(1)
        self._of_key = {
            key: [(next(numbers), leaf) for leaf in _leaves(value)] for key, value in raw.items()
        }
        captures = (
            (key, leaf)
            for each in raw.get("captures", {}).values()
            for key, value in each.items()
            for leaf in _leaves(value)
        )
        self.printed = [
            group
            for (group, _), (key, _) in zip(self.of_pairs("captures"), captures, strict=True)
            if key == "text"
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


def _measured(groups: _Groups) -> tuple[list[int], list[int]]:
    """The groups of numbers that differ from run to run: integers, and reals."""
    return groups.of(*MEASURED, kind=(int,)), groups.of(*MEASURED, kind=(float,))


def runs_of(
    line: bytes,
    rows: npt.NDArray[np.int64],
    started: Sequence[str],
    notes: Sequence[Note],
    integers: npt.NDArray[Any],
    reals: npt.NDArray[Any],
) -> Runs:
    """Runs from their columns; `integers` and `reals` as `Runs.numbers` has them. Errors:
    ValueError where these are not as many.
    """
    raw = json.loads(line)
    layout, values = _layout(raw)
    for groups, table in zip(_measured(_Groups(raw)), (integers, reals), strict=True):
        for group, column in zip(groups, table, strict=True):
            values[group] = column
    return Runs(rows, started, notes, line, layout, values)


class _Shape:
    """Lines with the same keys in the same order, whose values are of the same types."""

    def __init__(self, expression: bytes, groups: _Groups) -> None:
        self.match = re.compile(expression).fullmatch
        (self.run,) = groups.of("run")
        (self._started,) = groups.of("started")
        self.integers, self.reals = _measured(groups)
        self._noted = [*groups.of(*NOTED), *groups.printed]
        apart = {self._started, *self.integers, *self.reals, *self._noted}
        every = groups.of()
        self._constant = [group for group in every if group not in apart]
        self.last = len(every)
        self.heads: dict[Any, _Head] = {}
        self._notes: dict[Any, Note] = {}

    def take(self, row: int, match: re.Match[bytes]) -> _Head | None:
        """Take in a line whose texts are known; None where it is to be parsed."""
        head = self.heads.get(match.group(*self._constant))
        note = self._notes.get(match.group(*self._noted))
        if head is None or note is None:
            return None
        for opening, closing in head.windows:
            if int(match[opening]) > int(match[closing]):
                return None
        try:
            head.add(row, match, check_time(match[self._started][1:-1].decode()), note)
        except ValueError:
            return None
        return head

    def learn(self, row: int, match: re.Match[bytes], record: Record) -> _Head:
        """Take in a line, and its texts."""
        constant = match.group(*self._constant)
        head = self.heads.get(constant)
        if head is None:
            head = self.heads[constant] = _Head(self, match[0])
        note = self._notes.setdefault(
            match.group(*self._noted), Note(record.reason, record.settings, match[0])
        )
        head.add(row, match, record.started, note)
        return head


class _Head:
    """What lines of a shape with the same texts share, and what was taken from them."""

    def __init__(self, shape: _Shape, line: bytes) -> None:
        self._shape, self._line = shape, line
        self._layout, self._constants = _layout(json.loads(line))
        sides = (self._layout.sender, self._layout.receiver)
        self.windows = [side.time_ns for side in sides if side and side.time_ns]
        self.cell = self._layout.cell
        self._clear()

    def _clear(self) -> None:
        self.rows: list[int] = []
        self._started: list[str] = []
        self._notes: list[Note] = []
        self._integers: list[bytes] = []
        self._reals: list[bytes] = []

    def add(self, row: int, match: re.Match[bytes], started: str, note: Note) -> None:
        """Take in a line."""
        self.rows.append(row)
        self._started.append(started)
        self._notes.append(note)
        self._integers.append(b" ".join(match.group(*self._shape.integers)))
        if self._shape.reals:
            self._reals.append(b" ".join(match.group(0, *self._shape.reals)[1:]))

    def take_all(self) -> Runs:
        """What was added since the last time."""
        columns = list(self._constants)
        for groups, texts, kind in (
            (self._shape.integers, self._integers, np.int64),
            (self._shape.reals, self._reals, np.float64),
        ):
            table = np.fromstring(b" ".join(texts).decode(), kind, sep=" ")
            numbers = np.ascontiguousarray(table.reshape(len(self.rows), len(groups)).T)
            for group, column in zip(groups, numbers, strict=True):
                columns[group] = column
        rows = np.array(self.rows)
        runs = Runs(rows, self._started, self._notes, self._line, self._layout, columns)
        self._clear()
        return runs


def _alone(row: int, record: Record, line: bytes) -> Runs:
    """One run; its numbers are of any size."""
    raw = json.loads(line)
    layout, columns = _layout(raw)
    measured = set(_Groups(raw).of(*MEASURED, kind=(int, float)))
    return Runs(
        np.array([row]),
        [record.started],
        [Note(record.reason, record.settings, line)],
        line,
        layout,
        [
            np.array([each], dtype=object) if group in measured else each
            for group, each in enumerate(columns)
        ],
    )


def _expression(line: bytes, run: int) -> bytes:
    """The expression of a line's shape. `run`: the group of its run's number."""
    parts, groups, end = [], count(1), 0
    for token in _TOKEN.finditer(line):
        kind = str(token.lastgroup)
        parts.append(re.escape(line[end : token.start()]))
        end = token.end()
        if kind == "key":
            parts.append(re.escape(token[0]))
            continue
        if next(groups) == run:
            kind = "from one"
        elif kind == "integer" and token[0].startswith(b"-"):
            kind = "negative"
        parts.append(_VALUES[kind])
    return b"".join([*parts, re.escape(line[end:])])


def _leaves(value: Any) -> Iterator[str | int | float]:
    """The texts and numbers of a JSON value."""
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _leaves(each)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield value


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
    return replace(layout, reason="", settings=NO_SETTINGS, captures=captures), values


def _filled(value: Any, columns: Sequence[Any]) -> Any:
    """A part of a layout with the columns in place of their groups."""
    if isinstance(value, list):
        return [_filled(each, columns) for each in value]
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return columns[int(value)]
    if isinstance(value, dict):
        return {key: _filled(each, columns) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple([_filled(each, columns) for each in value])
    if is_dataclass(value) and not isinstance(value, type):
        parts = {each.name: _filled(getattr(value, each.name), columns) for each in fields(value)}
        return replace(value, **parts)
    return value
