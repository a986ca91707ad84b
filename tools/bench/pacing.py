"""How late the client of an open loop is, beside a loop that only looks at the clock."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from netbench.run.job import Options
from netbench.stats.histogram import Histogram
from tests.support.engine_pair import Pair, open_pair
from tools.bench import hand_loops
from tools.bench.table import Part, Row

TURNS, WINDOW_MS, MORE_US = 300, 200, 20
LOADS = ((100_000, "spin"), (20_000, "epoll"))
HOW = (
    f"Requests of 1 byte over 4 connections, the client on CPU 0 and spinning, the server on CPU 1,"
    f" {TURNS} turns of {WINDOW_MS} ms, each beside the loop on CPU 0; p99 of the lateness, in"
    " µs, and the median over turns. Where the server spins another such loop does on CPU 1: what"
    " else the machine has to do has no CPU of its own in either."
)


def late(pair: Pair, rate: int, server: str) -> float:
    """The p99 of a run's lateness, in µs. Errors: NetbenchError."""
    times = {"warmup": 10**8, "duration": WINDOW_MS * 10**6}
    asks: Options = {"cpu": 0, "request_rate": rate, "wait": "spin"}
    answers: Options = {"cpu": 1, "wait": server}
    common: dict[str, Any] = {"streams": 4, "threads": 1, "congestion": "cubic", **times}
    client, _ = pair.run("request", "request", asks, answers, **common)
    return (Histogram.of(client.numbers("", "lateness")).quantile(0.99) or 0.0) / 1e3


def bare(program: Path, rate: int, server: str) -> float:
    def pace(cpu: int, ms: int) -> subprocess.Popen[bytes]:
        words = ("taskset", "-c", str(cpu), str(program), "pace", str(rate), str(ms))
        return subprocess.Popen(words, stdout=subprocess.PIPE)

    others = [pace(1, 2 * WINDOW_MS)] if server == "spin" else []
    with pace(0, WINDOW_MS) as process:
        told, _ = process.communicate()
    for each in others:
        with each:
            each.kill()
    return int(told) / 1e3


def measure() -> Part:
    """A row each load. Errors: NetbenchError, CalledProcessError."""
    rows = []
    with tempfile.TemporaryDirectory() as folder, open_pair() as pair:
        program = hand_loops.build(Path(folder))
        for rate, server in LOADS:
            turns = [(late(pair, rate, server), bare(program, rate, server)) for _ in range(TURNS)]
            ours, peer = (median(each) for each in zip(*turns, strict=True))
            more = median(one - other for one, other in turns)
            rows.append(
                Row(
                    f"lateness p99, {rate:,}/s, server: {server}",
                    f"{ours:.2f} µs",
                    f"{peer:.2f} µs",
                    f"{more:+.2f} µs",
                    f"at most {MORE_US} µs more",
                    more <= MORE_US,
                )
            )
    return Part("Open loops beside a bare pacer", HOW, tuple(rows))
