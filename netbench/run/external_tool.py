"""A run of an external tool: its client and its server as jobs of the two workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from typing import NamedTuple

from netbench.base.errors import EngineError, NetbenchError, RequestError
from netbench.base.units import listed
from netbench.engine.binding import Edge
from netbench.engine.worker import Outcome, Worker
from netbench.model import Transfer
from netbench.run import job, readings, transfer
from netbench.run.ends import End, Ends, Measurement, side_counters
from netbench.run.job import MadeSinks
from netbench.run.transfer import SLACK_SECONDS, Watch, idle_after_errors
from netbench.tools.adaptors import adaptor_of
from netbench.tools.own import end_of, search
from netbench.tools.tool import Adaptor, Commands, Output, Place, Reading, shown

FIRST_PORT, PORTS = 15201, 1000
# setpriv(1); the kernel's number of nobody, since not every host has an account of that name
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs")
KEEPING = ("--inh-caps=+net_admin", "--ambient-caps=+net_admin")
SLOWEST_RATE = 8_000_000  # bits/s that a run of `bytes` is expected to reach
LOOK_SECONDS = 0.5  # between looks at a server while its client runs
GRACE_SECONDS = 5.0  # that a client has to exit after its server has
REPORT_SECONDS = 2.0  # that a server has to print what it says at the end of a connection
READY_SECONDS = 10.0
UNREAD_SECONDS = 0.05  # for what has arrived to be read
BY_HAND = "run its command by hand on that host"
KEPT = "samples/ has its command line and what it printed"


class ToolFailed(NetbenchError):
    """A tool failed, or printed no result: `printed` is what its client and its server printed."""

    def __init__(self, message: str, printed: tuple[str, str] = ("", "")) -> None:
        self.printed = printed
        super().__init__(" ".join(message.split()))


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
    tool = _planned(cell, ends, run)
    if cell.sink.path and tool.lines.on_receiver:
        transfer.claim_sink(cell, ends.receiver, sinks)
    try:
        sent, received = tool.execute(watch or nullcontext(), start)
        reading, printed = tool.reading(cell, sent, received)
    except (EngineError, ToolFailed) as error:
        raise tool.failure(error) from error
    results = {"sender": (), "receiver": received.result if received else ()}
    results[tool.client.side] = sent.result
    catalogue = tool.client.worker.catalogue
    return Measurement(
        side_counters(ends.sender, results["sender"]),
        side_counters(
            ends.receiver,
            results["receiver"],
            tool=reading.tool,
            rejected_connections=len(tool.server.others) if tool.server else 0,
        ),
        samples=list(readings.edge_lines(tool.client.side, sent.result, catalogue)),
        output=printed[0],
        server_output=printed[1],
        captures=reading.captures,
    )


def unable(cell: Transfer, sender: Worker, receiver: Worker) -> str:
    """Why the tool of a cell cannot do it, in one sentence, or ""."""
    one_host = sender.hello.boot_id == receiver.hello.boot_id
    return adaptor_of(cell.tool).unable(cell, one_host)


def _planned(cell: Transfer, ends: Ends, run: int) -> _ToolRun:
    """A tool's run. Its server cannot let the kernel choose a port, so each run takes the next of a
    range. It may take twice what the cell asks for.
    """
    sender, receiver = ends
    if why := unable(cell, sender.worker, receiver.worker):
        raise RequestError(f"{why}; `exclude:` the cell")
    low, high = cell.port or (FIRST_PORT, FIRST_PORT + PORTS - 1)
    port = low + run % (high - low + 1)
    adaptor = adaptor_of(cell.tool)
    place = Place(receiver.address, port, sender.cpus, receiver.cpus, sender.host.address or "")
    lines = adaptor.commands(cell, place)
    seconds = (cell.warmup + (cell.duration or 0)) / 1e9
    if cell.bytes:
        seconds = cell.bytes * 8 / min(cell.rate or SLOWEST_RATE, SLOWEST_RATE)
    return _ToolRun(
        adaptor,
        lines,
        receiver._replace(without_host_wide=False) if lines.on_receiver else sender,
        _Server(receiver, port) if lines.server else None,
        2 * seconds + SLACK_SECONDS,
        cell.congestion is not None,
    )


def _printed(end: End, outcome: Outcome) -> tuple[str, str, int]:
    """What a program printed: output and errors; and its exit status."""
    read = readings.readbacks(outcome.result, end.worker.catalogue)
    output, errors = str(read.get("tool_output", "")), str(read.get("tool_errors", ""))
    return output, errors, int(read.get("tool_status", 0))


class _ToolRun(NamedTuple):
    """A tool's run: on which ends, by which command lines."""

    adaptor: Adaptor
    lines: Commands
    client: End
    server: _Server | None
    seconds: float  # that the client may take
    congestion: bool  # whether the cell names its congestion control

    def failure(self, error: EngineError | ToolFailed) -> ToolFailed:
        """An error, with who else was connected to the server, or may have been."""
        printed = error.printed if isinstance(error, ToolFailed) else None
        message = f"{self.adaptor.name}: {error}" if printed is None else str(error)
        server, known = self.server, self.adaptor.served_another
        if server and (server.others or (known and known.search(message))):
            who = listed(server.others, 3, ", ") or "something else may have"
            message += f"; {who} connected to its port {server.port}: `ss -tnp` there names what is"
            message += " connected"
        return ToolFailed(message, printed or ("", ""))

    def execute(self, watch: Watch, start: Callable[[], None]) -> tuple[Outcome, Outcome | None]:
        """Run the client, and the server where there is one, with one window over both."""
        client, server, lines = self.client.worker, self.server, self.lines
        options = self._options(self.client, lines.client)
        options |= {"warmup": lines.warmup, "duration": lines.window}
        with idle_after_errors(client, server.worker if server else client):
            try:
                if server:
                    server.start(self._options(server.end, lines.server), lines.ready)
            except (EngineError, TimeoutError) as error:
                raise ToolFailed(f"{self.adaptor.name}: its server: {error}") from error
            client.prepare(options)
            start()
            if server:
                server.see_others()
                if not lines.window:
                    server.worker.mark()
            client.go()
            if lines.window:
                self._measure_window(watch)
            sent = self._await_exit()
            if server is None:
                return sent, None
            if not lines.window:
                self._await_report(sent, server)
                server.worker.mark()
            server.worker.stop()
            return sent, server.worker.result(SLACK_SECONDS)

    def _options(self, end: End, argv: Sequence[str]) -> job.Options:
        """A tool that needs no more than a port is nobody's where the login is root, unless the
        campaign says `run_as`. To choose any congestion control it keeps CAP_NET_ADMIN.
        """
        if not end.worker.hello.user and not end.host.run_as and self.adaptor.drops_root:
            argv = (*NOBODY, *(KEEPING if self.congestion else ()), "--", *argv)
        options: job.Options = {"role": "tool", "argv": "\0".join(argv), "sample": 0}
        options["address"] = end.address
        if end.cpus and not self.lines.pinned:
            options["cpu"] = end.cpus
        return options | end.metering

    def _measure_window(self, watch: Watch) -> None:
        """Open and close the window of the server when the client's does."""
        client, server, lines = self.client.worker, self.server, self.lines
        client.await_edge(Edge.OPEN, lines.warmup / 1e9 + SLACK_SECONDS)
        if server:
            server.worker.mark()
        with watch:
            client.await_edge(Edge.CLOSE, lines.window / 1e9 + SLACK_SECONDS)
        if server:
            server.worker.mark()
        client.stop()

    def _await_exit(self) -> Outcome:
        """The client's result. Errors: ToolFailed when it has not exited in time; it is killed."""
        server, seconds, began = self.server, self.seconds, time.monotonic()
        while True:
            waited = time.monotonic() - began
            try:
                return self.client.worker.result(max(0.0, min(LOOK_SECONDS, seconds - waited)))
            except TimeoutError as error:
                if waited >= seconds:
                    what = f"{self.adaptor.name}: {self.lines.client[0]} has not ended"
                    if server and server.ended:
                        what += f" {GRACE_SECONDS:.0f} s after its server has,"
                    raise ToolFailed(f"{what} within {seconds:.0f} s; {BY_HAND}") from error
            if server and not server.ended and server.has_ended():
                seconds = min(seconds, time.monotonic() - began + GRACE_SECONDS)

    def _await_report(self, sent: Outcome, server: _Server) -> None:
        """Wait until the server has printed what the client has not, as some do at the end."""
        deadline = time.monotonic() + REPORT_SECONDS
        text, errors, _ = _printed(self.client, sent)
        with suppress(TimeoutError):
            while not self.adaptor.is_complete(Output(text, errors, server.printed)):
                server.read_more(deadline - time.monotonic())

    def reading(
        self, cell: Transfer, sent: Outcome, received: Outcome | None
    ) -> tuple[Reading, tuple[str, str]]:
        """What the tool says, and what its client and its server printed. Errors: ToolFailed."""
        text, errors, status = _printed(self.client, sent)
        theirs, ended = "", 0
        if self.server and received:
            *texts, ended = _printed(self.server.end, received)
            theirs = "".join(texts)
        output = Output(text, errors, theirs)
        printed = (
            f"$ {' '.join(self.lines.client)}\n{text}{errors}",
            f"$ {' '.join(self.lines.server)}\n{theirs}" if received else "",
        )
        name = self.adaptor.name
        if status:
            why = self.adaptor.complaint(output)
            raise ToolFailed(f"{name}: exit status {status}: {why}; {KEPT}", printed)
        if ended:  # by itself: what the client was connected to may be another's
            why = f"its server exited with status {ended}: {shown(theirs)}"
            raise ToolFailed(f"{name}: {why}; {KEPT}", printed)
        try:
            return self.adaptor.reading(cell, output), printed
        except ValueError as error:
            raise ToolFailed(f"{name}: {error}; {KEPT}", printed) from error


