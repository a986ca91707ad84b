"""Interrupts and packets: a row of both sides where one kernel is both, else one of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from netbench.report.build import build
from tests.support.running import run
from tests.support.synthetic import Synth


def test_without_the_meter_there_is_no_section(tmp_path: Path) -> None:
    report = build(Synth(pairs=("snd>rcv",)).write(tmp_path))
    assert "interrupts" not in [section.key for section in report.sections]


def test_packets_are_those_of_the_metrics(tmp_path: Path) -> None:
    text = (
        "transfer: {duration: 100ms, warmup: 2ms, congestion: cubic}\nmeters: [rusage, softirq]\n"
    )
    run(text, tmp_path)
    (folder,) = tmp_path.glob("**/records.jsonl")
    report = build(folder.parent)
    (table,) = report.section("interrupts").blocks
    ((*_, side, packets, size), *rest) = [row[: 2 + 2] for row in table.rows]
    assert (side, rest) == ("system", [])
    (cell,) = report.source.cells
    assert packets == cell.intervals["packets"]
    assert size == cell.intervals["bytes_per_packet"]
    assert packets.mean * size.mean == pytest.approx(
        2 * cell.intervals["throughput"].mean * 1e9 / 8, rel=0.5
    )
