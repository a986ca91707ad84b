"""A cell's transfer as the options of one side's job. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from netbench.engine.frames import Value
from netbench.model import OR_DEFAULT, Source, Transfer
from netbench.settings import nfs

Options = dict[str, Value]

VERIFY_BYTES = 8 * 1024 * 1024 + 1
FETCH_NS = 10**7  # of a run that verifies what is fetched: what counts is read after it


def metering(
    meters: Collection[str],
    interface: str,
    without_host_wide: bool,
    footprint: int,
    peer_cpus: tuple[int, ...],
) -> Options:
    """What a worker reads at the window's edges, as options of any job. `interface`: of the data
    address, "" where it is not known; `without_host_wide`: another worker reads what is of the
    whole kernel; `footprint`: bytes that each soaker goes through; `peer_cpus`: of this kernel,
    those that the other side's flows have for themselves.
    """
    options: Options = {"meters": "\0".join(meters), "interface": interface}
    options["footprint"] = footprint
    if peer_cpus:
        options["peer_cpu"] = peer_cpus
    return options | ({"without_host_wide": 1} if without_host_wide else {})


def _common(transfer: Transfer, token: bytes, cpus: tuple[int, ...]) -> Options:
    options: Options = {"token": token, "streams": transfer.streams, "warmup": transfer.warmup}
    options["sample"] = transfer.sample
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
    return options


def _source(source: Source) -> Options:
    options: Options = {"source": source.kind}
    if source.path:
        options["source_path"] = source.path
    if source.kind == "files":
        options |= {"source_files": source.count, "source_size": source.size}
    return options


def sink_paths(transfer: Transfer) -> list[str]:
    """The files that a transfer's streams write, as the engine names them."""
    path = transfer.sink.path
    return [path, *(f"{path}.{stream}" for stream in range(1, transfer.streams))] if path else []


def _sink(transfer: Transfer, made: Mapping[str, str]) -> Options:
    sink = transfer.sink
    options: Options = {"sink": sink.kind}
    if sink.path:
        files = "\0".join(made.get(path, "") for path in sink_paths(transfer))
        options |= {"sink_path": sink.path, "overwrite": int(sink.overwrite), "sink_files": files}
    return options


def sender_options(
    transfer: Transfer,
    token: bytes,
    cpus: tuple[int, ...],
    declared: Collection[str],
) -> Options:
    """The sender's job, without the receiver's address and port. `declared`: options that its
    method declares.
    """
    options = _common(transfer, token, cpus) | _source(transfer.source)
    options |= {
        "role": "send",
        "method": transfer.send,
        "chunk": transfer.chunk,
        "align": transfer.align,
    }
    options |= {"preamble": transfer.preamble, "cache": transfer.cache, "rate": transfer.rate or 0}
    options["send_buffer"] = transfer.send_buffer or 0
    options["direct"] = int(transfer.direct)
    return options | own_options(transfer, declared)


def receiver_options(
    transfer: Transfer,
    token: bytes,
    cpus: tuple[int, ...],
    declared: Collection[str],
    made: Mapping[str, str],
) -> Options:
    """The receiver's job, without the address that it listens on. `made`: files of earlier
    runs by path, as the option `sink_files` names them.
    """
    options = _common(transfer, token, cpus) | _sink(transfer, made)
    options |= {
        "role": "receive",
        "method": transfer.receive,
        "receive_chunk": transfer.receive_chunk,
    }
    options["receive_buffer"] = transfer.receive_buffer or 0
    options |= {"direct": int(transfer.direct), "fsync": transfer.fsync}
    low, high = transfer.port or (0, 0)
    return options | {"port_low": low, "port_high": high} | own_options(transfer, declared)


def fetched(transfer: Transfer, sender: str) -> Options:
    """Where a receiver that fetches finds the source of a sender with this data address."""
    return {"source": "file", "source_path": nfs.path(sender, transfer.source.path)}


def own_options(transfer: Transfer, declared: Collection[str]) -> Options:
    """The options that a method declares itself, of those written in the campaign."""
    return {name: value for name, value in transfer.options.items() if name in declared}
