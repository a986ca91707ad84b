"""A run of an external tool: its client and its server as jobs of the two workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from netbench.base.errors import EngineError, NetbenchError, RequestError
from netbench.base.units import listed
from netbench.engine.binding import Edge
from netbench.engine.worker import Outcome, Worker
from netbench.model import Transfer
from netbench.run import job, readings, transfer
from netbench.run.ends import End, Ends, Measurement, side_counters
from netbench.run.exchange import SLACK_SECONDS, Watch, idle_after_errors
from netbench.run.job import MadeSinks
from netbench.tools.adaptors import adaptor_of
from netbench.tools.search import SEARCHED, search
from netbench.tools.tool import Adaptor, Commands, Output, Place, Reading, shown

FIRST_PORT, PORTS = 15201, 1000
# setpriv(1); the kernel's number of nobody, since not every host has an account of that name
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs")
KEEPING = ("--inh-caps=+net_admin", "--ambient-caps=+net_admin")
SLOWEST_RATE = 8_000_000  # bits/s that a run of `bytes` is expected to reach
LOOK_SECONDS = 0.5  # between looks at a server while its client runs
GRACE_SECONDS = 5.0  # that a client has to exit after its server has
REPORT_SECONDS = 2.0  # that a server has to print what it says at the end of a connection
BY_HAND = "run its command by hand on that host"
KEPT = "samples/ has its command line and what it printed"


class ToolFailed(NetbenchError):
    """A tool failed, or printed no result: `output` and `server_output` are what it printed."""

    def __init__(self, message: str, output: str = "", server_output: str = "") -> None:
        self.output, self.server_output = output, server_output
        super().__init__(" ".join(message.split()))


@dataclass(frozen=True)
class _Plan:
    """A tool's run: on which ends, by which command lines."""

    adaptor: Adaptor
    lines: Commands
    client: End
    server: End | None
    port: int
    seconds: float  # that the client may take
    congestion: bool  # whether the cell names its congestion control


def measure(
    cell: Transfer,
    ends: Ends,
    sinks: MadeSinks,
    run: int,
    watch: Watch | None = None,
    start: Callable[[], None] = lambda: None,
) -> Measurement:
    """Run the tool once. `run`: the number of the run, which chooses the port; `watch`: of a tool
    with a window; `start` returns when the client may begin.

    Errors: ToolFailed; RequestError for what the tool cannot do; those of a transfer.
    """
    plan = _planned(cell, ends, run)
    size = _source_size(cell, plan.client.worker)
    if cell.sink.path and plan.lines.on_receiver:
        transfer.claim_sink(cell, ends.receiver, sinks)
    server = ToolServer(plan.server.worker, plan.port) if plan.server else None
    try:
        sent, received = _execute(plan, server, watch or Watch(), start)
        output = _output(plan, sent, received, size)
        printed = (
            f"$ {' '.join(plan.lines.client)}\n{output.text}{output.errors}",
            f"$ {' '.join(plan.lines.server)}\n{output.server}" if received else "",
        )
        reading = _reading(plan, cell, sent, output, printed)
    except EngineError as error:
        raise ToolFailed(f"{plan.adaptor.name}: {error}{_cause(plan, server, error)}") from error
    except ToolFailed as error:
        said = f"{error}{_cause(plan, server, error)}"
        raise ToolFailed(said, error.output, error.server_output) from error
    results = {"sender": (), "receiver": received.result if received else ()}
    results[plan.client.side] = sent.result
    return Measurement(
        side_counters(ends.sender, results["sender"]),
        side_counters(
            ends.receiver,
            results["receiver"],
            tool=reading.tool,
            rejected_connections=len(server.others) if server else 0,
        ),
        samples=list(
            readings.edge_lines(plan.client.side, sent.result, plan.client.worker.catalogue)
        ),
        output=printed[0],
        server_output=printed[1],
        captures=reading.captures,
    )


def has_window(cell: Transfer) -> bool:
    """Whether the tool of a cell has a window that is known: others are measured over their whole
    life.
    """
    return adaptor_of(cell.tool).commands(cell, Place("", 1)).window > 0


def unable(cell: Transfer, sender: Worker, receiver: Worker) -> str:
    """Why the tool of a cell cannot do it, in one sentence, or ""."""
    one_host = sender.hello.boot_id == receiver.hello.boot_id
    return adaptor_of(cell.tool).unable(cell, one_host)


def _planned(cell: Transfer, ends: Ends, run: int) -> _Plan:
    sender, receiver = ends
    why = unable(cell, sender.worker, receiver.worker)
    if why:
        raise RequestError(f"{why}; `exclude:` the cell")
    adaptor, port = adaptor_of(cell.tool), _port_of(cell, run)
    lines = adaptor.commands(cell, Place(receiver.address, port, sender.cpus, receiver.cpus))
    return _Plan(
        adaptor,
        lines,
        replace(receiver, without_host_wide=False) if lines.on_receiver else sender,
        receiver if lines.server else None,
        port,
        _seconds_at_most(cell) + SLACK_SECONDS,
        cell.congestion is not None,
    )


