"""dd(1) of coreutils: the baselines of reading and of writing a file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from netbench.model import Transfer
from netbench.result.record import Capture
from netbench.tools.copies import Copy
from netbench.tools.tool import THROUGHPUT, Output, Reading, moved, shown

_REPORT = re.compile(r"^(?P<bytes>\d+) bytes .*?copied, (?P<seconds>[\d.e+-]+) s", re.MULTILINE)


class Dd(Copy):
    """It copies `bytes` in calls of `chunk`: from the source to nowhere, or zeroes to the sink."""

    name = program = "dd"
    takes = ("zero", "memory", "file")

    def limits(self, transfer: Transfer, one_host: bool) -> Iterator[str]:
        yield from super().limits(transfer, one_host)
        if transfer.fsync == "after":
            yield "it forces its file to the disk within its time (fsync: window), or not at all"
        if not transfer.bytes:
            yield "it copies so many bytes, not for a time: write `bytes`"
        if not transfer.chunk:
            yield "its calls have a size"

    def argv(self, transfer: Transfer, source: str, sink: str) -> tuple[str, ...]:
        direct = transfer.direct
        # its report is in the language of the login
        return (
            *("env", "LC_ALL=C", "dd", f"if={source}", f"of={sink}"),
            f"bs={transfer.chunk}",
            f"count={transfer.bytes}",
            f"iflag=count_bytes,fullblock{',direct' if direct and transfer.source.path else ''}",
            *(("oflag=direct",) if direct and transfer.sink.path else ()),
            *(("conv=fsync",) if transfer.fsync == "window" else ()),
        )

    def reading(self, transfer: Transfer, output: Output) -> Reading:
        match = _REPORT.search(output.errors)
        if match is None or not float(match["seconds"]):
            raise ValueError(f"it printed no result: {shown(output.errors)}")
        copied = int(match["bytes"])
        if copied != transfer.bytes:
            raise ValueError(f"it copied {copied} of {transfer.bytes} bytes: the source is shorter")
        said = moved(copied, float(match["seconds"]))
        return Reading(said, {THROUGHPUT: Capture(match[0])})
