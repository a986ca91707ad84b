"""Soft interrupts that no process pays for: a flood of UDP from one namespace into another, whose
interface hands what arrives to another CPU (receive packet steering). Nobody reads it there.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from tools.bench import command

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
