"""A transfer by the engine: the jobs of both workers, the run, and what it measured."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from netbench.base.errors import ProtocolError, RequestError
from netbench.engine.binding import SAME, Vector
from netbench.engine.worker import Outcome, Worker
from netbench.model import Transfer
from netbench.result.record import Proof, SettingNote, Settings
from netbench.run import job, readings
from netbench.run.ends import End, Ends, Measurement, side_counters
from netbench.run.exchange import Watch, exchange, give_up
from netbench.run.job import MadeSinks
from netbench.settings import nfs

NOTES = (
    "resident",
    "source_size",
    "resident_after",
    "fsync_ns",
)  # read-backs that a record keeps beside the counters
AROUND = ("sink_resident", "sink_dirty")  # those of before and after
COUNTS = ("rejected_connections", "samples_lost")  # and those that it keeps where there were any
DISTRUST = "leave the method out here, and report it to the maintainers of this kernel and driver"


def measure(
    transfer: Transfer,
    ends: Ends,
    sinks: MadeSinks,
    watch: Watch | None = None,
    report: int = 0,
    start: Callable[[], None] = lambda: None,
) -> Measurement:
    """Move data once. `watch`: what else is done then; `report`: how often, in ns, the workers send
    samples meanwhile, 0: after it; `start` returns when data may move. Errors: EngineError;
    TimeoutError; Lost.
    """
    asked = _asked(transfer, ends, sinks, {"report": report} if report else {})
    done = exchange(*asked, watch=watch, start=start)
    sides = ((ends.sender, done.sender), (ends.receiver, done.receiver))
    sender, receiver = (_readbacks(*side) for side in sides)
    counters = (
        side_counters(ends.sender, done.sender.result, **_notes(transfer, sender)),
        side_counters(
            ends.receiver,
            done.receiver.result,
            **_notes(transfer, receiver),
            **readings.around(done.receiver.result, ends.receiver.worker.catalogue, AROUND),
        ),
    )
    for side in counters:
        if side.time_ns is None or "flow" not in side.meters:
            raise ProtocolError(f"{side.host}: the worker's result has no window{SAME}")
    return Measurement(
        *counters,
        Settings(
            _socket_settings({"send_buffer": transfer.send_buffer}, transfer, sender),
            _socket_settings({"receive_buffer": transfer.receive_buffer}, transfer, receiver),
            {},
        ),
        Proof(*(readings.proofs(one.result, end.worker.catalogue) for end, one in sides)),
        [line for side in sides for line in _lines(*side)],
    )


def claim_sink(cell: Transfer, receiver: End, sinks: MadeSinks) -> None:
    """Make the file of a sink, or see that this campaign may write it, for a program that will.
    Errors: EngineError where it may not; Lost.
    """
    worker = receiver.worker
    options = job.receiver_options(cell, os.urandom(16), (), (), sinks.on(worker))
    try:
        ready = worker.prepare(options | {"address": receiver.address})
        read = readings.readbacks(ready, worker.catalogue)
        sinks.add(worker, job.sink_paths(cell), read.get("sink_device"), read.get("sink_inode"))
    finally:
        give_up(worker)


def verify(transfer: Transfer, ends: Ends, sinks: MadeSinks) -> str:
    """Show that what arrives is what was sent. What is wrong, or "" (also where nothing is
    delivered).

    Errors: as measure.
    """
    send = ends.sender.worker.catalogue.send[transfer.send]
    receive = ends.receiver.worker.catalogue.receive[transfer.receive]
    fetches = send.has("fetches") and receive.has("fetches")
    if not fetches and not (send.has("delivers") and receive.has("delivers")):
        return ""
    size = max(job.VERIFY_BYTES, transfer.streams * (2 * transfer.chunk + 1))
    bounds: dict[str, Any] = (
        {"duration": job.FETCH_NS} if fetches else {"bytes": size, "duration": None}
    )
    # Paced verification would only take longer: the bytes are the same.
    short = replace(transfer, **bounds, warmup=0, sample=0, rate=None)
    done = exchange(*_asked(short, ends, sinks, {"verify": 1}))
    sent = _readbacks(ends.sender, done.sender).get("digest")
    arrived = _readbacks(ends.receiver, done.receiver).get("digest")
    if sent is None or sent != arrived:
        return (
            f"verify: what arrived is not what was sent: digests {sent} and {arrived} over"
            f" {size} bytes; {DISTRUST}"
        )
    return ""


def _asked(
    transfer: Transfer, ends: Ends, sinks: MadeSinks, more: job.Options
) -> tuple[Worker, Worker, job.Options, job.Options, Callable[[tuple[Vector, ...]], None]]:
    """What `exchange` is to do: both jobs, with `more` options. Files of the sink are journalled as
    soon as the receiver has made them, whatever becomes of the run.
    """
    sender, receiver = ends
    near, far = sender.worker, receiver.worker
    sending, receiving = near.catalogue.send[transfer.send], far.catalogue.receive[transfer.receive]
    for side, method in (("send", sending), ("receive", receiving)):
        if method.row.why:
            raise RequestError(f"{side}: {method.name} cannot run here: {method.row.why}")
    token = os.urandom(16)
    declared = [[row.name for row in method.options] for method in (sending, receiving)]
    send = job.sender_options(transfer, token, sender.cpus, declared[0])
    receive = job.receiver_options(transfer, token, receiver.cpus, declared[1], sinks.on(far))
    if receiving.has("fetches"):
        path = nfs.path(sender.address, transfer.source.path)
        receive |= {"source": "file", "source_path": path}
    if sender.host.address:
        send["local_address"] = receive["peer_address"] = sender.address

    def journal_sinks(ready: tuple[Vector, ...]) -> None:
        read = readings.readbacks(ready, far.catalogue)
        made = read.get("sink_device"), read.get("sink_inode")
        sinks.add(far, job.sink_paths(transfer), *made)

    both: job.Options = {"address": receiver.address, **more}
    return (
        near,
        far,
        send | both | sender.metering,
        receive | both | receiver.metering,
        journal_sinks,
    )


def _readbacks(end: End, outcome: Outcome) -> dict[str, Any]:
    return readings.readbacks(outcome.result, end.worker.catalogue)


def _notes(transfer: Transfer, read: Mapping[str, Any]) -> dict[str, Any]:
    notes = {name: read[name] for name in NOTES if read.get(name) is not None}
    notes |= {name: read[name] for name in COUNTS if read.get(name)}
    return notes | ({"cache": transfer.cache} if "resident" in notes else {})


def _socket_settings(
    buffer: Mapping[str, int | None], transfer: Transfer, read: Mapping[str, Any]
) -> dict[str, SettingNote]:
    """What was asked of one side's sockets, and what they read, where the kernel has a say."""
    asked = {**buffer, "congestion": transfer.congestion}
    return {name: SettingNote(value, read[name]) for name, value in asked.items() if name in read}


