"""iperf 2, whose program is iperf: its reports as CSV (-y C), one line a stream and, but for the
2.1.8 of Debian 12, one of their sum. https://iperf2.sourceforge.io/iperf-manpage.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from netbench.model import Transfer
from netbench.result.record import Capture
from netbench.tools.tool import (
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
    stream_limits,
)

# time, two addresses with ports, stream (-1: the sum), begin-end, bytes, bits/s
_REPORT = re.compile(
    r"^\d+(?:\.\d+)?,[^,\n]*,\d+,[^,\n]*,\d+,(?P<stream>-?\d+),(?P<begin>[\d.]+)-(?P<end>[\d.]+),"
    r"(?P<bytes>\d+),\d+",
    re.MULTILINE,
)
STREAMS_TOLD = 4  # of those that are added up; a record is short, and samples/ has all


class Iperf2(Adaptor):
    """What its client says that it wrote: its server says nothing that could be waited for."""

    name = "iperf2"
    program, package = "iperf", "iperf"
    drops_root = True

    def limits(self, transfer: Transfer, one_host: bool) -> Iterator[str]:
        sends = transfer.send in ("write", "readwrite")
        return chosen({"it sends by write": not sends, **stream_limits(transfer)})

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
        sums = [report for report in reports if report["stream"] == "-1"]
        said = sums[-1:] or reports  # not every version adds up
        if not said or (not sums and len(reports) != transfer.streams):
            raise ValueError(f"it printed no result: {shown(output.text)}")
        seconds = max(float(each["end"]) for each in said) - min(float(e["begin"]) for e in said)
        text = "\n".join(each[0] for each in said[:STREAMS_TOLD])
        return Reading(
            moved(sum(int(each["bytes"]) for each in said), seconds), {THROUGHPUT: Capture(text)}
        )
