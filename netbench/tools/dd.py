"""dd(1), the baseline of reading and of writing a file."""

from __future__ import annotations

import re
from collections.abc import Mapping

from netbench.model import Transfer
from netbench.result.record import Capture
from netbench.tools.tool import THROUGHPUT, Adaptor, Commands, Output, Place, Reading, moved, shown

_REPORT = re.compile(r"^(?P<bytes>\d+) bytes .*?copied, (?P<seconds>[\d.e+-]+) s", re.MULTILINE)


class Dd(Adaptor):
    """dd(1): `bytes` in calls of `chunk`: from the source to nowhere, or zeroes to the sink. It
    runs where the sink is, if that is a file, else where the source is.
    """

    name = program = "dd"

    def limits(self, transfer: Transfer, one_host: bool) -> Mapping[str, object]:
        by_call = transfer.send in ("write", "readwrite") and transfer.receive == "read"
        two_files = transfer.source.kind == "file" and transfer.sink.kind == "file"
        within = "it forces its file to the disk within its time (fsync: window), or not at all"
        return {
            "it copies by read and write": not by_call,
            "it copies on one host, and source and sink are files of two": two_files
            and not one_host,
            "its source is zero, memory or one file": transfer.source.kind == "files",
            "it copies one stream": transfer.streams > 1,
            "it knows no rate": transfer.rate is not None,
            "it leaves the page cache as it is": transfer.cache == "cold",
            within: transfer.fsync == "after",
            "it copies so many bytes, not for a time: write `bytes`": not transfer.bytes,
            "its calls have a size": not transfer.chunk,
        }

    def commands(self, transfer: Transfer, place: Place) -> Commands:
        source, sink = transfer.source.path or "/dev/zero", transfer.sink.path or "/dev/null"
        direct = transfer.direct
        # its report is in the language of the login
        argv = (
            *("env", "LC_ALL=C", "dd", f"if={source}", f"of={sink}"),
            f"bs={transfer.chunk}",
            f"count={transfer.bytes}",
            f"iflag=count_bytes,fullblock{',direct' if direct and transfer.source.path else ''}",
            *(("oflag=direct",) if direct and transfer.sink.path else ()),
            *(("conv=fsync",) if transfer.fsync == "window" else ()),
        )
        return Commands(argv, on_receiver=transfer.sink.kind == "file")

    def reading(self, transfer: Transfer, output: Output) -> Reading:
        match = _REPORT.search(output.errors)
        if match is None or not float(match["seconds"]):
            raise ValueError(f"it printed no result: {shown(output.errors)}")
        copied = int(match["bytes"])
        if copied != transfer.bytes:
            raise ValueError(f"it copied {copied} of {transfer.bytes} bytes: the source is shorter")
        rate = moved(copied, float(match["seconds"]))
        return Reading(rate, {THROUGHPUT: Capture(match[0])})
