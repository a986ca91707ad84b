"""What makes a cell impossible: methods, sources and settings that do not go together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from ipaddress import ip_address
from itertools import combinations
from typing import Any, NamedTuple

from netbench.base.names import AS_IS
from netbench.campaign.edit import BOUNDS
from netbench.campaign.matrix import NO_FACTORS, Combination
from netbench.campaign.messages import listed
from netbench.campaign.problems import Problems
from netbench.campaign.schema.transfer import OF_BULK, STREAMS_MAX, method_options
from netbench.campaign.schema.transfer_values import PerSecond
from netbench.campaign.settings import differing_ends
from netbench.campaign.tree import Loc
from netbench.engine.catalogue import Catalogue, Named
from netbench.model import WHOLE_FILE, Cell, Host, Pair, SettingLevel, Transfer
from netbench.settings.named import side_of

SECTOR = 512  # bytes; no disk has smaller ones
Complaint = tuple[tuple[str, ...], str]
"""The keys that disagree, the first of them to blame, and what is wrong."""
_SOURCES = {"memory": "from_memory", "zero": "from_zero", "file": "from_file", "files": "from_file"}


class Context(NamedTuple):
    """What a cell is checked against."""

    catalogue: Catalogue
    hosts: Mapping[str, Host]
    pairs: tuple[Pair, ...]
    alone: tuple[str, ...] = ()  # pairs whose ends are one machine
    # held for the whole campaign
    settings: Mapping[str, SettingLevel] = {}


def check(
    base: Mapping[str, Any],
    cells: Iterable[tuple[Combination, Cell]],
    context: Context,
    problems: Problems,
) -> None:
    """Note what makes cells impossible; one problem for all cells that have it."""
    cells = list(cells)
    _unused_options(base, [cell for _, cell in cells], context.catalogue, problems)
    cells_of: dict[tuple[Loc, str], list[str]] = {}
    for combination, cell in cells:
        for keys, message in _complaints(base, combination, cell, context):
            cells_of.setdefault((_place(keys, base, combination, context), message), []).append(
                cell.id
            )
    for (loc, message), ids in cells_of.items():
        more = f" and {len(ids) - 1} more" if len(ids) > 1 else ""
        which = "" if ids[0] == NO_FACTORS else f"cell {ids[0]}{more}: "
        problems.add(loc, which + message)


def _place(
    keys: tuple[str, ...], base: Mapping[str, Any], combination: Combination, context: Context
) -> Loc:
    for key in keys:
        if key in combination:
            return combination[key].at
    written = {"transfer": base, "settings": context.settings}
    return next(
        ((top, key) for key in keys for top, table in written.items() if key in table),
        ("transfer",),
    )


def _complaints(
    base: Mapping[str, Any], combination: Combination, cell: Cell, context: Context
) -> Iterator[Complaint]:
    transfer = cell.transfer
    for one, other in combinations(BOUNDS, 2):
        if one in combination and other in combination:
            yield (other, one), f"a run is bounded by {one} or by {other}, got both"
    if "socket_buffer" in combination and all(
        k in base or k in combination for k in ("send_buffer", "receive_buffer")
    ):
        yield (
            ("socket_buffer",),
            "send_buffer and receive_buffer are both written, so socket_buffer changes nothing",
        )
    yield from _addresses(transfer, context)
    yield from _one_host(cell, context)
    yield from _needs_setting(cell, context)
    yield from _files(transfer)
    if transfer.tool.external:
        return  # the engine's methods take no part
    send, receive = (
        context.catalogue.send.get(transfer.send),
        context.catalogue.receive.get(transfer.receive),
    )
    yield from _pairing(send, receive, transfer)
    if send:
        yield from _sending(send, transfer)
    if (
        receive
        and transfer.sink.kind == "file"
        and not receive.has("to_file")
        and not receive.has("no_data")
    ):
        yield (
            ("receive", "sink"),
            f"receive method {receive.name} cannot fill a file, expected sink: discard",
        )
    if send and send.has("requests"):
        yield from _requesting({*base, *combination}, transfer)
    elif isinstance(transfer.rate, PerSecond):
        yield ("rate",), f"rate: {transfer.rate}/s is of requests, expected one such as 1Gb/s"
    yield from _options(combination, transfer, context.catalogue)


def _needs_setting(cell: Cell, context: Context) -> Iterator[Complaint]:
    """A method that fetches does so by what the setting of its name makes."""
    send = context.catalogue.send.get(cell.transfer.send)
    if send and send.has("fetches") and not cell.transfer.tool.external:
        levels = {**context.settings, **cell.settings}
        if not any(
            level.value not in ("off", AS_IS)
            for key, level in levels.items()
            if side_of(key)[1] == send.name
        ):
            yield (
                (send.name, "send"),
                (
                    f"send method {send.name} needs the setting {send.name}, expected {send.name}:"
                    " on or options"
                ),
            )


def _pairing(send: Named | None, receive: Named | None, transfer: Transfer) -> Iterator[Complaint]:
    """A method without data, or of requests, pairs only with its like."""
    asking = [bool(method and method.has("requests")) for method in (send, receive)]
    if any(asking) and transfer.send != transfer.receive:
        message = (
            "requests are written and read by both ends, expected send: write and receive: read,"
            f" got {transfer.send} and {transfer.receive}"
        )
        yield ("send", "receive"), message
        return
    if (send and send.has("fetches")) or (receive and receive.has("fetches")):
        yield from _fetching(send, receive, transfer)
        return
    still = [bool(method and method.has("no_data")) for method in (send, receive)]
    if still[0] != still[1]:
        idle, busy = ("send", "receive") if still[0] else ("receive", "send")
        own, other = getattr(transfer, idle), getattr(transfer, busy)
        yield (
            (idle, busy),
            (
                f"{idle} method {own} moves no data and pairs only with its like, got {busy}"
                f" method {other}"
            ),
        )


def _requesting(written: Collection[str], transfer: Transfer) -> Iterator[Complaint]:
    """Keys of bulk mean nothing to requests; an open loop has a rate of these."""
    for key in OF_BULK:
        if key in written:
            yield (key,), f"{key} means nothing to requests, whose sizes are request and response"
    if transfer.send == "connect" and transfer.streams > STREAMS_MAX:
        yield ("connections", "mode"), f"each has a thread, expected 1 to {STREAMS_MAX} or mode: rr"
    if transfer.rate is not None:
        yield ("rate",), "expected a rate of requests such as 10000/s"
    if "request_rate" in transfer.options and transfer.options.get("wait") == "block":
        yield ("rate", "wait"), "an open loop waits for no response, expected wait: epoll or spin"
    if "requests" in written and "request_rate" in transfer.options:
        yield ("requests", "rate"), "an open loop goes on for a time, expected a duration"
    if transfer.bytes is not None and isinstance(transfer.options.get("request"), str):
        yield (
            ("requests", "request"),
            "sizes are drawn for as long as it takes, expected a duration",
        )
    elif (transfer.requests or 0) % transfer.streams:
        expected = f"expected a multiple of connections ({transfer.streams})"
        yield ("requests",), f"each connection has as many requests, {expected}"
    if "arrivals" in transfer.options and "request_rate" not in transfer.options:
        yield ("arrivals", "rate"), "arrivals are those of an open loop, expected rate: 10000/s"


def _fetching(send: Named | None, receive: Named | None, transfer: Transfer) -> Iterator[Complaint]:
    """A method that fetches goes with its namesake, reads one file, and is not paced."""
    if send is None or receive is None or send.name != receive.name:
        name = next(one.name for one in (send, receive) if one and one.has("fetches"))
        message = (
            f"{name} is a send and a receive method that go together, got send: {transfer.send},"
            f" receive: {transfer.receive}"
        )
        yield ("send", "receive"), message
        return
    if transfer.source.kind != "file":
        yield (
            ("source", "send"),
            f"send method {send.name} reads one file, expected source: {{file: PATH}}",
        )
    if transfer.rate or transfer.preamble:
        yield ("rate", "preamble"), f"send method {send.name} knows no rate and no preamble"


def _sending(send: Named, transfer: Transfer) -> Iterator[Complaint]:
    kind = transfer.source.kind
    if not send.has(_SOURCES[kind]) and not send.has("no_data"):
        usable = [name for name, flag in _SOURCES.items() if send.has(flag)]
        takes = f", expected source: {listed(usable)}" if usable else ""
        if kind in ("file", "files"):
            takes += "; sendfile, splice, mmap and readwrite send files"
        yield ("send", "source"), f"send method {send.name} cannot take bytes from {kind}{takes}"
    if transfer.cache == "cold" and kind not in ("file", "files"):
        yield ("cache", "source"), f"cache: cold needs a source of files, got {kind}"
    if transfer.bytes is not None and send.has("no_data"):
        yield (
            ("send", "bytes"),
            f"send method {send.name} moves no bytes to count, expected a duration",
        )
    if transfer.chunk == WHOLE_FILE:
        if kind not in ("file", "files"):
            yield ("chunk", "source"), f"chunk: file needs a source of files, got {kind}"
        if not send.has("whole_file"):
            yield (
                ("chunk", "send"),
                f"chunk: file needs a send method that sends a whole file a call, got {send.name}",
            )


def _files(transfer: Transfer) -> Iterator[Complaint]:
    """What fsync and direct I/O need of source and sink."""
    source, sink = transfer.source.kind in ("file", "files"), transfer.sink.kind == "file"
    if transfer.fsync != "none" and not sink:
        message = f"fsync: {transfer.fsync} needs sink: {{file: PATH}}, got {transfer.sink.kind}"
        yield ("fsync", "sink"), message
    elif transfer.fsync == "window" and transfer.warmup and not transfer.tool.external:
        late = "fsync: window would force bytes of the warm-up to the disk, which are not counted"
        yield ("fsync", "warmup"), f"{late}, expected warmup: 0s"
    if not transfer.direct:
        return
    if not source and not sink:
        yield ("direct", "source", "sink"), "direct: on needs a source of files or a file as sink"
    for key, size, used in (
        ("chunk", transfer.chunk, source),
        ("receive_chunk", transfer.receive_chunk, sink),
    ):
        if used and size % SECTOR:
            message = (
                f"direct: on needs calls of whole sectors, expected {key} to be a multiple of"
                f" {SECTOR}, got {size}"
            )
            yield (key, "direct"), message


def _options(
    combination: Combination, transfer: Transfer, catalogue: Catalogue
) -> Iterator[Complaint]:
    owned = method_options(catalogue)
    for key in combination:
        if key in owned and key not in transfer.options and not hasattr(transfer, key):
            owners = listed(dict.fromkeys(row.owner for row in owned[key]))
            methods = f"send method {transfer.send} and receive method {transfer.receive}"
            yield (key,), f"{key} is an option of {owners}, got {methods}"


def _unused_options(
    base: Mapping[str, Any], cells: Iterable[Cell], catalogue: Catalogue, problems: Problems
) -> None:
    """Options below `transfer` that no cell's method has."""
    used = {name for cell in cells for name in cell.transfer.options}
    for key, rows in method_options(catalogue).items():
        if key in base and key not in used and not hasattr(Transfer, key):
            owners = listed(dict.fromkeys(row.owner for row in rows))
            problems.add(
                ("transfer", key), f"{key} is an option of {owners}, which is no cell's method"
            )


def _one_host(cell: Cell, context: Context) -> Iterator[Complaint]:
    """A host that is both ends of a pair holds one level of a setting. (In two pairs it may have
    two, since they run one after the other.)
    """
    for name, sender, receiver in (
        differing_ends(context.settings, cell.settings) if context.alone else ()
    ):
        keys = f"receiver.{name}", f"sender.{name}", name
        got = f"got {sender} for the sender and {receiver} for the receiver"
        yield (
            keys,
            (
                f"expected one level of {name}, since both ends of {context.alone[0]} are one"
                f" machine, {got}"
            ),
        )


def _addresses(transfer: Transfer, context: Context) -> Iterator[Complaint]:
    for name in dict.fromkeys(
        name for pair in context.pairs for name in (pair.sender, pair.receiver)
    ):
        address = context.hosts[name].address
        if address and ip_address(address).version != transfer.ip:
            yield ("ip",), f"ip is {transfer.ip}, got the address {address} of hosts.{name}"
