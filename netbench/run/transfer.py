"""A transfer by the engine: the jobs of both workers, their messages, what they measured."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, NamedTuple

from netbench.base.errors import EngineError, NetbenchError, ProtocolError, RequestError, WorkerLost
from netbench.engine.binding import SAME, Code, Edge, Vector
from netbench.engine.frames import number_of
from netbench.engine.worker import IDLE_SECONDS, Outcome, Worker
from netbench.model import Transfer
from netbench.result.record import Proof, SettingNote, Settings
from netbench.run import job, readings, requests
from netbench.run.ends import End, Ends, Measurement, side_counters
from netbench.run.job import MadeSinks
from netbench.settings import nfs

# Read-backs that a record keeps beside the counters
NOTES = ("resident", "source_size", "resident_after", "fsync_ns", "sink_resident", "sink_dirty")
COUNTS = ("rejected_connections", "samples_lost")  # and those that it keeps where there were any
SLACK_SECONDS = 30.0  # beyond the times that were asked for: connecting, draining
# A bytes-bounded run has no known length; heartbeats tell whether the workers live.
UNBOUNDED_SECONDS = 6 * 3600.0
# A verification has: what is slower than so many bytes a second does not arrive.
VERIFY_SECONDS, SLOWEST = 60.0, 125_000
FSYNC_SECONDS = 600.0  # that a sink may take to reach its disk
LAST_WORD_SECONDS = 1.0  # after one side has failed, for the other to say why
DISTRUST = "leave the method out here, and report it to the maintainers of this kernel and driver"
Watch = AbstractContextManager[object]
"""What is done while data moves: from when both windows are open until both have closed."""


def measure(
    transfer: Transfer,
    ends: Ends,
    sinks: MadeSinks,
    watch: Watch | None = None,
    report: int = 0,
    start: Callable[[], None] = lambda: None,
) -> Measurement:
    """Move data once. `watch`: what else is done then; `report`: how often, in ns, the sender sends
    samples meanwhile, 0: after it; `start` returns when data may move. Errors: EngineError;
    TimeoutError; Lost.
    """
    more: job.Options = {"report": report} if report else {}
    done = _move(transfer, ends, sinks, more, watch, start)
    read = [_readbacks(*side) for side in zip(ends, done, strict=True)]
    counters = (
        side_counters(ends.sender, done[0].result, **_notes(transfer, read[0])),
        side_counters(ends.receiver, done[1].result, **_notes(transfer, read[1])),
    )
    for side in counters:
        if side.time_ns is None or "flow" not in side.meters:
            raise ProtocolError(f"{side.host}: the worker's result has no window{SAME}")
    proof = Proof(
        *(
            readings.proofs(outcome.result, end.worker.catalogue)
            for end, outcome in zip(ends, done, strict=True)
        )
    )
    requests.check_counts(transfer, proof)
    rows = ends.sender.worker.catalogue.rows
    seconds = [each for each in done[0].result if rows[each.row].name == "latency_second"]
    captures, histograms = requests.measured(transfer, read[0], counters[0], proof.sender, seconds)
    return Measurement(
        *counters,
        Settings(
            _socket_settings({"send_buffer": transfer.send_buffer}, transfer, read[0]),
            _socket_settings({"receive_buffer": transfer.receive_buffer}, transfer, read[1]),
            {},
        ),
        proof,
        [*(line for side in zip(ends, done, strict=True) for line in _lines(*side)), *histograms],
        captures=captures,
    )


def claim_sink(cell: Transfer, receiver: End, sinks: MadeSinks) -> None:
    """Make the file of a sink, or see that this campaign may write it, for a program that will.
    Errors: EngineError where it may not; Lost.
    """
    worker = receiver.worker
    options = job.receiver_options(cell, os.urandom(16), (), worker, sinks.on(worker))
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
    if send.has("requests"):
        return _verify_requests(transfer, ends, sinks)
    if not fetches and not (send.has("delivers") and receive.has("delivers")):
        return ""
    size = max(job.VERIFY_BYTES, transfer.streams * (2 * transfer.chunk + 1))
    bounds: dict[str, Any] = (
        {"duration": job.FETCH_NS} if fetches else {"bytes": size, "duration": None}
    )
    # Paced verification would only take longer: the bytes are the same.
    short = transfer._replace(**bounds, warmup=0, sample=0, rate=None)
    done = _move(short, ends, sinks, {"verify": 1})
    sent, arrived = (_readbacks(*side).get("digest") for side in zip(ends, done, strict=True))
    if sent is None or sent != arrived:
        return (
            f"verify: what arrived is not what was sent: digests {sent} and {arrived} over"
            f" {size} bytes; {DISTRUST}"
        )
    return ""


def _verify_requests(transfer: Transfer, ends: Ends, sinks: MadeSinks) -> str:
    """The same of requests: both ends look at each byte."""
    options = {name: v for name, v in transfer.options.items() if name != "request_rate"}
    bounds: dict[str, Any] = {"duration": 2 * job.FETCH_NS, "bytes": None}
    short = transfer._replace(**bounds, warmup=0, sample=0, options=options)
    try:
        _move(short, ends, sinks, {"verify": 1})
    except EngineError as error:
        if error.operation != "verify":
            raise
        return f"verify: {error.message}; {DISTRUST}"
    return ""


def _move(
    transfer: Transfer,
    ends: Ends,
    sinks: MadeSinks,
    more: job.Options,
    watch: Watch | None = None,
    start: Callable[[], None] = lambda: None,
) -> tuple[Outcome, Outcome]:
    """What both ends answer to their jobs, with `more` options. Files of the sink are journalled as
    soon as the receiver has made them, whatever becomes of the run.
    """
    sender, receiver = ends
    near, far = sender.worker, receiver.worker
    sending, receiving = near.catalogue.send[transfer.send], far.catalogue.receive[transfer.receive]
    for side, method in (("send", sending), ("receive", receiving)):
        if method.row.why:
            raise RequestError(f"{side}: {method.name} cannot run here: {method.row.why}")
    token = os.urandom(16)
    send = job.sender_options(transfer, token, sender.cpus, near)
    receive = job.receiver_options(transfer, token, receiver.cpus, far, sinks.on(far))
    if receiving.has("fetches"):
        path = nfs.path(sender.address, transfer.source.path)
        receive |= {"source": "file", "source_path": path}
    if sender.host.address:
        send["local_address"] = receive["peer_address"] = sender.address

    def journal_sinks(ready: tuple[Vector, ...]) -> None:
        read = readings.readbacks(ready, far.catalogue)
        place = read.get("sink_device"), read.get("sink_inode")
        sinks.add(far, job.sink_paths(transfer), *place)

    both: job.Options = {"address": receiver.address, **more}
    send, receive = send | both | sender.metering, receive | both | receiver.metering
    receive["report"] = 0  # nobody reads what it says before the window is closed
    return exchange(near, far, send, receive, journal_sinks, watch, start)


def exchange(
    sender: Worker,
    receiver: Worker,
    send: job.Options,
    receive: job.Options,
    prepared: Callable[[tuple[Vector, ...]], None] = lambda _: None,
    watch: Watch | None = None,
    start: Callable[[], None] = lambda: None,
) -> tuple[Outcome, Outcome]:
    """Prepare, run and finish one transfer; both sides' results. Both are idle afterwards, whatever
    happens. `prepared`: the receiver is ready, with these read-backs. `watch`: of a run that is
    bounded by time. `start` returns when data may move.

    Errors: EngineError of the side that failed first; WorkerLost; TimeoutError.
    """
    both = sender, receiver
    with idle_after_errors(*both):
        ready = receiver.prepare(receive)
        port = readings.readbacks(ready, receiver.catalogue).get("port")
        if not isinstance(port, int):
            raise ProtocolError(f"{receiver.host}: the worker named no data port{SAME}")
        prepared(ready)
        sender.prepare(send | {"peer_port": port})
        start()
        receiver.go()
        sender.go()
        if send.get("bytes"):
            slack = UNBOUNDED_SECONDS
            if send.get("verify"):
                slack = VERIFY_SECONDS + number_of(send, "bytes") / SLOWEST
            receiver.mark(sender.await_edge(Edge.WARM, slack))
            receiver.await_edge(Edge.OPEN, slack)
            sender.mark()
        else:
            slack = SLACK_SECONDS + (FSYNC_SECONDS if receive.get("fsync", "none") != "none" else 0)
            seconds = (number_of(send, "warmup") + number_of(send, "duration")) / 1e9 + slack
            for worker in both if watch else ():
                worker.await_edge(Edge.OPEN, seconds)
            with watch or nullcontext():
                for worker in both:
                    worker.await_edge(Edge.CLOSE, seconds)
            for worker in both:
                worker.stop()
        return sender.result(slack), receiver.result(slack)


@contextmanager
def idle_after_errors(sender: Worker, receiver: Worker) -> Iterator[None]:
    """While one of two workers is waited for, it is seen that the other lives too: one that was
    stopped keeps the other waiting. Both give up what they do when an error ends it. Errors: of two
    EngineErrors the one that explains the other; WorkerLost where a silent worker explains it.
    """
    sender.beside, receiver.beside = receiver, sender
    try:
        yield
    except EngineError as error:
        sender.beside = receiver.beside = None
        raise _cause(error, sender, receiver) from error
    except BaseException:
        sender.beside = receiver.beside = None
        give_up(sender, receiver)
        raise
    finally:
        sender.beside = receiver.beside = None


def give_up(*workers: Worker) -> list[Worker]:
    """Make workers idle, those that are still there. One that stays busy is abandoned: it undoes
    its changes when it sees that, and whoever needs it next finds it lost. Those of them that gave
    no sign of life meanwhile: they were stopped, or cut off.
    """
    silent = []
    for worker in workers:
        with suppress(WorkerLost):
            worker.abort()
    for worker in workers:
        if worker.lost:
            continue
        try:
            worker.await_idle()
        except TimeoutError:
            if worker.connection.unheard >= IDLE_SECONDS:
                silent.append(worker)
            worker.abandon()
        except NetbenchError:
            continue
    return silent


def _cause(error: EngineError, sender: Worker, receiver: Worker) -> NetbenchError:
    """What explains the errors of both: a connection that went away is a consequence, of the other
    side's error or of its silence.
    """
    errors = [error]
    for worker in (sender, receiver):
        if error.code == Code.PEER:
            other = worker.last_word(LAST_WORD_SECONDS)
            errors += [other] if other is not None else []
    silent = give_up(sender, receiver)
    causes = [e for e in errors if e.code not in (Code.PEER, Code.ABORTED)]
    if silent and not causes:
        return WorkerLost(f"{silent[0].host}: the worker does not answer; {errors[0]}")
    return (causes or errors)[0]


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


COUNTED = ("flow", "bytes"), ("flow", "answered"), ("tcp", "retransmits")


class Second(NamedTuple):
    """About a second of a run: `begin` and `end` in seconds since its window opened, `bytes` that
    were sent (None of requests), `requests` that were answered (None of bulk), `retransmits` of the
    streams (None where the kernel does not say, or each request has a connection).
    """

    run: int
    begin: float
    end: float
    bytes: int | None
    requests: int | None
    retransmits: int | None


Told = Callable[[Second], None]


@contextmanager
def told(sender: End, run: int, cell: Transfer, tell: Told) -> Iterator[None]:
    """Tell each second of a run whose sender takes samples, the first when its window has been open
    for the time between two of them.
    """
    catalogue = sender.worker.catalogue
    before: tuple[int, Sequence[int | None]] | None = None
    opened = 0

    def count(line: readings.Line, meter: str, counter: str) -> int | None:
        values = line.get(meter, {}).get(counter)
        if values is None or (meter, cell.send) == ("tcp", "connect"):
            return None
        return values if isinstance(values, int) else sum(values)

    def take(vectors: Sequence[Vector]) -> None:
        nonlocal opened, before
        samples = [
            (line["ns"], [count(line, *counted) for counted in COUNTED])
            for line in readings.sample_lines("", vectors, catalogue)
            if "flow" in line
        ]
        if samples and not before:
            before, opened = samples[0], samples[0][0] - cell.sample
        if before and samples and samples[-1] != before:
            (begin, old), (end, new) = before, samples[-1]
            moved = [
                None if first is None or last is None else last - first
                for first, last in zip(old, new, strict=True)
            ]
            tell(Second(run, (begin - opened) / 1e9, (end - opened) / 1e9, *moved))
            before = samples[-1]

    sender.worker.sampled = take
    try:
        yield
    finally:
        sender.worker.sampled = None
