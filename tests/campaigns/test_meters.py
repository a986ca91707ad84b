"""Meters in real campaigns: what a machine does not count, and interrupts no process pays for."""

from __future__ import annotations

import math
import os
from html import unescape
from pathlib import Path

import pytest
import yaml

from netbench import campaign, load
from netbench.engine.own_engine import local
from netbench.read.metrics import METRICS, RATIOS
from netbench.run import conductor
from tools.bench import command

# What a machine does not count


TEXT_OF_ALL = """\
netbench: 1
name: all
verify: off
transfer: {duration: 60ms, warmup: 10ms, congestion: cubic}
repeat: {min: 2, max: 2}
meters: [METERS]
"""
SHOWN = {"cycles_per_byte", "instructions_per_byte", "energy", "energy_less_idle"}


def test_every_meter_in_a_real_campaign(tmp_path: Path) -> None:
    """Which counters are missing is this machine's affair."""
    refused = {n for n, m in local().meters.items() if m.row.why and not m.has("by_helper")}
    meters = local().meters.items()
    asked = [n for n, m in meters if not m.has("always") and n not in {"soak", *refused}]
    text = TEXT_OF_ALL.replace("METERS", ", ".join(asked))
    result = load(conductor.start(campaign.parse(text, "all.yaml"), tmp_path).path)
    (entry,) = result.source.result.hosts["here"]
    runs = result.runs[[name for name in METRICS if name in result.runs]]
    assert not runs.apply(lambda column: column.map(math.isinf)).any(axis=None)
    texts = [unescape(text) for text in (result.text(), result.html())]
    for row in RATIOS:
        unread = [
            why
            for counter in row.counters
            if (why := entry.unread.get(counter) or entry.unread.get(counter.partition(".")[0]))
        ]
        if unread:
            assert not {row.name, f"sender_{row.name}"} & set(runs.columns), row.name
        if unread and row.name in SHOWN:
            for text in texts:
                assert unread[0] in " ".join(text.split())


# Soft interrupts that no process pays for


FLOOD = """
import socket, sys, time
out, moved, end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0, 0.0
begun = time.monotonic()
while end < begun + float(sys.argv[2]):
    for _ in range(100):
        moved += out.sendto(b"-" * 64, (sys.argv[1], 9))
    end = time.monotonic()
print(f"moved {moved} bytes in {end - begun} s")
"""
PATTERN = "moved (?P<bytes>[0-9]+) bytes in (?P<seconds>[0-9.]+) s"
METERS = "sender_cpu.rusage", "system_cpu.procstat", "system_cpu.soak"


@pytest.mark.root
@pytest.mark.netns
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="this machine has one CPU")
def test_soak_and_procstat_charge_what_rusage_does_not(tmp_path: Path) -> None:
    """Whatever else runs on this machine only adds to both. Each meter had a run of its own."""
    sender, receiver, *_ = sorted(os.sched_getaffinity(0))
    campaign = {
        "netbench": 1,
        "name": "softirq-load",
        "verify": "off",
        "lab": "netns",
        "hosts": {"snd": {}, "rcv": {}},
        "transfer": {
            "tool": {
                "argv": ["python3", "-c", FLOOD, "{address}", "{seconds}"],
                "pattern": PATTERN,
            },
            "pin": {"sender": sender, "receiver": receiver},
            "duration": "400ms",
            "warmup": "0s",
        },
        "settings": {"receiver.rps": str(receiver)},
        "sweep": {"meters": [["rusage", "procstat"], ["rusage", "soak"]]},
        "repeat": {"min": 1, "max": 1},
    }
    results = command.run(yaml.safe_dump(campaign, sort_keys=False), tmp_path)
    assert set(results.runs["status"]) == {"ok"}
    cells = results.cells
    rusage, procstat, soak = (cells[cells["metric"] == m].iloc[-1]["mean"] for m in METERS)
    assert 0 < rusage < procstat
    assert rusage < soak