def _port_of(cell: Transfer, run: int) -> int:
    """A port for the tool's server: it cannot let the kernel choose one, so each run takes the next
    of a range.
    """
    low, high = cell.port or (FIRST_PORT, FIRST_PORT + PORTS - 1)
    return low + run % (high - low + 1)


def _seconds_at_most(cell: Transfer) -> float:
    """How long a tool may take for a cell: twice what the cell asks for."""
    if cell.bytes:
        return 2 * cell.bytes * 8 / min(cell.rate or SLOWEST_RATE, SLOWEST_RATE)
    return 2 * (cell.warmup + (cell.duration or 0)) / 1e9


def _source_size(cell: Transfer, worker: Worker) -> int | None:
    """Bytes of the source, where it is a file."""
    if cell.source.kind == "file":
        with suppress(EngineError, ValueError):
            return int(worker.operate("exec", ["stat", "-L", "-c", "%s", cell.source.path])[0])
    return None


def _cause(plan: _Plan, server: ToolServer | None, error: Exception) -> str:
    """That something else was connected to the server, or may have been, in words; ""."""
    known = plan.adaptor.served_another
    if server and (server.others or (known and known.search(str(error)))):
        who = listed(server.others, 3, ", ") or "something else may have"
        return f"; {who} connected to its port {plan.port}: `ss -tnp` there names what is connected"
    return ""


def _without_root(plan: _Plan, end: End, argv: Sequence[str]) -> Sequence[str]:
    """A tool that needs no more than a port is nobody's where the login is root, unless the
    campaign says `run_as`. To choose any congestion control it keeps CAP_NET_ADMIN.
    """
    if end.worker.hello.user or end.host.run_as or not plan.adaptor.drops_root:
        return argv
    return (*NOBODY, *(KEEPING if plan.congestion else ()), "--", *argv)


def _options(plan: _Plan, end: End, argv: Sequence[str]) -> job.Options:
    options: job.Options = {
        "role": "tool",
        "argv": "\0".join(_without_root(plan, end, argv)),
        "sample": 0,
        "address": end.address,
    }
    if end.cpus and not plan.lines.pinned:
        options["cpu"] = end.cpus
    return options | end.metering


def _execute(
    plan: _Plan, server: ToolServer | None, watch: Watch, start: Callable[[], None]
) -> tuple[Outcome, Outcome | None]:
    """Run the client, and the server where there is one, with one window over both."""
    client, lines = plan.client.worker, plan.lines
    workers = [client, *([plan.server.worker] if plan.server else [])]
    options = _options(plan, plan.client, lines.client)
    options |= {"warmup": lines.warmup, "duration": lines.window}
    with idle_after_errors(client, workers[-1]):
        try:
            if plan.server and server:
                server.start(_options(plan, plan.server, lines.server), lines.ready)
        except (EngineError, TimeoutError, ValueError) as error:
            raise ToolFailed(f"{plan.adaptor.name}: its server: {error}") from error
        client.prepare(options)
        start()
        if server:
            server.see_others()
        if lines.window:
            client.go()
            _measure_window(client, server, lines, watch)
        else:
            if server:
                server.mark()
            client.go()
        sent = _await_exit(plan, client, server)
        if server is None:
            return sent, None
        if not lines.window:
            _await_report(plan, sent, server)
            server.mark()
        return sent, server.end()


def _await_exit(plan: _Plan, client: Worker, server: ToolServer | None) -> Outcome:
    """The client's result. Errors: ToolFailed when it has not exited in time; it is killed then."""
    began = time.monotonic()
    seconds = plan.seconds
    while True:
        waited = time.monotonic() - began
        try:
            return client.result(max(0.0, min(LOOK_SECONDS, seconds - waited)))
        except TimeoutError as error:
            if waited >= seconds:
                what = f"{plan.adaptor.name}: {plan.lines.client[0]} has not ended"
                if server and server.ended:
                    what += f" {GRACE_SECONDS:.0f} s after its server has,"
                raise ToolFailed(f"{what} within {seconds:.0f} s; {BY_HAND}") from error
        if server and not server.ended and server.has_ended():
            seconds = min(seconds, time.monotonic() - began + GRACE_SECONDS)


