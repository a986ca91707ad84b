"""Two workers of the engine on this machine, and the numbers that they answer with."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from netbench.engine.binding import Edge
from netbench.engine.build_native import worker_name
from netbench.engine.heartbeat import Heartbeat
from netbench.engine.worker import Outcome, Worker
from netbench.hosts.local import LocalChannel
from netbench.run.job import Options

WORKER = Path(__file__).resolve().parents[2] / "netbench" / "engine" / worker_name()
MOVER = (str(WORKER), "mover")


@dataclass(frozen=True)
class Pair:
    """A worker to send and one to receive."""

    sender: Worker
    receiver: Worker


@contextlib.contextmanager
def open_pair(sender: Sequence[str] = MOVER, receiver: Sequence[str] = MOVER) -> Iterator[Pair]:
    """Start both by these command lines. Both have exited when the context has."""
    with contextlib.ExitStack() as stack:
        heartbeat = Heartbeat()
        stack.callback(heartbeat.stop)
        made = []
        for role, argv in (("send", sender), ("receive", receiver)):
            worker = Worker(LocalChannel(role).start(argv), role)
            stack.callback(worker.close)
            heartbeat.add(worker)
            stack.callback(heartbeat.remove, worker)
            made.append(worker)
        yield Pair(*made)


def common_options() -> Options:
    """What the jobs of both sides say: a token of their own, one stream over loopback, no meter."""
    return {"token": os.urandom(16), "streams": 1, "address": "127.0.0.1", "meters": ""}


def total(worker: Worker, outcome: Outcome, name: str, edge: Edge = Edge.DRAINED) -> int:
    """A counter of a run at one of its edges, over all streams; 0 where there is none."""
    rows = worker.catalogue.rows
    found = [v for v in outcome.result if rows[v.row].name == name and v.edge == edge]
    return sum(number or 0 for vector in found for number in vector.numbers)