class _Server:
    """A tool's server, which lives as long as one run. `printed`: the end of what it printed, as
    far as that was read; `ended`: it is known to have exited; `others`: who connected to it before
    its client.
    """

    def __init__(self, end: End, port: int) -> None:
        self.end, self.port, self.worker = end, port, end.worker
        self.others: list[str] = []
        self.printed = ""
        self.ended = False

    def start(self, options: job.Options, ready: str) -> None:
        """Start it, and wait until its output matches `ready`; "": until it listens on the port.
        Errors: EngineError where it ends before; TimeoutError.
        """
        names = ("port_low", "port_high", "await_port")[: 2 if ready else 3]
        self.worker.prepare({**options, "marks": 1, **dict.fromkeys(names, self.port)})
        self.worker.go()
        deadline = time.monotonic() + READY_SECONDS
        try:
            if not ready:
                self.worker.await_edge(Edge.WARM, READY_SECONDS)
            while ready and search([ready], self.printed) == [None]:
                self.read_more(deadline - time.monotonic())
        except TimeoutError as error:
            what = f"it prints {ready!r}" if ready else f"it listens on port {self.port}"
            raise TimeoutError(
                f"{self.worker.host}: not ready within {READY_SECONDS:.0f} s, that is, until"
                f" {what}; it printed {shown(self.printed)}; write `ready`, a pattern of what it"
                " prints then, or correct it"
            ) from error

    def see_others(self) -> None:
        """Note who is connected before its client is, by ss(8); where there is none, nobody."""
        argv = ["ss", "-Htn", "state", "established", "sport", "=", f":{self.port}"]
        with suppress(EngineError):
            lines = map(str.split, self.worker.aside("exec", argv).splitlines())
            self.others = [words[3][:100] for words in lines if len(words) > 3]

    def read_more(self, seconds: float) -> None:
        """Wait until it prints more. Errors: TimeoutError; EngineError where it ends before."""
        text = self.worker.next_output(max(0.0, seconds))
        self.printed = end_of(self.printed + text)

    def has_ended(self) -> bool:
        """Look whether it has exited, by itself."""
        with suppress(TimeoutError):
            self.worker.await_edge(Edge.CLOSE, UNREAD_SECONDS)
            self.ended = True
        return self.ended
