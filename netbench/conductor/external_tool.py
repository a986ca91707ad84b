"""A run of an external tool: its client and its server as jobs of the two workers."""

from __future__ import annotations

from collections.abc import Sequence

from netbench.conductor import job, readings, tool_commands
from netbench.conductor.ends import End, Ends
from netbench.conductor.exchange import SLACK_SECONDS, Watch, idle_after_errors
from netbench.conductor.measurement import Measurement, side_counters
from netbench.conductor.tool_commands import Commands
from netbench.engine.binding import Edge
from netbench.engine.worker import Outcome, Worker
from netbench.errors import NetbenchError
from netbench.model import Transfer
from netbench.record import ToolReading


class ToolFailed(NetbenchError):
    """A tool failed, or printed no result: `output` is what it printed."""

    def __init__(self, message: str, output: str) -> None:
        self.output = output
        super().__init__(message)


def measure(transfer: Transfer, ends: Ends, run: int, watch: Watch | None = None) -> Measurement:
    """Run the tool once. `run`: the number of the run, which chooses the port; `watch`: of a tool
    with a window.

    Errors: ToolFailed; RequestError for what the tool cannot do; those of a transfer.
    """
    sender, receiver = ends
    port = tool_commands.port_of(transfer, run)
    lines = tool_commands.commands(transfer, receiver.address, port, (sender.cpu, receiver.cpu))
    client = _options(lines.client, sender, lines.warmup, lines.window)
    if sender.cpu is not None and transfer.tool.kind != "iperf3":
        client["cpu"] = sender.cpu
    server: job.Options = {}
    if lines.server:
        server = _options(lines.server, receiver) | {"marks": 1, "await": lines.ready}
    seconds = tool_commands.seconds_at_most(transfer) + SLACK_SECONDS
    sent, received = _execute(
        sender.worker, receiver.worker, client, server, seconds, watch or Watch()
    )
    tool, output = _reading(transfer, lines, sender, sent)
    return Measurement(
        side_counters(sender, sent.result),
        side_counters(receiver, received.result if received else (), tool=tool),
        samples=list(readings.edge_lines("sender", sent.result, sender.worker.catalogue)),
        output=output,
    )


def _reading(
    transfer: Transfer, lines: Commands, sender: End, sent: Outcome
) -> tuple[ToolReading, str]:
    """What the tool says it moved, and its command line with all that it printed."""
    read = readings.readbacks(sent.result, sender.worker.catalogue)
    output, errors = str(read.get("tool_output", "")), str(read.get("tool_errors", ""))
    printed = f"$ {' '.join(lines.client)}\n{output}{errors}"
    try:
        status = int(read.get("tool_status", 0))
        return tool_commands.reading(transfer, output, errors, status), printed
    except ValueError as error:
        raise ToolFailed(str(error), printed) from error


def _options(argv: tuple[str, ...], end: End, warmup: int = 0, window: int = 0) -> job.Options:
    options: job.Options = {
        "role": "tool",
        "argv": "\0".join(argv),
        "sample": 0,
        "warmup": warmup,
        "duration": window,
        "address": end.address,
    }
    return options | end.metering


def _execute(
    sender: Worker,
    receiver: Worker,
    client: job.Options,
    server: job.Options,
    seconds: float,
    watch: Watch,
) -> tuple[Outcome, Outcome | None]:
    """Run a tool's client, which has so many seconds to exit, and its server unless that is {},
    with one window over both.
    """
    with idle_after_errors(sender, receiver):
        if server:
            receiver.prepare(server)
            receiver.go()
            receiver.await_edge(Edge.WARM, SLACK_SECONDS)
        sender.prepare(client)
        measured = [sender, receiver] if server else [sender]
        if client["duration"]:
            sender.go()
            _measure_window(measured, client, watch)
        else:
            _mark(measured)
            sender.go()
        sent = _await_exit(sender, str(client["argv"]), seconds)
        if not server:
            return sent, None
        # Without a window the server's closes when it leaves with its client.
        receiver.await_edge(Edge.CLOSE, SLACK_SECONDS)
        receiver.stop()
        return sent, receiver.result(SLACK_SECONDS)


def _await_exit(sender: Worker, argv: str, seconds: float) -> Outcome:
    """The client's result. Errors: ToolFailed when it has not exited in time; it is killed then."""
    try:
        return sender.result(seconds)
    except TimeoutError as error:
        program = argv.partition("\0")[0]
        what = f"{sender.host}: {program} has not ended within {seconds:.0f} s"
        raise ToolFailed(f"{what}; {tool_commands.BY_HAND}", "") from error


def _measure_window(workers: Sequence[Worker], client: job.Options, watch: Watch) -> None:
    """Open and close the window of the server when the client's does."""
    sender = workers[0]
    sender.await_edge(Edge.OPEN, int(client["warmup"]) / 1e9 + SLACK_SECONDS)
    _mark(workers)
    watch.begin()
    sender.await_edge(Edge.CLOSE, int(client["duration"]) / 1e9 + SLACK_SECONDS)
    watch.end()
    _mark(workers)
    sender.stop()


def _mark(workers: Sequence[Worker]) -> None:
    """Tell the server's worker, where there is one, that the client's window opens or closes."""
    for server in workers[1:]:
        server.mark()
