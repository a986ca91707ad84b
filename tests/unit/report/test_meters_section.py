"""The meters side by side: what each counted, and the likely reason why they differ."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from netbench.report.build import build
from tests.support.synthetic import Record, Synth
from tests.unit.analysis.test_cautions import unseen


def rusage_alone(record: Record) -> Record:
    for side in ("sender", "receiver"):
        record[side].pop("procstat", None)
    return record


@pytest.mark.parametrize(("edit", "reason"), [(None, "softirqs, others"), (unseen, "missed work")])
def test_the_likely_reason_is_said(
    tmp_path: Path, edit: Callable[[Record], Record] | None, reason: str
) -> None:
    report = build(Synth(pairs=("snd>rcv",), runs=40, duration=20.0, edit=edit).write(tmp_path))
    (table,) = report.section("meters").blocks
    assert [c.name for c in table.columns][-3:] == ["by rusage", "apart", "likely reason"]
    sides = {row[-5]: row[-1] for row in table.rows}
    assert sides["sender"] == reason
    assert any(note.startswith(reason) for note in table.notes)
    for row in table.rows:
        counted, used = row[-4].mean, row[-3].mean
        assert row[-2] == f"{abs(counted - used) / max(counted, used):.1%}"


def test_one_meter_is_not_compared(tmp_path: Path) -> None:
    report = build(Synth(pairs=("snd>rcv",), edit=rusage_alone).write(tmp_path))
    assert "meters" not in [section.key for section in report.sections]
