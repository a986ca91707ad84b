"""Campaigns with files on a real file system: what is recorded of a sink and its disk."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from netbench import campaign
from netbench.read.load import load
from netbench.result.files import read_facts
from netbench.run import conductor
from tests.support.disks import ext4_on
from tests.support.local import out
from tests.support.needs import needs
from tests.support.running import BASE, stored_records

MIB = 1 << 20


@pytest.fixture(scope="module")
@needs("root")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("disk")
    with ext4_on(folder / "image", folder / "ext4") as mounted:
        (mounted / "in").write_bytes(os.urandom(MIB + 5))
        yield mounted


def test_a_record_and_facts_say_what_became_of_a_sink(disk: Path, tmp_path: Path) -> None:
    text = (
        f"transfer: {{send: readwrite, source: {{file: {disk}/in}}, sink: {{file: {disk}/sunk}},"
        " bytes: 1M, congestion: cubic}\n"
        "sweep: {fsync: [none, window, after]}\n"
    )
    conclusion = conductor.start(campaign.parse(BASE + text, "f.yaml"), tmp_path / "r")
    found = {one["factors"]["fsync"]: one for one in stored_records(conclusion.path)}
    for fsync, record in found.items():
        assert record["status"] == "ok", record["reason"]
        receiver = record["receiver"]
        assert receiver["sink_resident"] == [0, MIB]
        assert (receiver["sink_dirty"][1] > 0) == (fsync != "window")
        assert ("fsync_ns" in receiver) == (fsync != "none")
        assert record["sender"]["resident_after"] == MIB + 5
        opened, closed = receiver["time_ns"]
        if fsync == "window":
            assert closed - opened >= receiver["fsync_ns"] > 0
    took = load(conclusion.path).runs.set_index("fsync")["fsync_time"].to_dict()
    assert math.isnan(took.pop("none"))
    assert took == {name: found[name]["receiver"]["fsync_ns"] * 1e-6 for name in took}
    facts = read_facts(conclusion.path / "facts.json")["here"][0].known
    device = out("findmnt", "-n", "-o", "SOURCE", "-T", str(disk)).strip()
    assert facts["sink_mount"].startswith(f"ext4 on {device}: ")
