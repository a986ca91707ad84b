"""iperf3 by its JSON report, and iperf 2, whose program is iperf, by its reports as CSV (-y C): one
line a stream and, but for the 2.1.8 of Debian 12, one of their sum.
https://software.es.net/iperf/invoking.html, https://iperf2.sourceforge.io/iperf-manpage.html
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from netbench.model import Transfer
from netbench.result.record import Capture
from netbench.tools.tool import (
    THROUGHPUT,
    Adaptor,
    Commands,
    Output,
    Place,
    Reading,
    moved,
    seconds_of,
    shown,
    stream_limits,
)

START_NS = 100_000_000  # until iperf3 has exchanged its parameters and moves data
GUARD_NS = 100_000_000  # the window closes so long before iperf3 stops
# With a report a second, a long one is larger than what is kept of an output. 60 is the most that
# iperf3 takes; with 0, iperf3 3.18 never ends a run of `-n`.
REPORT_SECONDS = "60"
# time, two addresses with ports, stream (-1: the sum), begin-end, bytes, bits/s
_REPORT = re.compile(
    r"^\d+(?:\.\d+)?,[^,\n]*,\d+,[^,\n]*,\d+,(?P<stream>-?\d+),(?P<begin>[\d.]+)-(?P<end>[\d.]+),"
    r"(?P<bytes>\d+),\d+",
    re.MULTILINE,
)
STREAMS_TOLD = 4  # of those that are added up; a record is short, and samples/ has all


def _client(program: str, transfer: Transfer, place: Place) -> list[str]:
    """What both take: where to, the sizes of calls and of the send buffer, streams, rate, file."""
    client = [program, "-c", place.address, "-p", str(place.port), "-l", str(transfer.chunk)]
    client += ["-P", str(transfer.streams)]
    client += ["-w", str(transfer.send_buffer)] if transfer.send_buffer else []
    client += ["-b", str(transfer.rate // transfer.streams)] if transfer.rate else []
    return client + (["-F", transfer.source.path] if transfer.source.kind == "file" else [])


class Iperf3(Adaptor):
    """iperf 3, with a server for each run, which leaves with its client."""

    name = "iperf3"
    program, package = "iperf3", "iperf3"
    drops_root = True
    # its server listens until it has had one client
    served_another = re.compile(
        "server is busy|receive (parameters|cookie|control message)|Connection refused"
    )

    def limits(self, transfer: Transfer, one_host: bool) -> Mapping[str, object]:
        sends = transfer.send in ("write", "readwrite", "sendfile")
        one_size = transfer.receive_buffer in (None, 0, transfer.send_buffer)
        return {
            "it sends by write or sendfile (-Z)": not sends,
            **stream_limits(transfer),
            "it has one size of buffer for both sides": not one_size,
        }

    def commands(self, transfer: Transfer, place: Place) -> Commands:
        client = [*_client("iperf3", transfer, place), "-J", "-i", REPORT_SECONDS]
        # it takes whole seconds
        seconds = math.ceil((transfer.duration or 0) / 1e9)
        omitted = math.ceil(transfer.warmup / 1e9)
        if transfer.bytes:
            client += ["-n", str(transfer.bytes)]
        else:
            client += ["-t", str(seconds), *(["-O", str(omitted)] if omitted else [])]
        client += ["-C", transfer.congestion] if transfer.congestion else []
        client += ["-Z"] if transfer.send == "sendfile" else []
        one_each = len(place.sender_cpus) <= 1 and len(place.receiver_cpus) <= 1  # as it pins
        client += ["-A", *map(str, place.sender_cpus)] if one_each and place.sender_cpus else []
        pinned = ("-A", *map(str, place.receiver_cpus)) if one_each and place.receiver_cpus else ()
        listen = ("-s", "-1", "-B", place.address, "-p", str(place.port), "--forceflush")
        return Commands(
            tuple(client),
            ("iperf3", *listen, *pinned),
            "Server listening",
            omitted * 10**9 + START_NS,
            0 if transfer.bytes else max(seconds * 10**9 - START_NS - GUARD_NS, 10**8),
            pinned=one_each,
        )

    def reading(self, transfer: Transfer, output: Output) -> Reading:
        try:
            received = json.loads(output.text)["end"]["sum_received"]
            return Reading(moved(int(received["bytes"]), float(received["seconds"])))
        except (ValueError, KeyError, TypeError, RecursionError, OverflowError) as error:
            raise ValueError(f"it printed no result: {shown(output.text)}") from error

    def complaint(self, output: Output) -> str:
        try:
            report: Any = json.loads(output.text)
            return str(report["error"])[:200]
        except (ValueError, KeyError, TypeError, RecursionError):
            return super().complaint(output)


class Iperf2(Adaptor):
    """iperf 2, by what its client says that it wrote: its server says nothing to wait for."""

    name = "iperf2"
    program, package = "iperf", "iperf"
    drops_root = True

    def limits(self, transfer: Transfer, one_host: bool) -> Mapping[str, object]:
        sends = transfer.send in ("write", "readwrite")
        return {"it sends by write": not sends, **stream_limits(transfer)}

    def commands(self, transfer: Transfer, place: Place) -> Commands:
        six = ("-V",) if transfer.ip == 6 else ()
        client = [*_client("iperf", transfer, place), "-y", "C", *six]
        if transfer.bytes:  # of each stream
            client += ["-n", str(transfer.bytes // transfer.streams)]
        else:
            client += ["-t", seconds_of(transfer)]
        client += ["-Z", transfer.congestion] if transfer.congestion else []
        server = ["iperf", "-s", "-B", place.address, "-p", str(place.port), *six]
        server += ["-l", str(transfer.receive_chunk)]
        server += ["-w", str(transfer.receive_buffer)] if transfer.receive_buffer else []
        return Commands(tuple(client), tuple(server))

    def reading(self, transfer: Transfer, output: Output) -> Reading:
        reports = list(_REPORT.finditer(output.text))
        sums = [report for report in reports if report["stream"] == "-1"]
        said = sums[-1:] or reports  # not every version adds up
        if not said or (not sums and len(reports) != transfer.streams):
            raise ValueError(f"it printed no result: {shown(output.text)}")
        seconds = max(float(each["end"]) for each in said) - min(float(e["begin"]) for e in said)
        text = "\n".join(each[0] for each in said[:STREAMS_TOLD])
        return Reading(
            moved(sum(int(each["bytes"]) for each in said), seconds), {THROUGHPUT: Capture(text)}
        )
