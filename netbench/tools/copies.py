"""Tools that copy on one host: what they share, and dd(1), the baseline of reading and of writing a
file, cp(1) and cat(1) of coreutils.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping

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
    shown,
)

_REPORT = re.compile(r"^(?P<bytes>\d+) bytes .*?copied, (?P<seconds>[\d.e+-]+) s", re.MULTILINE)


class Copy(Adaptor):
    """Runs where the sink is, if that is a file, else where the source is."""

    package = "coreutils"
    takes: tuple[str, ...]  # kinds of sources

    def limits(self, transfer: Transfer, one_host: bool) -> Mapping[str, object]:
        by_call = transfer.send in ("write", "readwrite") and transfer.receive == "read"
        two_files = transfer.source.kind == "file" and transfer.sink.kind == "file"
        return {
            "it copies by read and write": not by_call,
            "it copies on one host, and source and sink are files of two": two_files
            and not one_host,
            f"its source is {' or '.join(self.takes)}": transfer.source.kind not in self.takes,
            "it copies one stream": transfer.streams > 1,
            "it knows no rate": transfer.rate is not None,
            "it leaves the page cache as it is": transfer.cache == "cold",
        }

    def commands(self, transfer: Transfer, place: Place) -> Commands:
        source, sink = transfer.source.path or "/dev/zero", transfer.sink.path or "/dev/null"
        return Commands(self.argv(transfer, source, sink), on_receiver=transfer.sink.kind == "file")

    @abstractmethod
    def argv(self, transfer: Transfer, source: str, sink: str) -> tuple[str, ...]:
        """Its command line for these paths."""


class WholeFile(Copy):
    """A copy of a whole file by cp(1) or cat(1), which chooses its calls itself.

    It prints nothing. `before` the paths.
    """

    takes = ("file",)

    def __init__(self, name: str, *before: str) -> None:
        self.name = self.program = name
        self._before = before

    def argv(self, transfer: Transfer, source: str, sink: str) -> tuple[str, ...]:
        return (*self._before, source, sink)

    def limits(self, transfer: Transfer, one_host: bool) -> Mapping[str, object]:
        return {
            **super().limits(transfer, one_host),
            "it does no direct I/O": transfer.direct,
            "it does not force its file to the disk": transfer.fsync != "none",
        }

    def reading(self, transfer: Transfer, output: Output) -> Reading:
        """The size of its source over the time that it took."""
        if output.source_size is None or not output.seconds:
            raise ValueError("the size of its source, or the time that it took, is not known")
        return Reading(moved(output.source_size, output.seconds))


CP = WholeFile("cp", "cp", "--")  # copy_file_range(2), or read(2) and write(2)
# A shell opens its output, and becomes cat.
CAT = WholeFile("cat", "sh", "-c", 'exec cat -- "$1" >"$2"', "cat")


class Dd(Copy):
    """dd(1): `bytes` in calls of `chunk`: from the source to nowhere, or zeroes to the sink."""

    name = program = "dd"
    takes = ("zero", "memory", "file")

    def limits(self, transfer: Transfer, one_host: bool) -> Mapping[str, object]:
        within = "it forces its file to the disk within its time (fsync: window), or not at all"
        return {
            **super().limits(transfer, one_host),
            within: transfer.fsync == "after",
            "it copies so many bytes, not for a time: write `bytes`": not transfer.bytes,
            "its calls have a size": not transfer.chunk,
        }

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
