"""Tools that copy on one host: what they share, and cp(1) and cat(1) of coreutils."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

from netbench.model import Transfer
from netbench.tools.tool import Adaptor, Commands, Output, Place, Reading, chosen, moved


class Copy(Adaptor):
    """Runs where the sink is, if that is a file, else where the source is."""

    package = "coreutils"
    takes: tuple[str, ...]  # kinds of sources

    def limits(self, transfer: Transfer, one_host: bool) -> Iterator[str]:
        two_files = transfer.source.kind == "file" and transfer.sink.kind == "file"
        return chosen(
            {
                "it copies by read and write": (
                    transfer.send not in ("write", "readwrite") or transfer.receive != "read"
                ),
                "it copies on one host, and source and sink are files of two": two_files
                and not one_host,
                f"its source is {' or '.join(self.takes)}": transfer.source.kind not in self.takes,
                "it copies one stream": transfer.streams > 1,
                "it knows no rate": transfer.rate is not None,
                "it leaves the page cache as it is": transfer.cache == "cold",
            }
        )

    def commands(self, transfer: Transfer, place: Place) -> Commands:
        source, sink = transfer.source.path or "/dev/zero", transfer.sink.path or "/dev/null"
        return Commands(self.argv(transfer, source, sink), on_receiver=transfer.sink.kind == "file")

    @abstractmethod
    def argv(self, transfer: Transfer, source: str, sink: str) -> tuple[str, ...]:
        """Its command line for these paths."""


class WholeFile(Copy):
    """It chooses its calls itself, copies a whole file and prints nothing. `before` the paths."""

    takes = ("file",)

    def __init__(self, name: str, *before: str) -> None:
        self.name = self.program = name
        self._before = before

    def argv(self, transfer: Transfer, source: str, sink: str) -> tuple[str, ...]:
        return (*self._before, source, sink)

    def limits(self, transfer: Transfer, one_host: bool) -> Iterator[str]:
        yield from super().limits(transfer, one_host)
        if transfer.direct:
            yield "it does no direct I/O"
        if transfer.fsync != "none":
            yield "it does not force its file to the disk"

    def reading(self, transfer: Transfer, output: Output) -> Reading:
        """The size of its source over the time that it took."""
        if output.source_size is None or not output.seconds:
            raise ValueError("the size of its source, or the time that it took, is not known")
        return Reading(moved(output.source_size, output.seconds))


CP = WholeFile("cp", "cp", "--")  # copy_file_range(2), or read(2) and write(2)
# A shell opens its output, and becomes cat.
CAT = WholeFile("cat", "sh", "-c", 'exec cat -- "$1" >"$2"', "cat")
