"""A cell's transfer as the options of one side's job. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from netbench.engine.catalogue import Named
from netbench.engine.frames import Value
from netbench.engine.worker import Worker
from netbench.model import OR_DEFAULT, Transfer
from netbench.result.journal import Journal, MadeSink

Options = dict[str, Value]

VERIFY_BYTES = 8 * 1024 * 1024 + 1
FETCH_NS = 10**7  # of a run that verifies what is fetched: what counts is read after it


def _common(
    transfer: Transfer, token: bytes, cpus: tuple[int, ...], method: Named | None
) -> Options:
    """What both sides are told; of the campaign's options those of this side's method."""
    declared = {"seed", *(option.name for option in (method.options if method else ()))}
    options: Options = {"token": token, "streams": transfer.streams, "warmup": transfer.warmup}
    options |= {"sample": transfer.sample, "direct": int(transfer.direct)}
    if transfer.bytes is not None:
        options["bytes"] = transfer.bytes
    else:
        options["duration"] = transfer.duration or 0
    if transfer.congestion is not None:
        options["congestion"] = transfer.congestion.removesuffix(OR_DEFAULT)
        options["congestion_or_default"] = int(transfer.congestion.endswith(OR_DEFAULT))
    if transfer.threads is not None:
        options["threads"] = transfer.threads
    if cpus:
        options["cpu"] = cpus
    own = transfer.options.items()
    sizes = {f"{name}s": _sizes(v) for name, v in own if name in ("request", "response")}
    return options | sizes | {name: v for name, v in own if name in declared}


def _sizes(sizes: int | str) -> Value:
    """A size; or those that are drawn, each with the sum of shares up to its own (request.h)."""
    if isinstance(sizes, int):
        return sizes
    pairs = sorted(
        (int(size), float(share)) for size, share in (each.split(":") for each in sizes.split(","))
    )
    sums = accumulate(share for _, share in pairs)
    return tuple(round(of * 2**32) << 25 | size for of, (size, _) in zip(sums, pairs, strict=True))


def sink_paths(transfer: Transfer) -> list[str]:
    """The files that a transfer's streams write, as the engine names them."""
    path = transfer.sink.path
    return [path, *(f"{path}.{stream}" for stream in range(1, transfer.streams))] if path else []


def sender_options(
    transfer: Transfer, token: bytes, cpus: tuple[int, ...], worker: Worker
) -> Options:
    """The sender's job, without the receiver's address and port."""
    source = transfer.source
    options = _common(transfer, token, cpus, worker.catalogue.send.get(transfer.send))
    options |= {"role": "send", "method": transfer.send, "source": source.kind}
    options |= {"chunk": transfer.chunk, "align": transfer.align, "preamble": transfer.preamble}
    options |= {"cache": transfer.cache, "rate": transfer.rate or 0}
    options["send_buffer"] = transfer.send_buffer or 0
    if source.path:
        options["source_path"] = source.path
    if source.kind == "files":
        options |= {"source_files": source.count, "source_size": source.size}
    return options


def receiver_options(
    transfer: Transfer, token: bytes, cpus: tuple[int, ...], worker: Worker, made: Mapping[str, str]
) -> Options:
    """The receiver's job, without the address that it listens on. `made`: files of earlier
    runs by path, as the option `sink_files` names them.
    """
    sink, (low, high) = transfer.sink, transfer.port or (0, 0)
    options = _common(transfer, token, cpus, worker.catalogue.receive.get(transfer.receive))
    options |= {"role": "receive", "method": transfer.receive, "sink": sink.kind}
    options |= {"receive_chunk": transfer.receive_chunk, "fsync": transfer.fsync}
    options |= {"receive_buffer": transfer.receive_buffer or 0, "port_low": low, "port_high": high}
    if sink.path:
        files = "\0".join(made.get(path, "") for path in sink_paths(transfer))
        options |= {"sink_path": sink.path, "overwrite": int(sink.overwrite), "sink_files": files}
    return options


class MadeSinks:
    """Sinks by host, kept in the journal: a resumed campaign knows those of earlier sessions."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._made = {(sink.host, sink.path): sink for sink in journal.all(MadeSink)}

    def on(self, worker: Worker) -> dict[str, str]:
        """Files of a worker's host by path, as `DEVICE:INODE` (0: any device)."""
        boot_id = worker.hello.boot_id
        return {
            path: f"{sink.device if sink.boot_id == boot_id else 0}:{sink.inode}"
            for (host, path), sink in self._made.items()
            if host == worker.host
        }

    def add(
        self,
        worker: Worker,
        paths: Sequence[str],
        devices: Sequence[int] | None,
        inodes: Sequence[int] | None,
    ) -> None:
        """Journal files that were made; those without numbers are devices. Errors: StoreError."""
        for path, device, inode in zip(paths, devices or (), inodes or (), strict=False):
            sink = MadeSink(path, worker.host, worker.hello.boot_id, device, inode)
            if self._made.get((sink.host, path)) != sink:
                self._made[sink.host, path] = sink
                self._journal.write(sink)
