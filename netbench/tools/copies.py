"""What the tools that copy on one host share: where they run, and what they cannot do."""

from __future__ import annotations

from collections.abc import Iterator

from netbench.model import Transfer
from netbench.tools.base import Output, Reading, chosen, moved

_ZERO = "/dev/zero"
_NULL = "/dev/null"


def runs_on_receiver(transfer: Transfer) -> bool:
    """A copy to a file is where the sink is; any other, where the source is."""
    return transfer.sink.kind == "file"


def source_path(transfer: Transfer) -> str:
    """What is read."""
    return transfer.source.path or _ZERO


def sink_path(transfer: Transfer) -> str:
    """What is written."""
    return transfer.sink.path or _NULL


def limits(transfer: Transfer, one_host: bool, takes: tuple[str, ...]) -> Iterator[str]:
    """Why a copy on one host cannot do a cell. `takes`: kinds of sources."""
    two_files = transfer.source.kind == "file" and transfer.sink.kind == "file"
    return chosen(
        {
            "it copies by read and write": (
                transfer.send not in ("write", "readwrite") or transfer.receive != "read"
            ),
            "it copies on one host, and source and sink are files of two": two_files
            and not one_host,
            f"its source is {' or '.join(takes)}": transfer.source.kind not in takes,
            "it copies one stream": transfer.streams > 1,
            "it knows no rate": transfer.rate is not None,
            "it leaves the page cache as it is": transfer.cache == "cold",
        }
    )


def limits_of_programs(transfer: Transfer) -> Iterator[str]:
    """Why a program without options for it cannot do a cell."""
    return chosen(
        {
            "it does no direct I/O": transfer.direct,
            "it does not force its file to the disk": transfer.fsync != "none",
        }
    )


def whole_file(output: Output) -> Reading:
    """A copy that prints nothing: the size of its source over the time that it took. Errors:
    ValueError.
    """
    if output.source_size is None or not output.seconds:
        raise ValueError("the size of its source, or the time that it took, is not known")
    return Reading(moved(output.source_size, output.seconds))
