"""Executors of the steps that move data: Run and Verify. Each turns what happened, good or bad,
into one record.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from netbench.conductor import job, pins, record, tools
from netbench.conductor.exchange import (
    SETTLE_SECONDS,
    SLACK_SECONDS,
    UNBOUNDED_SECONDS,
    exchange,
    give_up,
)
from netbench.conductor.lanes import lanes
from netbench.conductor.worker_pool import WorkerPool
from netbench.engine.binding import Code, Edge, Vector
from netbench.engine.catalogue import Catalogue
from netbench.engine.worker import Outcome, Worker
from netbench.errors import EngineError, HostGone, Lost, RequestError
from netbench.json_lines import now
from netbench.model import Campaign, Pair, Transfer
from netbench.plan import Run, Unit

KEPT = ("resident", "source_size")  # read-backs that a record keeps beside the counters
COUNTED = ("rejected_connections", "samples_lost")  # and those that it keeps where there were any


CUT_SECONDS = 4.5  # workers say something every three
DISTRUST = "leave the method out here, and report it to who maintains this kernel and driver"

Sink = tuple[str, str]  # host, path


@dataclass
class RunResult:
    """A run's record and what goes beside it: lines of samples, and a tool's output."""

    record: dict[str, Any]
    samples: list[Mapping[str, Any]] = field(default_factory=list)
    output: str = ""


class Runner:
    """Moves data between a pair's workers."""

    def __init__(
        self,
        campaign: Campaign,
        pool: WorkerPool,
        made_sinks: Collection[Sink] = (),
        made: Callable[[Sink], None] | None = None,
    ) -> None:
        """`made_sinks`: files that this campaign made earlier, and so may write again; `made` is
        told of each new one.
        """
        self._campaign = campaign
        self._pool = pool
        self._made_sinks = set(made_sinks)
        self._made = made

    def run(self, step: Run, number: int) -> RunResult:
        """One measured run. What a run can meet becomes the record's status and reason. Errors:
        HostGone, before it began.
        """
        unit = step.unit
        result = RunResult(
            {
                "run": number,
                "cell": unit.cell.id,
                "pair": unit.pair.name,
                "block": step.block,
                "boot": step.boot,
                "factors": dict(unit.cell.factors),
                "status": "ok",
                "reason": "",
                "started": now(),
            }
        )
        try:
            self._measure(unit, number, result)
            self._note_cuts(unit, result)
        except (EngineError, RequestError, TimeoutError, ValueError) as error:
            result.record |= {"status": status_of(error), "reason": str(error)}
        except HostGone:
            raise
        except Lost as error:
            result.record |= {"status": "interrupted", "reason": str(error)}
            self.replace_workers(unit)
        except KeyboardInterrupt:
            result.record |= {"status": "interrupted", "reason": "interrupted from the keyboard"}
            raise Interrupted(result) from None
        return result

    def _note_cuts(self, unit: Unit, result: RunResult) -> None:
        """A worker that was silent for longer than its heart allows was cut off for a while; the
        run went on without us.
        """
        for side, worker in zip(("sender", "receiver"), self._workers(unit), strict=True):
            if worker.silence > CUT_SECONDS:
                result.record.setdefault("cut", {})[side] = round(worker.silence, 1)

    def lanes(self) -> list[tuple[Pair, ...]]:
        """Pairs in groups that can run side by side."""
        return lanes(self._campaign.pairs, self._pool.kernel)

    def interrupt(self) -> None:
        """End the runs in flight, in whatever thread: each is interrupted."""
        self._pool.interrupt()

    def replace_workers(self, unit: Unit) -> None:
        """After one was lost: both, since the other may hold half a run."""
        self._pool.dismiss(unit.pair.sender, "sender")
        self._pool.dismiss(unit.pair.receiver, "receiver")

    def _measure(self, unit: Unit, number: int, result: RunResult) -> None:
        sender, receiver = self._workers(unit)
        if unit.cell.transfer.tool.kind != "none":
            self._tool(unit, number, result)
            return
        send, receive = self._jobs(unit, unit.cell.transfer)
        done = exchange(sender, receiver, send, receive, prepared=lambda: self._remember_sink(unit))
        self._fill(unit, result, sender, done.sender, receiver, done.receiver)

    def _workers(self, unit: Unit) -> tuple[Worker, Worker]:
        return self._pool.worker(unit.pair.sender, "sender"), self._pool.worker(
            unit.pair.receiver, "receiver"
        )

    def _meters(self, unit: Unit, worker: Worker, side: str) -> list[str]:
        """Meters to read on a side: those of the whole kernel once a kernel, in the sender's
        worker.
        """
        known = worker.catalogue.meters
        wanted = [name for name in self._campaign.meters if name in known]
        if side == "receiver" and self._pool.share_kernel(unit.pair):
            wanted = [name for name in wanted if not known[name].has("host_wide")]
        return wanted

    def _pins(self, unit: Unit) -> tuple[int | None, int | None]:
        pin = unit.cell.transfer.pin
        if pin.kind == "none":
            return None, None
        sender = self._pool.cpus(unit.pair.sender, "sender")
        receiver = self._pool.cpus(unit.pair.receiver, "receiver")
        return pins.choose(pin, sender, receiver, self._pool.share_kernel(unit.pair))

    def _jobs(self, unit: Unit, transfer: Transfer) -> tuple[job.Options, job.Options]:
        sender, receiver = self._workers(unit)
        token, cpus = os.urandom(16), self._pins(unit)
        address = self._pool.address(unit.pair.receiver, transfer.ip)
        declared = (
            [row.name for row in sender.catalogue.send[transfer.send].options],
            [row.name for row in receiver.catalogue.receive[transfer.receive].options],
        )
        made = {path for host, path in self._made_sinks if host == unit.pair.receiver}
        send = job.sender_options(
            transfer, token, cpus[0], self._meters(unit, sender, "sender"), declared[0]
        )
        receive = job.receiver_options(
            transfer, token, cpus[1], self._meters(unit, receiver, "receiver"), declared[1], made
        )
        if receiver.catalogue.receive[transfer.receive].has("fetches"):
            receive |= job.fetched(transfer, self._pool.address(unit.pair.sender, transfer.ip))
        if self._campaign.hosts[unit.pair.sender].address:
            send["local_address"] = self._pool.address(unit.pair.sender, transfer.ip)
        return send | {"address": address}, receive | {"address": address}

    def _remember_sink(self, unit: Unit) -> None:
        """The receiver is prepared, so the sink's files are there, and they are this campaign's:
        whatever becomes of the run.
        """
        for path in job.sink_paths(unit.cell.transfer):
            sink = unit.pair.receiver, path
            if sink not in self._made_sinks:
                self._made_sinks.add(sink)
                if self._made is not None:
                    self._made(sink)

    def _fill(
        self,
        unit: Unit,
        result: RunResult,
        sender: Worker,
        sent: Outcome,
        receiver: Worker,
        received: Outcome,
    ) -> None:
        transfer = unit.cell.transfer
        sides = {
            "sender": (unit.pair.sender, sender, sent),
            "receiver": (unit.pair.receiver, receiver, received),
        }
        settings: dict[str, Any] = {}
        proof: dict[str, Any] = {}
        for side, (host, worker, outcome) in sides.items():
            read = record.readbacks(outcome.result, worker.catalogue)
            notes = {name: read[name] for name in KEPT if read.get(name) is not None}
            notes |= {name: read[name] for name in COUNTED if read.get(name)}
            notes |= {"cache": transfer.cache} if "resident" in notes else {}
            result.record[side] = (
                {"host": host} | record.counters(outcome.result, worker.catalogue) | notes
            )
            settings[side] = record.asked_and_read(_asked(transfer, side), read)
            proof[side] = record.proofs(outcome.result, worker.catalogue)
            result.samples += _lines(side, outcome.result, outcome.samples, worker.catalogue)
        result.record |= {"settings": settings | {"moved": {}}, "proof": proof}

    def verify(self, unit: Unit) -> str:
        """Show that what arrives is what was sent. Returns what went wrong, or "" (also where
        nothing is delivered).

        Errors: those of a run.
        """
        sender, receiver = self._workers(unit)
        transfer = unit.cell.transfer
        send_row, receive_row = (
            sender.catalogue.send[transfer.send],
            receiver.catalogue.receive[transfer.receive],
        )
        fetches = send_row.has("fetches") and receive_row.has("fetches")
        if transfer.tool.kind != "none" or not (
            fetches or (send_row.has("delivers") and receive_row.has("delivers"))
        ):
            return ""
        size = max(job.VERIFY_BYTES, transfer.streams * (2 * transfer.chunk + 1))
        bounds: dict[str, Any] = (
            {"duration": job.FETCH_NS} if fetches else {"bytes": size, "duration": None}
        )
        # Paced verification would only take longer: the bytes are the same.
        send, receive = self._jobs(unit, replace(transfer, **bounds, warmup=0, sample=0, rate=None))
        remember = lambda: self._remember_sink(unit)  # noqa: E731
        done = exchange(
            sender, receiver, send | {"verify": 1}, receive | {"verify": 1}, prepared=remember
        )
        left = record.readbacks(done.sender.result, sender.catalogue).get("digest")
        arrived = record.readbacks(done.receiver.result, receiver.catalogue).get("digest")
        if left is None or left != arrived:
            return (
                f"verify: what arrived is not what was sent: digests {left} and {arrived} over"
                f" {size} bytes; {DISTRUST}"
            )
        return ""

    def _tool(self, unit: Unit, number: int, result: RunResult) -> None:
        sender, receiver = self._workers(unit)
        transfer = unit.cell.transfer
        address = self._pool.address(unit.pair.receiver, transfer.ip)
        cpus = self._pins(unit)
        lines = tools.commands(transfer, address, tools.port_of(transfer, number), cpus)
        client = _tool_options(
            lines.client, self._meters(unit, sender, "sender"), lines.warmup, lines.window
        )
        if cpus[0] is not None and transfer.tool.kind != "iperf3":
            client["cpu"] = cpus[0]
        server = (
            _tool_options(lines.server, self._meters(unit, receiver, "receiver"), 0, 0)
            if lines.server
            else {}
        )
        if server:
            server |= {"marks": 1, "await": lines.ready}
        sent, received = _both_tools(sender, receiver, client, server, lines.window)
        read = record.readbacks(sent.result, sender.catalogue)
        output, errors = str(read.get("tool_output", "")), str(read.get("tool_errors", ""))
        result.output = f"$ {' '.join(lines.client)}\n{output}{errors}"
        said = tools.reading(transfer, output, errors, int(read.get("tool_status", 0)))
        result.record["sender"] = {"host": unit.pair.sender} | record.counters(
            sent.result, sender.catalogue
        )
        theirs = record.counters(received.result, receiver.catalogue) if received else {}
        result.record["receiver"] = {"host": unit.pair.receiver} | theirs | {"tool": said}
        result.record |= {
            "settings": {"sender": {}, "receiver": {}, "moved": {}},
            "proof": {"sender": {}, "receiver": {}},
        }
        result.samples += record.edge_lines("sender", sent.result, sender.catalogue)


