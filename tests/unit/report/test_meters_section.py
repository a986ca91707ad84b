"""The meters side by side: what each counted, and the likely reason why they differ."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from netbench.analysis.tick_error import tick_error
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
    assert [c.name for c in table.columns][-4:] == [
        "by rusage",
        "tick error",
        "apart",
        "likely reason",
    ]
    sides = {row[-6]: row[-1] for row in table.rows}
    assert sides["sender"] == reason
    assert any(note.startswith(reason) for note in table.notes)
    for row in table.rows:
        counted, used = row[-5].mean, row[-4].mean
        assert row[-2] == f"{abs(counted - used) / max(counted, used):.1%}"


def test_the_error_of_two_kernels_is_of_both(tmp_path: Path) -> None:
    """Each kernel's ticks find its own CPUs busy, so errors add as independent ones do."""
    made = Synth(pairs=("snd>rcv",), runs=40, duration=20.0, truth=lambda _: (20.0, 3.8, 0.1))
    report = build(made.write(tmp_path))
    (table,) = report.section("meters").blocks
    first = table.rows[:3]
    error = {row[-6]: float(str(row[-3]).split()[0]) for row in first}
    assert error["system"] == pytest.approx(
        math.hypot(error["sender"], error["receiver"]), rel=0.05
    )


def test_one_meter_is_not_compared(tmp_path: Path) -> None:
    report = build(Synth(pairs=("snd>rcv",), edit=rusage_alone).write(tmp_path))
    assert "meters" not in [section.key for section in report.sections]


def test_the_error_of_ticks_is_that_of_sampling() -> None:
    """Against a simulation: each tick of each CPU finds it busy with probability p."""
    rng = np.random.default_rng(7)
    cpus, hz, seconds, busy = 4, 100, 0.5, 1.2
    seen = rng.binomial(int(hz * seconds), busy / cpus, (20_000, cpus)).sum(axis=1) / (hz * seconds)
    assert tick_error(busy, cpus, hz, seconds) == pytest.approx(seen.std(), rel=0.03)
    assert tick_error(0, cpus, hz, seconds) == tick_error(cpus, cpus, hz, seconds) == 0
    assert not math.isnan(tick_error(cpus + 0.1, cpus, hz, seconds))
