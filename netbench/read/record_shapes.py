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
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from netbench.read.record_tables import NOTED, OF_CELL, Groups, Head, Kind, Note, Runs, Table
from netbench.result.record import Record, check_time, parse_record

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
                cell = shape.take(row, match) or shape.learn(row, match, self._parsed(line))
                return int(match[shape.run]), cell.head.cell
        record = self._parsed(line)
        shape = self._shape(Groups(json.loads(line)), line)
        match = shape.match(line)
        if match:
            likely.append(shape)
            shape.learn(row, match, record)
        else:  # such as a number beyond 18 digits
            self._odd.append(_alone(row, record, line))
        return record.run, record.cell

    def _parsed(self, line: bytes) -> Record:
        return parse_record(line, self._where(self._lines))

    def _shape(self, groups: Groups, line: bytes) -> _Shape:
        expression = _expression(line, groups.of("run")[0])
        if expression not in self._shapes:
            self._shapes[expression] = _Shape(expression, groups)
        return self._shapes[expression]

    def take_all(self) -> list[Runs]:
        """What was added since the last time, in order of the first lines."""
        kinds = (kind for shape in self._shapes.values() for kind in shape.kinds.values())
        taken = self._odd + [runs for kind in kinds for runs in kind.take_all()]
        self._odd = []
        return sorted(taken, key=lambda runs: int(runs.rows[0]))


class _Shape:
    """Lines with the same keys in the same order, whose values are of the same types."""

    def __init__(self, expression: bytes, groups: Groups) -> None:
        self.match = re.compile(expression).fullmatch
        self._groups = groups
        (self.run,) = groups.of("run")
        (self._started,) = groups.of("started")
        self._noted = [*groups.of(*NOTED), *groups.printed]
        apart = {self._started, *groups.measured(int), *groups.measured(float), *self._noted}
        self._constant = [group for group in groups.of() if group not in apart]
        of_cell = {*groups.of(*OF_CELL), *groups.hosts}
        self._of_kind = [group for group in self._constant if group not in of_cell]
        self.kinds: dict[Any, _OfKind] = {}
        self._cells: dict[Any, _Cell] = {}
        self._notes: dict[Any, Note] = {}

    def take(self, row: int, match: re.Match[bytes]) -> _Cell | None:
        """Take in a line whose texts are known; None where it is to be parsed."""
        cell = self._cells.get(match.group(*self._constant))
        note = self._notes.get(match.group(*self._noted))
        if cell is None or note is None:
            return None
        for opening, closing in cell.kind.windows:
            if int(match[opening]) > int(match[closing]):
                return None
        try:
            cell.add(row, match, check_time(match[self._started][1:-1].decode()), note)
        except ValueError:
            return None
        return cell

    def learn(self, row: int, match: re.Match[bytes], record: Record) -> _Cell:
        """Take in a line, and its texts."""
        constant = match.group(*self._constant)
        cell = self._cells.get(constant)
        if cell is None:
            key = match.group(0, *self._of_kind)[1:]
            if key not in self.kinds:
                self.kinds[key] = _OfKind(match[0], self._groups)
            cell = self._cells[constant] = self.kinds[key].add(record)
        note = self._notes.setdefault(match.group(*self._noted), Note.of(record, match[0]))
        cell.add(row, match, record.started, note)
        return cell


class _Cell:
    """What was taken from lines of one kind and head."""

    def __init__(self, kind: Kind, record: Record) -> None:
        """record: one of the cell's."""
        self.kind, self.head = kind, Head.of(record)
        self.clear()

    def clear(self) -> None:
        """Forget it."""
        self.rows: list[int] = []
        self.started: list[str] = []
        self.notes: list[Note] = []
        self.integers: list[bytes] = []
        self.reals: list[bytes] = []

    def add(self, row: int, match: re.Match[bytes], started: str, note: Note) -> None:
        """Take in a line."""
        kind = self.kind
        self.rows.append(row)
        self.started.append(started)
        self.notes.append(note)
        self.integers.append(b" ".join(match.group(*kind.integers)))
        if kind.reals:
            self.reals.append(b" ".join(match.group(0, *kind.reals)[1:]))


class _OfKind:
    """The cells of a kind."""

    def __init__(self, line: bytes, groups: Groups) -> None:
        self.kind = Kind(line, groups)
        self._cells: list[_Cell] = []

    def add(self, record: Record) -> _Cell:
        """Make the place for a new cell, given a record of it."""
        self._cells.append(_Cell(self.kind, record))
        return self._cells[-1]

    def take_all(self) -> list[Runs]:
        """What was added since the last time."""
        cells = [cell for cell in self._cells if cell.rows]
        rows = np.array([row for cell in cells for row in cell.rows], dtype=np.int64)
        integers = _parsed([cell.integers for cell in cells], len(rows), np.int64)
        reals = _parsed([cell.reals for cell in cells], len(rows), np.float64)
        table, at, taken = Table(self.kind, rows, integers, reals), 0, []
        for cell in cells:
            place = slice(at, at := at + len(cell.rows))
            taken.append(Runs(cell.head, cell.started, cell.notes, table, place))
            cell.clear()
        return taken


def _parsed(texts: Sequence[Sequence[bytes]], runs: int, kind: type) -> npt.NDArray[Any]:
    """The numbers in the texts of each run: a row a number."""
    joined = b" ".join(text for each in texts for text in each).decode()
    table: npt.NDArray[Any] = np.fromstring(joined, kind, sep=" ").reshape(
        runs, -1 if joined else 0
    )
    return np.ascontiguousarray(table.T)


def _alone(row: int, record: Record, line: bytes) -> Runs:
    """One run; its numbers are of any size."""
    kind = Kind(line)
    integers, reals = (
        np.array([[kind.constants[group]] for group in groups], dtype=object).reshape(-1, 1)
        for groups in (kind.integers, kind.reals)
    )
    table = Table(kind, np.array([row]), integers, reals)
    return Runs(Head.of(record), [record.started], [Note.of(record, line)], table, slice(0, 1))


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