class Interrupted(Exception):
    """Ctrl-C in a run: carries what was result of it."""

    def __init__(self, result: RunResult) -> None:
        super().__init__("interrupted")
        self.result = result


def status_of(error: Exception) -> str:
    """The status of a run that ended with this error."""
    if isinstance(error, RequestError) or (
        isinstance(error, EngineError) and error.code == Code.UNSUPPORTED
    ):
        return "unsupported"
    return "failed"


def _asked(transfer: Transfer, side: str) -> dict[str, Any]:
    buffer = (
        {"send_buffer": transfer.send_buffer}
        if side == "sender"
        else {"receive_buffer": transfer.receive_buffer}
    )
    return buffer | {"congestion": transfer.congestion}


def _lines(
    side: str, result: tuple[Vector, ...], samples: tuple[Vector, ...], catalogue: Catalogue
) -> Iterator[Mapping[str, Any]]:
    yield from record.edge_lines(side, result, catalogue)
    yield from record.sample_lines(side, samples, catalogue)


def _tool_options(
    argv: tuple[str, ...], meters: list[str], warmup: int, window: int
) -> job.Options:
    options: job.Options = {
        "role": "tool",
        "argv": "\0".join(argv),
        "meters": "\0".join(meters),
        "sample": 0,
    }
    return options | {"warmup": warmup, "duration": window}


