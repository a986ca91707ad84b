"""A result that an earlier netbench made still reports, with the same raw counters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from netbench.report.source import Source
from netbench.result.record import parse_record

(RESULT,) = (Path(__file__).parent / "earlier_result").iterdir()


def test_its_records_are_read_and_written_unchanged() -> None:
    lines = (RESULT / "records.jsonl").read_bytes().splitlines()
    assert lines
    for number, line in enumerate(lines, 1):
        assert parse_record(line, number).to_json() == json.loads(line)


def test_its_throughput_is_that_of_the_raw_counters() -> None:
    source = Source.of(RESULT)
    runs = source.result.runs.set_index("run")
    for line in (RESULT / "records.jsonl").read_bytes().splitlines():
        raw = json.loads(line)
        opened, closed = raw["receiver"]["flow"]["bytes"]
        begun, ended = raw["receiver"]["time_ns"]
        rate = 8 * (sum(closed) - sum(opened)) / (ended - begun)
        assert runs.loc[raw["run"], "throughput"] == pytest.approx(rate)
    assert all(cell.intervals["throughput"].known for cell in source.cells)


def test_what_its_plan_does_not_say_has_a_meaning() -> None:
    """Keys that came later are left out of a plan.json of before."""
    source = Source.of(RESULT)
    for family in source.comparisons.values():
        for c in family:
            assert c.verdict
            assert c.sentence