def _await_report(plan: _Plan, sent: Outcome, server: ToolServer) -> None:
    """Wait until the server has printed what the client has not, as some do when a connection is
    closed.
    """
    deadline = time.monotonic() + REPORT_SECONDS
    text, errors, _ = _printed(plan.client, sent)
    with suppress(TimeoutError):
        while not plan.adaptor.is_complete(Output(text, errors, server.printed)):
            server.read_more(deadline - time.monotonic())


def _measure_window(
    client: Worker, server: ToolServer | None, lines: Commands, watch: Watch
) -> None:
    """Open and close the window of the server when the client's does."""
    client.await_edge(Edge.OPEN, lines.warmup / 1e9 + SLACK_SECONDS)
    if server:
        server.mark()
    watch.begin()
    client.await_edge(Edge.CLOSE, lines.window / 1e9 + SLACK_SECONDS)
    watch.end()
    if server:
        server.mark()
    client.stop()


def _printed(end: End, outcome: Outcome) -> tuple[str, str, int]:
    """What a program printed: output and errors; and its exit status."""
    read = readings.readbacks(outcome.result, end.worker.catalogue)
    output, errors = str(read.get("tool_output", "")), str(read.get("tool_errors", ""))
    return output, errors, int(read.get("tool_status", 0))


def _output(plan: _Plan, sent: Outcome, received: Outcome | None, size: int | None) -> Output:
    """What the programs printed."""
    text, errors, _ = _printed(plan.client, sent)
    theirs = "".join(_printed(plan.server, received)[:2]) if plan.server and received else ""
    edges = readings.counters(sent.result, plan.client.worker.catalogue).get("time_ns")
    seconds = (edges[1] - edges[0]) / 1e9 if edges else None
    return Output(text, errors, theirs, seconds, size)


def _reading(
    plan: _Plan, cell: Transfer, sent: Outcome, output: Output, printed: tuple[str, str]
) -> Reading:
    """What the tool says. Errors: ToolFailed."""
    name, status = plan.adaptor.name, _printed(plan.client, sent)[2]
    if status:
        why = plan.adaptor.complaint(output)
        raise ToolFailed(f"{name}: exit status {status}: {why}; {KEPT}", *printed)
    try:
        return plan.adaptor.reading(cell, output)
    except ValueError as error:
        raise ToolFailed(f"{name}: {error}; {KEPT}", *printed) from error


READY_SECONDS = 10.0
UNREAD_SECONDS = 0.05  # for what has arrived to be read


class ToolServer:
    """A program on a worker, with a port. `printed`: the end of what it printed, as far as that was
    read; `ended`: it is known to have exited; `others`: who connected to it before its
    client.
    """

    def __init__(self, worker: Worker, port: int) -> None:
        self._worker, self._port = worker, port
        self.others: list[str] = []
        self.printed = ""
        self.ended = False

    def start(self, options: job.Options, ready: str) -> None:
        """Start it, and wait until its output matches `ready`; "": until it listens on the port.
        Errors: EngineError where it ends before; TimeoutError; ValueError for a pattern that takes
        for ever.
        """
        listens: job.Options = {} if ready else {"await_port": self._port}
        self._worker.prepare(options | {"marks": 1} | listens)
        self._worker.go()
        deadline = time.monotonic() + READY_SECONDS
        try:
            if not ready:
                self._worker.await_edge(Edge.WARM, READY_SECONDS)
            while ready and search([ready], self.printed) == [None]:
                self.read_more(deadline - time.monotonic())
        except TimeoutError as error:
            what = f"it listens on port {self._port}" if not ready else f"it prints {ready!r}"
            raise TimeoutError(
                f"{self._worker.host}: not ready within {READY_SECONDS:.0f} s, that is, until"
                f" {what}; it printed {shown(self.printed)}; write `ready`, a pattern of what it"
                " prints then, or correct it"
            ) from error

    def see_others(self) -> None:
        """Note who is connected before its client is, by ss(8); where there is none, nobody."""
        argv = ["ss", "-Htn", "state", "established", "sport", "=", f":{self._port}"]
        with suppress(EngineError):
            self.others = [
                line.split()[3] for line in self._worker.aside("exec", argv).splitlines()
            ]

    def read_more(self, seconds: float) -> None:
        """Wait until it prints more. Errors: TimeoutError; EngineError where it ends before."""
        text = self._worker.next_output(max(0.0, seconds))
        self.printed = (self.printed + text)[-SEARCHED:]

    def mark(self) -> None:
        """Open its window, or close it."""
        self._worker.mark()

    def has_ended(self) -> bool:
        """Look whether it has exited, by itself."""
        try:
            self._worker.await_edge(Edge.CLOSE, UNREAD_SECONDS)
        except TimeoutError:
            return False
        self.ended = True
        return True

    def end(self) -> Outcome:
        """End it, after `mark` has closed its window, and get its result."""
        self._worker.stop()
        return self._worker.result(SLACK_SECONDS)
