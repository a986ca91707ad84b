"""Lines that are read as columns say what parse_record says of each, and are refused as it refuses
them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netbench.base.errors import StoreError
from netbench.base.json_lines import to_line
from netbench.read.record_shapes import RecordShapes
from netbench.read.record_tables import NOTED
from netbench.result.record import Record, parse_record
from tests.support import damage
from tests.unit.test_record import WHOLE, records


def where(number: int) -> str:
    return f"r/records.jsonl:{number}"


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


def read(lines: Sequence[bytes]) -> list[Record]:
    """The records of lines, each from the columns of its runs."""
    shapes = RecordShapes(where)
    for line in lines:
        shapes.add(line)
    found: dict[int, Record] = {}
    for runs in shapes.take_all():
        for i, row in enumerate(runs.rows.tolist()):
            note = runs.notes[i]
            noted = {name: getattr(note, name) for name in NOTED}
            found[row] = replace(of_run(runs.record, i), started=runs.started[i], **noted)
    return [found[row] for row in range(len(lines))]


def refusal(lines: Sequence[bytes]) -> str:
    try:
        read(lines)
    except StoreError as error:
        return str(error)
    return ""


@given(st.lists(records, max_size=3))
def test_columns_say_what_each_line_says(made: list[Record]) -> None:
    lines = [to_line(record.to_json()) for record in made for _ in range(2)]
    assert read(lines) == [without_prints(parse_record(line, "x")) for line in lines]


def without_prints(record: Record) -> Record:
    """What tools printed is in no column: the numbers in it are."""
    captures = {name: replace(each, text="") for name, each in record.captures.items()}
    return replace(record, captures=captures)


GOOD = [json.dumps(WHOLE).encode() + b"\n"] * 2


def test_runs_of_other_pairs_lie_in_one_table() -> None:
    """What a record says of the pair and its hosts is its own; what is computed, is once."""
    lines = [GOOD[0]]
    for host in ("there", "elsewhere"):
        other = json.loads(GOOD[0])
        other["pair"], other["receiver"]["host"] = f"here>{host}", host
        lines.append(json.dumps(other).encode() + b"\n")
    assert read(lines) == [without_prints(parse_record(line, "x")) for line in lines]
    shapes = RecordShapes(where)
    for line in lines:
        shapes.add(line)
    assert len({id(runs.table) for runs in shapes.take_all()}) == 1


def check_like_parse_record(line: bytes) -> None:
    refused = damage.refusal(parse_record, line, where(3))
    assert refusal([*GOOD, line]) == refused
    if not refused:
        assert read([*GOOD, line])[2] == parse_record(line, "x")


@given(damage.damaged(WHOLE))
def test_a_damaged_line_after_good_ones_is_refused_as_alone(line: bytes) -> None:
    check_like_parse_record(line)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"run": 17', b'"run": 0'),
        (b'"run": 17', b'"run" : 17'),
        (b'"flow": {', b'"flow"\t: {'),
        (b'"run": 17', b'"run": 017'),
        (b'"run": 17', b'"run": -17'),
        (b'"run": 17', b'"run": 9223372036854775808'),
        (b'"block": 4', b'"block": 04'),
        (b'"schema": 2', b'"schema": 3'),
        (b"[81000, 1081000]", b"[1081000, 81000]"),
        (b"[81000, 1081000]", b"[81000, 81000]"),
        (b"[100, 900]", b"[100, 900.0]"),
        (b"[100, 900]", b"[100, 9e2]"),
        (b"[100, 900]", b"[100, -900]"),
        (b"[100, 900]", b"[100, -0]"),
        (b"[100, 900]", b"[100, ]"),
        (b"[100, 900]", b"[, 900]"),
        (b"[100, 900]", b"[1 00, 900]"),
        (b"[100, 900]", b"[100, true]"),
        (b"[100, 900]", b"[100, 999999999999999999]"),
        (b"[100, 900]", b"[100, 9999999999999999999]"),
        (b"[100, 900]", b"[100, 18446744073709551615]"),
        (b"[100, 900]", b"[100, 18446744073709551616]"),
        (b'"seconds": 0.5', b'"seconds": .5'),
        (b'"seconds": 0.5', b'"seconds": 00.5'),
        (b'"seconds": 0.5', b'"seconds": 1e999'),
        (b'"seconds": 0.5', b'"seconds": 7'),
        (b'"seconds": 0.5', b'"seconds": 0.1234567890123456789'),
        (b"2026-03-01T12:00:00.123456Z", b"2026-13-01T12:00:00.123456Z"),
        (b"2026-03-01T12:00:00.123456Z", b"2026-03-01T12:00:00.1Z"),
        (b"2026-03-01T12:00:00.123456Z", b"2026-03-01T12:00:00Z"),
        (b'"here>here"', b'"here>her>e"'),
        (b'"status": "ok"', b'"status": "OK"'),
        (b'"reason": ""', b'"reason": "\xff"'),
        (b'"reason": ""', b'"reason": "\\ud800"'),
        (b'"reason": ""', b'"reason": "say \\"no\\" \\u00e9"'),
        (b'"reason": ""', b'"reason": "2026-03-01T12:00:00.123456Z"'),
        (b'"asked": "off"', b'"asked": 7'),
        (b"131072", b"99"),
        (b"}\n", b"} \n"),
        (b"}\n", b"}}\n"),
    ],
)
def test_an_edited_line_after_good_ones_is_read_or_refused_as_alone(old: bytes, new: bytes) -> None:
    assert old in GOOD[0]
    check_like_parse_record(GOOD[0].replace(old, new))


def test_runs_are_given_once_and_by_their_first_lines() -> None:
    shapes = RecordShapes(where)
    cells = ("a", "b", "a", "c", "b")
    for run, cell in enumerate(cells, 1):
        assert shapes.add(json.dumps(WHOLE | {"run": run, "cell": cell}).encode()) == (run, cell)
    assert [runs.rows.tolist() for runs in shapes.take_all()] == [[0, 2], [1, 4], [3]]
    assert shapes.take_all() == []
