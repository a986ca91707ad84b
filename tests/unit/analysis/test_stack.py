"""Lines that are read together say what parse_record says of each, and are refused likewise."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netbench.base.errors import StoreError
from netbench.base.json_lines import to_line
from netbench.read.stack import runs_of
from netbench.result.codec import JsonObject, of_json
from netbench.result.record import NO_SETTINGS, Record, Settings, parse_record
from tests.support import damage
from tests.unit.test_record import WHOLE, records


def where(number: int) -> str:
    return f"r/records.jsonl:{number}"


@dataclass(frozen=True)
class Noted(JsonObject):
    """What runs say that is no number."""

    started: str
    reason: str
    settings: Settings = NO_SETTINGS
    concurrent: tuple[str, ...] | None = None
    head: ClassVar = {"schema": int}


def of_run(value: Any, i: int) -> Any:
    """What the record of several runs says of one of them."""
    if isinstance(value, np.ndarray):
        return value[i].item() if hasattr(value[i], "item") else value[i]
    if is_dataclass(value) and not isinstance(value, type):
        parts = {each.name: of_run(getattr(value, each.name), i) for each in fields(value)}
        return replace(value, **parts)
    if isinstance(value, Mapping):
        return {key: of_run(each, i) for key, each in value.items()}
    return (
        type(value)(of_run(each, i) for each in value) if isinstance(value, list | tuple) else value
    )


def as_json(record: Record) -> dict[str, Any]:
    """A record but for what tools printed, which is not read: the numbers in it are."""
    captures = {name: replace(each, text="") for name, each in record.captures.items()}
    return replace(record, captures=captures).to_json()


def read(lines: Sequence[bytes]) -> list[Any]:
    """The records of lines as JSON, each from the arrays of its runs."""
    found: dict[int, Any] = {}
    for runs in runs_of(list(enumerate(lines, 1)), where):
        for i, row in enumerate(runs.rows.tolist()):
            noted = of_json(Noted, {k: v for k, v in runs.said[i].items() if v is not None})
            found[row] = as_json(replace(of_run(runs.record, i), **vars(noted)))
    return [found[row] for row in range(len(lines))]


def refusal(lines: Sequence[bytes]) -> str:
    try:
        read(lines)
    except StoreError as error:
        return str(error)
    return ""


@given(st.lists(records, max_size=3))
def test_arrays_say_what_each_line_says(made: list[Record]) -> None:
    lines = [to_line(record.to_json()) for record in made for _ in range(2)]
    assert read(lines) == [as_json(parse_record(line, "x")) for line in lines]


GOOD = [json.dumps(WHOLE).encode() + b"\n"] * 2


def check_like_parse_record(line: bytes) -> None:
    refused = damage.refusal(parse_record, line, where(3))
    assert refusal([*GOOD, line]) == refused
    if not refused:
        assert read([*GOOD, line])[2] == as_json(parse_record(line, "x"))


@given(damage.damaged(WHOLE))
def test_a_damaged_line_after_good_ones_is_refused_as_alone(line: bytes) -> None:
    check_like_parse_record(line)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'{"send": "sendfile"}', b'{"send": "0sendfile"}'),
        (b'"settings": {"sender"', b'"settings": {"0sender"'),
        (b'"run": 17', b'"run": 0'),
        (b'"run": 17', b'"run": 017'),
        (b'"run": 17', b'"run": 9223372036854775808'),
        (b'"block": 4', b'"block": 04'),
        (b'"schema": 2', b'"schema": 3'),
        (b"[81000, 1081000]", b"[1081000, 81000]"),
        (b"[81000, 1081000]", b"[81000, 81000]"),
        (b"[100, 900]", b"[100, ]"),
        (b"[100, 900]", b"[, 900]"),
        (b"[100, 900]", b"[100, 999999999999999999]"),
        (b"[100, 900]", b"[100, 9999999999999999999]"),
        (b"[100, 900]", b"[100, 18446744073709551615]"),
        (b"[100, 900]", b"[100, 18446744073709551616]"),
        (b'"seconds": 0.5', b'"seconds": .5'),
        (b'"seconds": 0.5', b'"seconds": 00.5'),
        (b'"seconds": 0.5', b'"seconds": 0.1234567890123456789'),
        (b"2026-03-01T12:00:00.123456Z", b"2026-13-01T12:00:00.123456Z"),
        (b"2026-03-01T12:00:00.123456Z", b"2026-03-01T12:00:00.1Z"),
        (b"131072", b"99"),
    ],
)
def test_a_line_of_other_digits_is_read_or_refused_as_alone(old: bytes, new: bytes) -> None:
    """Any other line has a layout of its own, and is read by parse_record."""
    assert old in GOOD[0]
    check_like_parse_record(GOOD[0].replace(old, new))


def test_runs_of_a_cell_are_one_record() -> None:
    cells = ("a", "b", "a", "c", "b")
    lines = [
        (number, json.dumps(WHOLE | {"run": number, "cell": cell}).encode())
        for number, cell in enumerate(cells, 1)
    ]
    assert [runs.rows.tolist() for runs in runs_of(lines, where)] == [[0, 2], [1, 4], [3]]
