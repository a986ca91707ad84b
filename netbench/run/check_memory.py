"""Whether the buffers of all streams fit in the memory of their hosts."""

from __future__ import annotations

from collections.abc import Iterator

from netbench.base.errors import EngineError
from netbench.engine import binding
from netbench.engine.catalogue import Named
from netbench.engine.worker import Worker
from netbench.model import Transfer
from netbench.run.finding import Finding

MEMORY = "/proc/meminfo"
MEMORY_FILE = 1 << 20  # the least that a source in memory has for methods that read descriptors


def check_memory(transfer: Transfer, sender: Worker, receiver: Worker) -> Iterator[Finding]:
    """Findings about the buffers of a transfer; both sides count where they share a kernel. Errors:
    those of losing a worker.
    """
    if transfer.tool.external:
        return
    sides = [(sender, _sent(transfer, sender)), (receiver, _received(transfer, receiver))]
    if sender.hello.boot_id == receiver.hello.boot_id:
        sides = [(sender, sides[0][1] + sides[1][1])]
    for worker, size in sides:
        needed = transfer.streams * size
        available = _available(worker)
        if available is not None and needed > available:
            yield Finding(
                "error",
                worker.host,
                f"streams: the buffers of {transfer.streams} streams need {_gib(needed)} of memory,"
                f" and {_gib(available)} are available",
                "use fewer streams, or a smaller chunk or receive_chunk",
            )


def _sent(transfer: Transfer, worker: Worker) -> int:
    """Bytes that a stream of the sender allocates."""
    method = worker.catalogue.send.get(transfer.send)
    if method is None:
        return 0
    named = transfer.source.kind in ("file", "files")
    buffer = _buffers(method, transfer.chunk, transfer) if _has_buffer(method, named) else 0
    reads_descriptor = method.has("from_file") and not method.has("from_buffer")
    if transfer.source.kind == "memory" and reads_descriptor and not method.has("no_data"):
        chunk = transfer.chunk or 1
        buffer += -(-MEMORY_FILE // chunk) * chunk
    return buffer


def _received(transfer: Transfer, worker: Worker) -> int:
    """Bytes that a stream of the receiver allocates."""
    method = worker.catalogue.receive.get(transfer.receive)
    if method is None or not _has_buffer(method, named=False):
        return 0
    return _buffers(method, transfer.receive_chunk, transfer)


def _buffers(method: Named, chunk: int, transfer: Transfer) -> int:
    """Bytes of the buffers of a chunk that each stream has: as many as are asked for, else as the
    method has for a chunk of this size.
    """
    asked = any(option.name == "queue_depth" for option in method.options)
    if asked and "queue_depth" in transfer.options:
        return chunk * int(transfer.options["queue_depth"])
    many = chunk * method.row.maximum
    return many if 0 < many <= binding.SMALL_BUFFERS else chunk * (method.row.minimum or 1)


def _has_buffer(method: Named, named: bool) -> bool:
    return method.has("buffers") and not (named and method.has("from_buffer"))


def _available(worker: Worker) -> int | None:
    """Bytes that can be allocated without swapping, as the kernel estimates (proc(5)); None where
    the host does not tell.
    """
    try:
        lines, _ = worker.operate("file", MEMORY)
        fields = dict(line.split(":", 1) for line in lines.splitlines() if ":" in line)
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (EngineError, LookupError, ValueError):
        return None


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"