def _both_tools(
    sender: Worker, receiver: Worker, client: job.Options, server: job.Options, window: int
) -> tuple[Outcome, Outcome | None]:
    """Run a tool's client, and its server if it has one, with one window over both."""
    try:
        if server:
            receiver.prepare(server)
            receiver.go()
            receiver.await_edge(Edge.WARM, SLACK_SECONDS)
        sender.prepare(client)
        if server and not window:
            receiver.mark()
        sender.go()
        if window:
            sender.await_edge(Edge.OPEN, int(client["warmup"]) / 1e9 + SLACK_SECONDS)
            if server:
                receiver.mark()
            sender.await_edge(Edge.CLOSE, window / 1e9 + SLACK_SECONDS)
            if server:
                receiver.mark()
            sender.stop()
        sent = sender.result(UNBOUNDED_SECONDS)
        if not server:
            return sent, None
        receiver.await_edge(
            Edge.CLOSE, SLACK_SECONDS
        )  # without a window the server leaves with its client
        receiver.stop()
        return sent, receiver.result(SLACK_SECONDS)
    except EngineError as error:
        if error.code == Code.PEER:
            other = (
                receiver.last_word(SETTLE_SECONDS) if server and error.host == sender.host else None
            )
            error = other or error
        give_up(sender)
        give_up(receiver)
        raise error
    except BaseException:
        give_up(sender)
        give_up(receiver)
        raise
