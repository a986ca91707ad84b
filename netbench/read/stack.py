"""Lines of records.jsonl as runs: records that differ in what was measured alone are one record of
arrays, so that what is computed of them is computed once.

Lines that are equal but for their digits have the same layout. The first of them is read by
`parse_record`, which checks it; of the others the JSON is decoded, and what digits may make wrong
is checked here. Where anything is, each line is read alone, so what is refused, and how, is for the
types of record.py.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic_core import from_json

from netbench.base.units import LARGEST
from netbench.result.record import Record, SideCounters, check_time, parse_record

NOTED = ("started", "reason", "settings")
"""Keys whose texts may do so, too."""
MEASURED = ("run", "block", "round", "sender", "receiver", "captures", "proof", "cut")
"""Keys of a record whose numbers differ from run to run."""
_OF_CELL = ("schema", "cell", "pair", "boot")
Apart = Callable[[str, int, int], object]
"""Of a pair, the number of a run and its boot."""
_DIGITS = b"0123456789"
_LONG = re.compile(rb"\d{19}")
"""A number that an int64 may not hold."""


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of one cell, pair, boot, status and what `apart` says whose records have the same keys.

    rows: the places of their lines in records.jsonl, from 0. record: what they say together, where
    a number of MEASURED is an array with one value a run, and all else is what the first of them
    says. said: NOTED of each, as JSON.
    """

    rows: npt.NDArray[np.int64]
    record: Record
    said: Sequence[Mapping[str, Any]]

    def __len__(self) -> int:
        return len(self.said)

    @property
    def numbers(self) -> list[int]:
        """The number of each run."""
        return self.record.run.tolist()  # type: ignore[attr-defined, no-any-return]


def runs_of(
    lines: Sequence[tuple[int, bytes]],
    where: Callable[[int], object],
    apart: Apart = lambda pair, run, boot: None,
) -> list[Runs]:
    """The runs of some lines, each with its number from 1, in the order of their first lines.
    where: for messages, the place of a line by its number; apart: runs are together where it is
    equal. Errors: StoreError with `where`.
    """
    # A cell's lines are looked at together, since few at once stay in the processor's caches.
    layouts: dict[tuple[bytes, bytes, int], list[tuple[int, bytes]]] = {}
    for number, line in lines:
        cell = line[line.find(b'"cell"') : line.find(b'"block"')]
        settings = line[line.find(b'"settings"') : line.find(b'"proof"')]
        alone = number if _LONG.search(settings) else 0  # its numbers are not looked at here
        layouts.setdefault((line.translate(None, _DIGITS), cell, alone), []).append((number, line))
    stacked = [runs for alike in layouts.values() for runs in _of_layout(alike, where, apart)]
    return sorted(stacked, key=lambda runs: int(runs.rows[0]))


def _of_layout(
    lines: Sequence[tuple[int, bytes]], where: Callable[[int], object], apart: Apart
) -> Sequence[Runs]:
    parse_record(lines[0][1], where(lines[0][0]))
    cells: dict[tuple[Any, ...], list[int]] = {}
    try:
        records = from_json(b"[%b]" % b",".join(line for _, line in lines))
        for i, raw in enumerate(records):
            place = apart(raw["pair"], raw["run"], raw["boot"])
            cells.setdefault((*(raw[name] for name in _OF_CELL), place), []).append(i)
        return [
            _of_cell([lines[i] for i in places], [records[i] for i in places], where)
            for places in cells.values()
        ]
    except (KeyError, ValueError):
        if len(lines) == 1:
            raise
    return [runs for line in lines for runs in _of_layout([line], where, apart)]


def _names(value: Any) -> Any:
    """The keys of a JSON object, and of those in it."""
    return {k: _names(each) for k, each in value.items()} if isinstance(value, dict) else None


def _of_cell(
    lines: Sequence[tuple[int, bytes]],
    said: Sequence[Mapping[str, Any]],
    where: Callable[[int], object],
) -> Runs:
    """Errors: StoreError for the first line, ValueError or KeyError where another is not alike."""
    number, line = lines[0]
    record = _together(parse_record(line, where(number)), said)
    settings = _names(said[0].get("settings"))
    for raw in said:
        if _names(raw.get("settings")) != settings:  # digits in names, which layouts are without
            raise ValueError("settings differ")
        check_time(raw["started"])
        if raw["factors"] != said[0]["factors"]:
            raise ValueError("factors differ")
    numbers = [each for each in (record.run, record.round) if each is not None]
    windows = [side.time_ns for side in (record.sender, record.receiver) if side and side.time_ns]
    if any(np.any(each < 1) for each in numbers) or any(np.any(a > b) for a, b in windows):
        raise ValueError("out of range")
    rows = np.array([number - 1 for number, _ in lines])
    return Runs(rows, record, [{name: raw.get(name) for name in NOTED} for raw in said])


def _together(record: Record, said: Sequence[Mapping[str, Any]]) -> Record:
    """The record of runs, given that of one of them, and their JSON objects."""
    return replace(
        record,
        **{
            name: _stacked(getattr(record, name), [raw[name] for raw in said])
            for name in MEASURED
            if name in said[0]
        },
    )


def _stacked(part: Any, values: Sequence[Any]) -> Any:
    """What runs say together in a place. part: what the record of one says there, or of several."""
    first = values[0]
    if first is None or isinstance(first, str):
        if values.count(first) != len(values):
            raise ValueError("texts differ")
        return part
    if not isinstance(first, dict):
        return _numbers(values)
    if isinstance(part, dict):
        return {key: _stacked(each, [raw[key] for raw in values]) for key, each in part.items()}
    shared = (each.name for each in fields(part) if each.name != "text")  # as a tool printed it
    names = [name for name in shared if name in first]
    parts = {name: _stacked(getattr(part, name), [raw[name] for raw in values]) for name in names}
    if isinstance(part, SideCounters):
        parts["meters"] = _stacked(part.meters, values)
    return replace(part, **parts)


def _numbers(values: Sequence[Any]) -> Any:
    """Numbers of runs as an array; lists of such as lists, whose innermost are arrays over runs."""
    first, flat = values[0], iter(values)
    shape = [len(values)]
    while isinstance(first, list):
        shape.append(len(first))
        first, flat = first[0] if first else 0, chain.from_iterable(flat)
    try:
        kind = float if isinstance(first, float) else np.int64
        numbers = np.fromiter(flat, kind, math.prod(shape))
    except OverflowError as error:  # one of the engine's u64
        if len(values) > 1:
            raise ValueError("beyond an int64") from error
        numbers = np.array(values, dtype=object)
    if kind is float and not (np.abs(numbers) <= LARGEST).all():
        raise ValueError("not finite, or too large")
    numbers = numbers.reshape(shape)
    return _listed(np.ascontiguousarray(numbers.transpose(*range(1, numbers.ndim), 0)))


def _listed(numbers: npt.NDArray[Any]) -> Any:
    return numbers if numbers.ndim == 1 else [_listed(each) for each in numbers]
