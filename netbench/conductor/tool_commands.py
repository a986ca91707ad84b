"""Command lines of external programs, and what their output says. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from netbench.errors import RequestError
from netbench.model import Transfer
from netbench.record import ToolReading
from netbench.units import parse_rate

FIRST_PORT, PORTS = 15201, 1000
START_NS = 100_000_000  # until iperf3 has exchanged its parameters and moves data
BY_HAND = "run it by hand on the sender; samples/ has its command line and what it printed"
GUARD_NS = 100_000_000  # the window closes so long before iperf3 stops
# With a report a second, a long one is larger than what is kept of an output. 60 is the most that
# iperf3 takes; with 0, iperf3 3.18 never ends a run of `-n`.
REPORT_SECONDS = "60"


SLOWEST_RATE = 8_000_000  # bits/s that a run of `bytes` is expected to reach


@dataclass(frozen=True)
class Commands:
    """A tool's command lines; `server` is empty where it needs none. The client's window in ns; 0:
    its whole life.
    """

    client: tuple[str, ...]
    server: tuple[str, ...] = ()
    ready: str = ""
    warmup: int = 0
    window: int = 0


def port_of(transfer: Transfer, run: int) -> int:
    """A port for the tool's server: it cannot let the kernel choose one, so each run takes the next
    of a range.
    """
    low, high = transfer.port or (FIRST_PORT, FIRST_PORT + PORTS - 1)
    return low + run % (high - low + 1)


def seconds_at_most(transfer: Transfer) -> float:
    """How long a tool may take for a cell: twice what the cell asks for."""
    if transfer.bytes:
        return 2 * transfer.bytes * 8 / min(transfer.rate or SLOWEST_RATE, SLOWEST_RATE)
    return 2 * (transfer.warmup + (transfer.duration or 0)) / 1e9


def commands(
    transfer: Transfer, address: str, port: int, cpus: tuple[int | None, int | None]
) -> Commands:
    """Command lines for a cell. Errors: RequestError for what the tool cannot do."""
    if transfer.tool.kind == "iperf3":
        return _iperf3(transfer, address, port, cpus)
    seconds = str((transfer.duration or 0) / 1e9)
    words = {
        "{address}": address,
        "{port}": str(port),
        "{seconds}": seconds,
        "{chunk}": str(transfer.chunk),
        "{file}": transfer.source.path,
    }
    return Commands(tuple(_filled(word, words) for word in transfer.tool.argv))


def _filled(text: str, words: Mapping[str, str]) -> str:
    for name, value in words.items():
        text = text.replace(name, value)
    return text


def unable(transfer: Transfer) -> str:
    """Why iperf3 cannot do this cell, or ""."""
    if transfer.tool.kind != "iperf3":
        return ""
    reasons = {
        "it sends by write or sendfile (-Z)": (
            transfer.send not in ("write", "readwrite", "sendfile")
        ),
        "it receives by read": transfer.receive != "read",
        "it writes to no file in this form": transfer.sink.kind != "discard",
        "it takes memory or one file as source": transfer.source.kind not in ("memory", "file"),
        "it knows no preamble": transfer.preamble > 0,
        "it knows no alignment": transfer.align > 0,
        "its calls have a size": transfer.chunk == 0,
        "it has one size of buffer for both sides": (
            bool(transfer.receive_buffer) and transfer.receive_buffer != transfer.send_buffer
        ),
        "it leaves the page cache as it is": transfer.cache == "cold",
    }
    return "; ".join(reason for reason, holds in reasons.items() if holds)


def _iperf3(
    transfer: Transfer, address: str, port: int, cpus: tuple[int | None, int | None]
) -> Commands:
    why = unable(transfer)
    if why:
        raise RequestError(f"iperf3 cannot run this cell: {why}; `exclude:` it")
    client = [
        "iperf3",
        "-c",
        address,
        "-p",
        str(port),
        "-J",
        "-l",
        str(transfer.chunk),
        "-P",
        str(transfer.streams),
    ]
    seconds, omitted = (
        math.ceil((transfer.duration or 0) / 1e9),
        math.ceil(transfer.warmup / 1e9),
    )  # it takes whole seconds
    client += (
        ["-n", str(transfer.bytes)]
        if transfer.bytes
        else ["-t", str(seconds), *(["-O", str(omitted)] if omitted else [])]
    )
    client += ["-w", str(transfer.send_buffer)] if transfer.send_buffer else []
    client += ["-C", transfer.congestion] if transfer.congestion else []
    client += ["-b", str(transfer.rate // transfer.streams)] if transfer.rate else []
    client += ["-Z"] if transfer.send == "sendfile" else []
    client += ["-F", transfer.source.path] if transfer.source.kind == "file" else []
    client += ["-i", REPORT_SECONDS]
    client += ["-A", str(cpus[0])] if cpus[0] is not None else []
    pinned = ("-A", str(cpus[1])) if cpus[1] is not None else ()
    server = ("iperf3", "-s", "-1", "-B", address, "-p", str(port), "--forceflush", *pinned)
    window = 0 if transfer.bytes else max(seconds * 10**9 - START_NS - GUARD_NS, 10**8)
    return Commands(tuple(client), server, "Server listening", omitted * 10**9 + START_NS, window)


def reading(transfer: Transfer, output: str, errors: str, status: int) -> ToolReading:
    """What the tool says it moved: bytes and seconds, or a rate as it printed it. Errors:
    ValueError with what it printed.
    """
    if status:
        raise ValueError(
            f"{_program(transfer)}: exit status {status}: {_complaint(output, errors)}; {BY_HAND}"
        )
    if transfer.tool.kind == "iperf3":
        return _iperf3_reading(output)
    match = re.search(transfer.tool.pattern, output + "\n" + errors)
    if match is None:
        raise ValueError(
            f"{_program(transfer)}: its output does not match the pattern"
            f" {transfer.tool.pattern!r}: {output.strip()[:200]!r}; correct tool.pattern"
        )
    groups = match.groupdict()
    if groups.get("rate"):
        parse_rate(groups["rate"])  # a rate that cannot be read fails the run
        return ToolReading(rate=groups["rate"])
    if not (groups.get("bytes") and groups.get("seconds")):
        raise ValueError(
            f"{_program(transfer)}: no number where the pattern matches {match[0][:200]!r};"
            f" {BY_HAND}"
        )
    return ToolReading(int(groups["bytes"]), float(groups["seconds"]))


def _program(transfer: Transfer) -> str:
    return transfer.tool.argv[0] if transfer.tool.argv else transfer.tool.kind


def _complaint(output: str, errors: str) -> str:
    try:
        return str(json.loads(output)["error"])[:200]
    except (ValueError, KeyError, TypeError, RecursionError):
        return (errors.strip() or output.strip() or "it printed nothing")[-200:]


def _iperf3_reading(output: str) -> ToolReading:
    try:
        report = json.loads(output)
        received = report["end"]["sum_received"]
        return ToolReading(int(received["bytes"]), float(received["seconds"]))
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError) as error:
        raise ValueError(
            f"iperf3: it printed no result: {output.strip()[:200]!r}; {BY_HAND}"
        ) from error
