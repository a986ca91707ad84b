"""Streams of a side: a thread each, or one thread for all where they are pinned to one CPU."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_pair import MS, Pair, open_pair

from netbench.errors import EngineError

STREAMS = 4
CPU = min(os.sched_getaffinity(0))
PINS = pytest.mark.parametrize("pin", [{}, {"cpu": CPU}], ids=["unpinned", "pinned"])


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with open_pair() as opened:
        yield opened


def threads(pid: int) -> list[set[int]]:
    """The CPUs that each thread of a process may use."""
    return [os.sched_getaffinity(int(task.name)) for task in Path(f"/proc/{pid}/task").iterdir()]


@PINS
def test_pinned_streams_share_a_thread_and_all_move(pair: Pair, pin: dict[str, int]) -> None:
    pair.prepare("write", "read", streams=STREAMS, duration=60 * MS, warmup=10 * MS, bytes=0, **pin)
    flows = [len(threads(worker.hello.pid)) - 1 for worker in (pair.sender, pair.receiver)]
    assert flows == ([1, 1] if pin else [STREAMS, STREAMS])
    if pin:
        assert threads(pair.sender.hello.pid).count({CPU}) == 1
    pair.start(bounded=False)
    sent, received = pair.finish(bounded=False)
    windows = zip(received.numbers("flow", "bytes", 0), received.numbers("flow", "bytes", 1), strict=True)
    assert all(close > opened for opened, close in windows), "every stream moved within the window"
    assert sent.numbers("flow", "bytes") == received.numbers("flow", "bytes"), "and all of it arrived"


@PINS
def test_one_broken_stream_ends_the_run(pair: Pair, pin: dict[str, int]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ports = {"port_low": port, "port_high": port}
    pair.prepare("write", "read", {}, ports, streams=STREAMS, duration=20_000 * MS, bytes=0, **pin)
    pair.start(bounded=False)
    states = subprocess.run(["ss", "-Htn", "dport", "=", str(port)], check=True, capture_output=True, text=True).stdout
    one = states.splitlines()[0].split()[3].rsplit(":", 1)[1]
    subprocess.run(["ss", "-K", "sport", "=", one, "dport", "=", str(port)], check=True, capture_output=True)
    with pytest.raises(EngineError, match="other side"):
        pair.sender.result(20)
    for worker in (pair.sender, pair.receiver):
        worker.abort()
    assert pair.run("write", "read", bytes=1_000_000, streams=STREAMS, **pin)[1].moved("flow", "bytes") == 1_000_000
