"""Which CPU the work was on, in real runs: the record's sums are those of the CPUs in samples/."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from netbench import campaign, load
from netbench.report.build import build
from netbench.run import conductor
from tests.support.running import stored_records

TEXT = """\
netbench: 1
name: p
verify: off
transfer: {duration: 200ms, warmup: 20ms, congestion: cubic}
sweep:
  pin: [none, same, apart]
  meters: [[rusage, procstat], [rusage, soak]]
repeat: {min: 1, max: 1}
"""
OF_CPUS = {  # what a counter of the record is the sum of
    "procstat.pinned_idle": ("cpu_idle", "cpu_iowait", "cpu_steal"),
    "soak.pinned_taken_ns": ("cpu_taken_ns",),
}


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="this machine has one CPU")
def test_who_paid_is_told_where_each_side_has_a_cpu_of_its_own(tmp_path: Path) -> None:
    path = conductor.start(campaign.parse(TEXT, "p.yaml"), tmp_path).path
    runs = load(path).runs.set_index("run")
    shares = runs[["sender_paid", "receiver_paid", "others_paid"]]
    apart = runs["pin"] == "apart"
    assert apart.sum() == 2
    assert shares[~apart].isna().all(axis=None)
    assert shares[apart].sum(axis=1).to_list() == pytest.approx([1, 1])
    assert (shares[apart][["sender_paid", "receiver_paid"]] > 0).all(axis=None)
    (table,) = build(path).section("who_paid").blocks
    assert [row[0] for row in table.rows] == ["apart"] * 2
    first, second = sorted(os.sched_getaffinity(0))[:2]
    for record in stored_records(path):
        lines = (path / "samples" / f"{record['run']:06d}.jsonl").read_text().splitlines()
        edges = [
            line for line in map(json.loads, lines) if "edge" in line and line["side"] == "sender"
        ]
        for name, counters in OF_CPUS.items():
            meter, _, pinned = name.partition(".")
            peer = pinned.replace("pinned", "peer")
            kept = record["sender"].get(meter, {})
            assert (pinned in kept) == (bool(kept) and record["factors"]["pin"] != "none")
            assert (peer in kept) == (bool(kept) and record["factors"]["pin"] == "apart")
            for key, cpu in ((pinned, first), (peer, second)):
                if key in kept:
                    sums = [sum(line[meter][one][cpu] for one in counters) for line in edges]
                    assert kept[key] == sums
