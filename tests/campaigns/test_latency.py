"""Latency of requests through a whole campaign, where it is known what it has to be."""

from __future__ import annotations

from pathlib import Path

import pytest

from netbench import load
from tests.support.local import call

HEADERS = 14 + 20 + 32  # of Ethernet, IPv4, and TCP with timestamps
REQUEST = 1250 - HEADERS
QUEUE = f"""\
netbench: 1
name: queue
lab: {{kind: netns, rate: 10Mb/s}}
transfer: {{request: {REQUEST}, response: 1, duration: 300ms, warmup: 300ms, congestion: reno}}
settings: {{qdisc: pfifo}}
sweep: {{connections: [1, 11]}}
repeat: {{min: 2, max: 2}}
"""


@pytest.mark.root
@pytest.mark.netns
def test_a_queue_of_ten_milliseconds_moves_the_median_by_as_much(tmp_path: Path) -> None:
    """At 10 Mb/s (a token bucket) a request of 1,250 bytes takes 1 ms: of ten others that wait
    before it, 10 ms.
    """
    (tmp_path / "queue.yaml").write_text(QUEUE)
    done = call("run", tmp_path / "queue.yaml", "--results", tmp_path)
    assert done.returncode == 0, done.stderr
    runs = load(done.stdout.splitlines()[-1]).runs
    one, eleven = (runs[runs["connections"] == n]["p50"].median() for n in ("1", "11"))
    assert eleven - one == pytest.approx(10_000, rel=0.02)
    assert one == pytest.approx(1000, rel=0.05)
