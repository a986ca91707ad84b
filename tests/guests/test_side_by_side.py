"""Pairs of guests, each with a kernel of its own: they overlap in time without being asked to."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from netbench.lab import Lab
from tests.support.guests import FIRST, guests_lab, ssh
from tests.support.running import Running

pytestmark = [pytest.mark.root, pytest.mark.guest, pytest.mark.slow]

GUESTS = ("a", "b", "c", "d")
CAMPAIGN = """\
pairs: [{sender: a, receiver: b}, {sender: c, receiver: d}, {sender: b, receiver: c}]
verify: off
settings: {sysctl.net.ipv4.tcp_sack: 0}
transfer: {duration: 2s, warmup: 100ms, sample: 0}
meters: [rusage, procstat]
repeat: {min: 2, max: 2}
"""


@pytest.fixture(scope="module")
def four(fetched: None) -> Iterator[Lab]:
    with guests_lab(f"s{os.getpid()}", GUESTS, (FIRST,)) as found:
        yield found


def begun(folder: Path, here: Lab, text: str) -> Running:
    hosts = yaml.safe_dump(here.block(), sort_keys=False)
    return Running(folder, folder / "r", f"netbench: 1\nname: beside\n{hosts}{text}")


def settings_of(here: Lab) -> dict[str, str]:
    return {guest: ssh(here, guest, "cat /proc/sys/net/ipv4/tcp_sack") for guest in GUESTS}


def span(record: dict[str, Any]) -> tuple[float, float]:
    """When a run began, on the controller's clock, and the earliest that its window closed."""
    began = datetime.fromisoformat(record["started"]).timestamp()
    opened, closed = record["sender"]["time_ns"]
    return began, began + (closed - opened) / 1e9


def test_pairs_on_kernels_of_their_own_overlap(tmp_path: Path, four: Lab) -> None:
    before = settings_of(four)
    running = begun(tmp_path, four, CAMPAIGN)
    code, said = running.end()
    assert code == 0, said
    runs = {(r["block"], r["pair"]): r for r in running.records()}
    assert len(runs) == 6
    for block in range(2):
        one, other, alone = (span(runs[block, pair]) for pair in ("a>b", "c>d", "b>c"))
        assert one[0] < other[1]
        assert other[0] < one[1]
        assert all(alone[0] >= s[1] or s[0] >= alone[1] for s in (one, other)), "it shares hosts"
    beside = {pair: runs[0, pair]["concurrent"] for _, pair in runs}
    assert beside == {"a>b": ["c>d"], "c>d": ["a>b"], "b>c": []}
    assert all("procstat" in record["sender"] for record in runs.values())
    assert settings_of(four) == before


def test_an_interrupt_puts_back_what_all_of_them_hold(tmp_path: Path, four: Lab) -> None:
    before = settings_of(four)
    running = begun(tmp_path, four, CAMPAIGN.replace("repeat: {min: 2, max: 2}", ""))
    running.await_records(3)
    assert settings_of(four) != before
    running.process.send_signal(signal.SIGINT)
    code, said = running.end()
    assert code == 130, said
    assert settings_of(four) == before
