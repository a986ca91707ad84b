"""iperf3 by its JSON report: https://software.es.net/iperf/invoking.html."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from netbench.model import Transfer
from netbench.tools.tool import Adaptor, Commands, Output, Place, Reading, moved, shown

START_NS = 100_000_000  # until iperf3 has exchanged its parameters and moves data
GUARD_NS = 100_000_000  # the window closes so long before iperf3 stops
# With a report a second, a long one is larger than what is kept of an output. 60 is the most that
# iperf3 takes; with 0, iperf3 3.18 never ends a run of `-n`.
REPORT_SECONDS = "60"


class Iperf3(Adaptor):
    """iperf 3, with a server for each run, which leaves with its client; in whole seconds."""

    name = "iperf3"
    program = "iperf3"
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
            "it receives by read": transfer.receive != "read",
            "it writes to no file": transfer.sink.kind != "discard",
            "it takes memory or one file as source": transfer.source.kind == "files",
            "it knows no preamble": transfer.preamble > 0,
            "it knows no alignment": transfer.align > 0,
            "its calls have a size": transfer.chunk == 0,
            "it leaves the page cache as it is": transfer.cache == "cold",
            "it does no direct I/O": transfer.direct,
            "it has one size of buffer for both sides": not one_size,
        }

    def commands(self, transfer: Transfer, place: Place) -> Commands:
        client = ["iperf3", "-c", place.address, "-p", str(place.port), "-l", str(transfer.chunk)]
        client += ["-P", str(transfer.streams), *(["-B", place.source] if place.source else [])]
        client += ["-w", str(transfer.send_buffer)] if transfer.send_buffer else []
        client += ["-b", str(transfer.rate // transfer.streams)] if transfer.rate else []
        client += ["-F", transfer.source.path] if transfer.source.kind == "file" else []
        client += ["-J", "-i", REPORT_SECONDS]
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
