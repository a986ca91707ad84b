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
    """At 10 Mb/s (a token bucket) a request of 1,250 bytes takes 1 ms: ten that wait 10 ms."""
    (tmp_path / "queue.yaml").write_text(QUEUE)
    done = call("run", tmp_path / "queue.yaml", "--results", tmp_path)
    assert done.returncode == 0, done.stderr
    runs = load(done.stdout.splitlines()[-1]).runs
    one, eleven = (runs[runs["connections"] == n]["p50"].median() for n in ("1", "11"))
    assert eleven - one == pytest.approx(10_000, rel=0.02)
    assert one == pytest.approx(1000, rel=0.05)


def test_where_packets_of_a_connection_come_in_is_read(tmp_path: Path) -> None:
    """Over lo the CPU that sends a packet also takes it in, and no queue of a device brings it."""
    words = ["request=1", "duration=200ms", "warmup=10ms", "sample=50ms"]
    done = call("transfer", *words, "pin={sender: 1, receiver: 0}", "--results", tmp_path)
    assert done.returncode == 0, done.stderr
    samples = load(done.stderr.splitlines()[-1]).samples
    for side, cpu in (("receiver", 1), ("sender", 0)):
        mine = samples[samples["side"] == side]
        assert set(mine["tcp.incoming_cpu"]) == {cpu}
        assert set(mine["tcp.napi_id"]) == {0}
    answered = samples[samples["side"] == "sender"]["flow.answered"]
    assert answered.is_monotonic_increasing
    assert answered.iloc[-1] > answered.iloc[0] > 0
