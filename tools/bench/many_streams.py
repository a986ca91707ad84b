"""How long it takes to set up 1,024 streams, from the first request to the moment at which both
windows are open.
"""

from __future__ import annotations

import time

from netbench.run.exchange import Watch, exchange
from netbench.run.job import Options
from tools.bench import engine_pair
from tools.bench.table import Part, Row

STREAMS = 1024
BUDGET = 2.0  # seconds
WAYS = (("write", 0), ("uring", 0), ("splice", 0), ("write", 2), ("uring", 2), ("splice", 2))
HOW = (
    "Two workers on this machine, to read over loopback, chunks of 64K, no warm-up, {repeats} runs"
    " of 100 ms each: from the first request (the receiver is to prepare) until both have opened"
    " their windows, so with all connections, buffers, pipes, rings and threads. Shown are the"
    " median and the longest; the budget is the longest's."
)


def measure(streams: int = STREAMS, repeats: int = 5) -> Part:
    """A row a method, with a thread a stream and with two threads a side."""
    with engine_pair.open_pair() as pair:
        rows = [_row(pair, send, threads, streams, repeats) for send, threads in WAYS]
    return Part("Many streams", HOW.format(repeats=repeats), tuple(rows))


def _row(pair: engine_pair.Pair, send: str, threads: int, streams: int, repeats: int) -> Row:
    times = sorted(_seconds(pair, send, threads, streams) for _ in range(repeats))
    return Row(
        f"{send}: {streams} streams, {f'{threads} threads a side' if threads else 'a thread each'}",
        f"{times[len(times) // 2]:.2f} s",
        "",
        f"longest {times[-1]:.2f} s, n = {repeats}",
        f"at most {BUDGET:g} s",
        times[-1] <= BUDGET,
    )


def _seconds(pair: engine_pair.Pair, send: str, threads: int, streams: int) -> float:
    """Of one run. Errors: NetbenchError."""
    opened: list[float] = []
    common: Options = engine_pair.common_options() | {
        "streams": streams,
        "duration": 10**8,
        "sample": 0,
        "congestion": "cubic",
    }
    if threads:
        common["threads"] = threads
    begun = time.monotonic()
    exchange(
        pair.sender,
        pair.receiver,
        common | {"role": "send", "method": send, "chunk": 65536, "source": "memory"},
        common | {"role": "receive", "method": "read", "receive_chunk": 65536},
        watch=Watch(begin=lambda: opened.append(time.monotonic())),
    )
    return opened[0] - begun
