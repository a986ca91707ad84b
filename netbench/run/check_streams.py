"""Whether both sides can serve a cell's streams: their threads, and their open files."""

from __future__ import annotations

from collections.abc import Iterator

from netbench.base.errors import EngineError
from netbench.engine.catalogue import Named
from netbench.engine.worker import Worker
from netbench.model import Transfer
from netbench.run.finding import Finding

LIMITS = "/proc/self/limits"
OWN_FILES = 64  # that a worker has open beside those of its streams
FILES_OF_STREAM = 2  # its connection, and its source or sink
ALONE = ("no_data", "fetches")


def check_streams(transfer: Transfer, sender: Worker, receiver: Worker) -> Iterator[Finding]:
    """Findings about streams and threads. Errors: those of losing a worker."""
    if transfer.tool.external:
        return
    sides = (
        (sender, sender.catalogue.send.get(transfer.send)),
        (receiver, receiver.catalogue.receive.get(transfer.receive)),
    )
    for worker, method in sides:
        if why := _why_not(transfer, method):
            yield Finding("error", worker.host, f"threads: {why}", "`exclude:` it", skips=True)
            return
    for worker, method in sides:
        needed, limit = _files(transfer, method), _most_files(worker)
        if limit is not None and needed > limit:
            yield Finding(
                "error",
                worker.host,
                f"streams: {transfer.streams} streams need {needed} open files, and a process"
                f" there may have {limit}",
                "use fewer streams, or raise the hard limit (nofile in limits.conf(5))",
            )


def _why_not(transfer: Transfer, method: Named | None) -> str:
    threads, streams = transfer.threads, transfer.streams
    if threads is None or method is None:
        return ""
    if threads > streams:
        return f"a stream has one thread at most, got threads: {threads} and streams: {streams}"
    if threads < streams and any(map(method.has, ALONE)):
        return f"{method.name} needs a thread for each stream"
    return ""


def _files(transfer: Transfer, method: Named | None) -> int:
    """Files that a side has open at most."""
    more = 3 if method and method.has("descriptors") else 0
    sources = transfer.source.count if transfer.source.kind == "files" else 0
    return OWN_FILES + transfer.streams * (FILES_OF_STREAM + more) + sources


def _most_files(worker: Worker) -> int | None:
    """The hard limit, to which a worker raises its own; None where the host does not tell."""
    try:
        lines, _ = worker.operate("file", LIMITS)
        (line,) = (line for line in lines.splitlines() if line.startswith("Max open files"))
        return int(line.split()[4])
    except (EngineError, LookupError, ValueError):
        return None
