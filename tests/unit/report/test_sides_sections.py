"""What each side did: its interrupts and packets, its meters side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

from netbench.report.build import build
from tests.support.running import run
from tests.support.synthetic import Record, Synth


def rusage_alone(record: Record) -> Record:
    for side in ("sender", "receiver"):
        record[side].pop("procstat", None)
    return record


def test_without_meters_there_are_no_sections(tmp_path: Path) -> None:
    report = build(Synth(pairs=("snd>rcv",), edit=rusage_alone).write(tmp_path))
    assert not {"interrupts", "meters"} & {section.key for section in report.sections}


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


def test_sizes_of_one_side_stand_in_its_row(tmp_path: Path) -> None:
    """GSO is the sender's, GRO the receiver's, where each has a kernel of its own."""

    def counted(record: Record) -> Record:
        for number, side in enumerate(("sender", "receiver")):
            record[side]["softirq"] = {
                "namespace": [number, number],
                "link_rx_packets": [0, 500],
                "link_tx_packets": [0, 500],
                "ip_out_requests": [0, 100],
                "ip_in_receives": [0, 50],
            }
        return record

    report = build(Synth(pairs=("snd>rcv",), edit=counted).write(tmp_path / "r"))
    (table,) = report.section("interrupts").blocks
    names = [column.name for column in table.columns]
    gso, gro, side = (names.index(name) for name in ("gso size", "gro size", "side"))
    seen = {(row[side], row[gso] is not None, row[gro] is not None) for row in table.rows}
    assert seen == {("sender", True, False), ("receiver", False, True)}
