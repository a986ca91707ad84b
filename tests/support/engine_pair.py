"""Two workers on this machine and the choreography of one run, for the tests of the engine."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from netbench.engine.binding import Edge, Vector
from netbench.engine.catalogue import Catalogue
from netbench.engine.frames import Value
from netbench.engine.heartbeat import Heartbeat
from netbench.engine.worker import Worker
from netbench.hosts.local import LocalChannel
from tests.support.paths import ROOT

WORKER = (str(ROOT / "netbench" / "engine" / f"worker-{platform.machine()}"),)
MOVER, HELPER = (*WORKER, "mover"), (*WORKER, "helper")
PATIENCE = 60.0  # seconds; no run here comes near it, only a failure waits for it
MS = 1_000_000
ADDRESS = "127.0.0.1"
Options = Mapping[str, Value]
NONE: Options = MappingProxyType({})


@dataclass(frozen=True)
class Side:
    """What one worker counted, by (owner, name, edge)."""

    vectors: Mapping[tuple[str, str, int], Vector]
    samples: tuple[Vector, ...] = ()

    @staticmethod
    def of(catalogue: Catalogue, vectors: Sequence[Vector], samples: Sequence[Vector] = ()) -> Side:
        rows = catalogue.rows
        return Side(
            {(rows[v.row].owner, rows[v.row].name, v.edge): v for v in vectors}, tuple(samples)
        )

    def numbers(self, owner: str, name: str, edge: int = Edge.DRAINED) -> list[int]:
        return [n for n in self.vectors[owner, name, edge].numbers if n is not None]

    def total(self, owner: str, name: str, edge: int = Edge.DRAINED) -> int:
        return sum(self.numbers(owner, name, edge))

    def moved(self, owner: str, name: str, last: int = Edge.CLOSE) -> int:
        """How far a counter went from the opening edge to another one, over all its items."""
        return self.total(owner, name, last) - self.total(owner, name, Edge.OPEN)

    def ns(self, edge: int) -> int:
        return self.vectors["flow", "steps", edge].ns


@dataclass
class Pair:
    """A sender and a receiver. `between` is called with the pair where nothing moves."""

    sender: Worker
    receiver: Worker
    between: Callable[[Pair], None] | None = None
    port: int = 0
    ready: list[Side] = field(default_factory=list)

    def prepare(
        self,
        send: str,
        receive: str,
        to_sender: Options = NONE,
        to_receiver: Options = NONE,
        **common: Any,
    ) -> None:
        own = {"token": os.urandom(16), "streams": 1, "address": ADDRESS}
        common = {**own, "meters": "rusage\0procstat", **common}
        got = self.receiver.prepare(
            {**common, "role": "receive", "method": receive, "receive_chunk": 65536, **to_receiver}
        )
        ready = Side.of(self.receiver.catalogue, got)
        self.port = ready.total("", "port", 0)
        job = {"role": "send", "method": send, "chunk": 65536, "peer_port": self.port}
        options = {**common, **job, **to_sender}
        self.ready = [Side.of(self.sender.catalogue, self.sender.prepare(options)), ready]

    def start(self, bounded: bool) -> None:
        self.receiver.go()
        self.sender.go()
        if not bounded:
            return
        self.receiver.mark(self.sender.await_edge(Edge.WARM, PATIENCE))
        self.receiver.await_edge(Edge.OPEN, PATIENCE)
        if self.between:
            self.between(self)
        self.sender.mark()

    def finish(self, bounded: bool) -> tuple[Side, Side]:
        if not bounded:
            for worker in (self.sender, self.receiver):
                worker.await_edge(Edge.CLOSE, PATIENCE)
            for worker in (self.sender, self.receiver):
                worker.stop()
        sent, received = self.sender.result(PATIENCE), self.receiver.result(PATIENCE)
        return (
            Side.of(self.sender.catalogue, sent.result, sent.samples),
            Side.of(self.receiver.catalogue, received.result, received.samples),
        )

    def run(
        self,
        send: str,
        receive: str,
        to_sender: Options = NONE,
        to_receiver: Options = NONE,
        **common: Any,
    ) -> tuple[Side, Side]:
        """One whole run, by `bytes` or else `duration` (ns): what both sides counted."""
        self.prepare(send, receive, to_sender, to_receiver, **common)
        self.start("bytes" in common)
        return self.finish("bytes" in common)


@contextlib.contextmanager
def open_pair(sender: Sequence[str] = WORKER, receiver: Sequence[str] = WORKER) -> Iterator[Pair]:
    """Two fresh workers, stopped at the end. They hear heartbeats: a run may be slow."""
    with contextlib.ExitStack() as stack:
        heartbeat = Heartbeat()
        stack.callback(heartbeat.stop)
        workers = []
        for name, argv in (("sender", sender), ("receiver", receiver)):
            channel = LocalChannel(name, argv)
            workers.append(Worker(channel.start_mover(), name))
            stack.callback(workers[-1].close)
            heartbeat.add(workers[-1])
            stack.callback(heartbeat.remove, workers[-1])
        yield Pair(workers[0], workers[1])


def mover(*before: str) -> contextlib.closing[Worker]:
    """A worker that moves data, started by these words and its own."""
    return contextlib.closing(
        Worker(LocalChannel("here", [*before, *WORKER]).start_mover(), "here")
    )


def helper(*before: str) -> contextlib.closing[Worker]:
    """One that changes this machine."""
    return contextlib.closing(
        Worker(LocalChannel("here", [*before, *WORKER]).start_helper(), "here")
    )


def observe(worker: Worker, meters: str, **more: int | str) -> Side:
    """What meters count in a window of 20 ms, or of another `duration`."""
    job: Options = {"role": "observe", "meters": meters, "duration": 20 * MS, "sample": 0}
    worker.prepare({**job, **more})
    return observed(worker)


def observed(worker: Worker) -> Side:
    """The same of a worker that is prepared."""
    worker.go()
    worker.await_edge(Edge.CLOSE, PATIENCE)
    worker.stop()
    return Side.of(worker.catalogue, worker.result(PATIENCE).result)


def scheduled_ns(pid: int) -> int:
    """Time on a CPU of all threads of a process, by /proc/PID/task/*/schedstat."""
    return sum(
        int((task / "schedstat").read_text().split()[0])
        for task in Path(f"/proc/{pid}/task").iterdir()
    )


def data_methods(catalogue: Catalogue, kind: str) -> list[str]:
    """Names of the send or receive methods that move data and can run here."""
    table = catalogue.send if kind == "send" else catalogue.receive
    lacks = ("no_data", "fetches", "requests")
    return [name for name, m in table.items() if not any(map(m.has, lacks)) and not m.row.why]


def shared(catalogue: Catalogue, send: str = "write") -> Options:
    """The options of streams that share one thread of each side, as far as a sender's method can."""
    threads = {} if catalogue.send[send].has("alone") else {"threads": 1}
    return {"cpu": min(os.sched_getaffinity(0)), **threads}


def covering(catalogue: Catalogue) -> list[tuple[str, str]]:
    """Pairs in which every method that moves data and can run here comes at least once."""
    out, into = data_methods(catalogue, "send"), data_methods(catalogue, "receive")
    return [(out[i % len(out)], into[i % len(into)]) for i in range(max(len(out), len(into)))]
