"""iperf 2, whose program is iperf: its reports as CSV (-y C), one line a stream and one of their
sum. https://iperf2.sourceforge.io/iperf-manpage.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from netbench.model import Transfer
from netbench.record import Capture
from netbench.tools.base import (
    THROUGHPUT,
    Adaptor,
    Commands,
    Output,
    Place,
    Reading,
    chosen,
    moved,
    seconds_of,
    shown,
)

# time, two addresses with ports, stream (-1: the sum), begin-end, bytes, bits/s
_REPORT = re.compile(
    r"^\d+(?:\.\d+)?,[^,\n]*,\d+,[^,\n]*,\d+,(?P<stream>-?\d+),(?P<begin>[\d.]+)-(?P<end>[\d.]+),"
    r"(?P<bytes>\d+),\d+",
    re.MULTILINE,
)


class Iperf2(Adaptor):
    """What its client says that it wrote: its server says nothing that could be waited for."""

    name = "iperf2"
    program, package = "iperf", "iperf"

    def limits(self, transfer: Transfer, one_host: bool) -> Iterator[str]:
        return chosen(
            {
                "it sends by write": transfer.send not in ("write", "readwrite"),
                "it receives by read": transfer.receive != "read",
                "it writes to no file": transfer.sink.kind != "discard",
                "it takes memory or one file as source": (transfer.source.kind == "files"),
                "it knows no preamble": transfer.preamble > 0,
                "it knows no alignment": transfer.align > 0,
                "its calls have a size": transfer.chunk == 0,
                "it leaves the page cache as it is": transfer.cache == "cold",
                "it does no direct I/O": transfer.direct,
            }
        )

    def commands(self, transfer: Transfer, place: Place) -> Commands:
        six = ("-V",) if transfer.ip == 6 else ()
        client = ["iperf", "-c", place.address, "-p", str(place.port), "-y", "C", *six]
        client += ["-l", str(transfer.chunk), "-P", str(transfer.streams)]
        if transfer.bytes:  # of each stream
            client += ["-n", str(transfer.bytes // transfer.streams)]
        else:
            client += ["-t", seconds_of(transfer)]
        client += ["-w", str(transfer.send_buffer)] if transfer.send_buffer else []
        client += ["-Z", transfer.congestion] if transfer.congestion else []
        client += ["-b", str(transfer.rate // transfer.streams)] if transfer.rate else []
        client += ["-F", transfer.source.path] if transfer.source.kind == "file" else []
        server = ["iperf", "-s", "-B", place.address, "-p", str(place.port), *six]
        server += ["-l", str(transfer.receive_chunk)]
        server += ["-w", str(transfer.receive_buffer)] if transfer.receive_buffer else []
        return Commands(tuple(client), tuple(server))

    def reading(self, transfer: Transfer, output: Output) -> Reading:
        reports = list(_REPORT.finditer(output.text))
        sums = [report for report in reports if report["stream"] == "-1"] or reports
        if not reports or (transfer.streams > 1 and len(sums) > 1):
            raise ValueError(f"it printed no result: {shown(output.text)}")
        said = sums[-1]
        seconds = float(said["end"]) - float(said["begin"])
        return Reading(moved(int(said["bytes"]), seconds), {THROUGHPUT: Capture(said[0])})