def _lines(end: End, outcome: Outcome) -> list[Mapping[str, Any]]:
    """One side's lines of samples/."""
    catalogue = end.worker.catalogue
    return [
        *readings.edge_lines(end.side, outcome.result, catalogue),
        *readings.sample_lines(end.side, outcome.samples, catalogue),
    ]


REPORT_NS = 10**9


@dataclass(frozen=True)
class Second:
    """About a second of a run: `begin` and `end` in seconds since its window opened, `bytes` that
    were sent, `retransmits` of its streams (None where the kernel does not say).
    """

    run: int
    begin: float
    end: float
    bytes: int
    retransmits: int | None


Told = Callable[[Second], None]


@contextmanager
def told(sender: End, run: int, sample: int, tell: Told) -> Iterator[None]:
    """Tell each second of a run whose sender takes samples every `sample` ns, which is when its
    window opened before the first.
    """
    catalogue = sender.worker.catalogue
    opened = 0
    before: tuple[int, int, int | None] = 0, 0, None  # time, bytes, retransmits

    def total(line: readings.Line, meter: str, counter: str) -> int | None:
        values = line.get(meter, {}).get(counter)
        return sum(values) if values else None

    def take(vectors: Sequence[Vector]) -> None:
        nonlocal opened, before
        samples = [
            (line["ns"], sent, total(line, "tcp", "retransmits"))
            for line in readings.sample_lines("", vectors, catalogue)
            if (sent := total(line, "flow", "bytes")) is not None
        ]
        if samples and not opened:
            before, opened = samples[0], samples[0][0] - sample
        if samples and samples[-1] != before:
            (begin, first, old), (end, last, new) = before, samples[-1]
            again = None if old is None or new is None else new - old
            tell(Second(run, (begin - opened) / 1e9, (end - opened) / 1e9, last - first, again))
            before = samples[-1]

    sender.worker.sampled = take
    try:
        yield
    finally:
        sender.worker.sampled = None
