"""The only module that touches the cffi module: descriptors, frames, and the serve loop.

Everything that crosses it is plain Python: bytes, ints, strings and the dataclasses below. Layouts
and constants come from native/include/netbench.h, so they are kept in one place.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any

from netbench.engine.catalogue import Row
from netbench.errors import EngineError, ProtocolError

try:
    from netbench.engine import _native  # type: ignore[attr-defined]  # made by the build
except ImportError as error:  # pragma: no cover - only without a build
    raise EngineError(
        0,
        0,
        "load engine",
        f"the native engine is not built ({error})",
        "run `make` (or `pip install -e .`) in the project's folder",
    ) from error

ffi: Any = _native.ffi
lib: Any = _native.lib
FRAME_HEADER = ffi.sizeof("struct nb_frame")
FRAME_MAX: int = lib.NB_FRAME_MAX
MISSING = 2**64 - 1
HEARTBEAT_SECONDS: int = lib.NB_HEARTBEAT_SECONDS
SILENCE_SECONDS: int = lib.NB_SILENCE_SECONDS
SAME = "; use the same netbench version on both sides"


class Frame(IntEnum):
    """enum nb_frame_type."""

    HELLO = lib.NB_HELLO
    JOB = lib.NB_JOB
    READY = lib.NB_READY
    GO = lib.NB_GO
    MARK = lib.NB_MARK
    EDGE = lib.NB_EDGE
    STOP = lib.NB_STOP
    ABORT = lib.NB_ABORT
    RESULT = lib.NB_RESULT
    SAMPLES = lib.NB_SAMPLES
    ERROR = lib.NB_ERROR
    HEARTBEAT = lib.NB_HEARTBEAT
    OP = lib.NB_OP
    OP_DONE = lib.NB_OP_DONE
    UNDO = lib.NB_UNDO
    UNDONE = lib.NB_UNDONE
    BYE = lib.NB_BYE


class Edge(IntEnum):
    """enum nb_edge."""

    OPEN = lib.NB_EDGE_OPEN
    CLOSE = lib.NB_EDGE_CLOSE
    DRAINED = lib.NB_EDGE_DRAINED
    WARM = lib.NB_EDGE_WARM


class Code(IntEnum):
    """enum nb_code."""

    REQUEST = lib.NB_ERR_REQUEST
    UNSUPPORTED = lib.NB_ERR_UNSUPPORTED
    SYSTEM = lib.NB_ERR_SYSTEM
    PEER = lib.NB_ERR_PEER
    PROTOCOL = lib.NB_ERR_PROTOCOL
    ABORTED = lib.NB_ERR_ABORTED
    MEMORY = lib.NB_ERR_MEMORY


KINDS = {
    lib.NB_ROW_SEND: "send",
    lib.NB_ROW_RECEIVE: "receive",
    lib.NB_ROW_METER: "meter",
    lib.NB_ROW_OP: "op",
    lib.NB_ROW_OPTION: "option",
    lib.NB_ROW_COUNTER: "counter",
    lib.NB_ROW_PROOF: "proof",
    lib.NB_ROW_READBACK: "readback",
}
TYPES = {
    lib.NB_COUNT: "count",
    lib.NB_SIZE: "size",
    lib.NB_TIME: "time",
    lib.NB_RATE: "rate",
    lib.NB_FLAG: "flag",
    lib.NB_WORD: "word",
    lib.NB_TEXT: "text",
}
UNITS = {
    lib.NB_UNIT_NONE: "",
    lib.NB_UNIT_BYTES: "bytes",
    lib.NB_UNIT_NS: "ns",
    lib.NB_UNIT_US: "us",
    lib.NB_UNIT_TICKS: "ticks",
    lib.NB_UNIT_CALLS: "calls",
    lib.NB_UNIT_PACKETS: "packets",
    lib.NB_UNIT_BITS_PER_SECOND: "bits/s",
}
PER = {lib.NB_PER_RUN: "run", lib.NB_PER_STREAM: "stream", lib.NB_PER_CPU: "cpu"}
FLAGS = {
    lib.NB_DELIVERS: "delivers",
    lib.NB_NO_DATA: "no_data",
    lib.NB_FROM_MEMORY: "from_memory",
    lib.NB_FROM_ZERO: "from_zero",
    lib.NB_FROM_FILE: "from_file",
    lib.NB_WHOLE_FILE: "whole_file",
    lib.NB_TO_DISCARD: "to_discard",
    lib.NB_TO_FILE: "to_file",
    lib.NB_ALWAYS: "always",
    lib.NB_HOST_WIDE: "host_wide",
    lib.NB_SAMPLED: "sampled",
    lib.NB_GAUGE: "gauge",
    lib.NB_USER: "user",
    lib.NB_LIST: "list",
    lib.NB_CPU_TIME: "cpu_time",
    lib.NB_MUST_MOVE: "must_move",
    lib.NB_MUST_NOT_MOVE: "must_not_move",
    lib.NB_FROM_BUFFER: "from_buffer",
    lib.NB_FETCHES: "fetches",
}


@dataclass(frozen=True)
class Hello:
    """What a worker says of itself and its host; sizes in bytes, `clock_ticks` per second."""

    version: int
    layout: int
    pid: int
    clock_ticks: int
    cpus: int
    page_size: int
    architecture: str
    kernel: str
    boot_id: str
    engine: str


@dataclass(frozen=True)
class Vector:
    """Numbers or a text of one row at one edge; `ns` is the worker's CLOCK_MONOTONIC. A number that
    could not be read is None.
    """

    row: int
    edge: int
    ns: int
    numbers: tuple[int | None, ...]
    text: str | None


def _text(field: Any) -> str:
    return bytes(ffi.buffer(field)).split(b"\0", 1)[0].decode("utf-8", "replace")


def _row(row: Any, names: Sequence[str]) -> Row:
    return Row(
        id=row.id,
        owner_id=row.owner,
        owner="" if row.owner == lib.NB_NO_ROW else names[row.owner],
        kind=KINDS[row.kind],
        type=TYPES[row.type],
        unit=UNITS[row.unit],
        per=PER[row.per],
        flags=frozenset(name for bit, name in FLAGS.items() if row.flags & bit),
        name=_text(row.name),
        about=_text(row.about),
        words=tuple(_text(row.words).split()),
        why=_text(row.why),
        minimum=row.minimum,
        maximum=row.maximum,
    )


def _rows(table: Any, count: int) -> list[Row]:
    names = [_text(table[i].name) for i in range(count)]
    try:
        return [_row(table[i], names) for i in range(count)]
    except (KeyError, IndexError) as error:
        raise ProtocolError(f"a descriptor names something unknown ({error}){SAME}") from error


def describe() -> list[Row]:
    """The rows of the library loaded in this process."""
    count = lib.nb_describe(ffi.NULL, 0)
    table = ffi.new("struct nb_row[]", count)
    lib.nb_describe(table, count)
    return _rows(table, count)


def serve(read_fd: int, write_fd: int) -> int:
    """Run a worker in this process until its controller leaves. Returns an enum nb_code
    (0: done).
    """
    return int(lib.nb_serve(read_fd, write_fd))


def own_hello() -> bytes:
    """The hello that this controller sends: its version and layout, no rows."""
    hello = ffi.new("struct nb_hello *")
    lib.nb_fill_hello(hello)
    return bytes(ffi.buffer(hello))


def own_layout() -> int:
    """The layout hash of this controller's library."""
    hello = ffi.new("struct nb_hello *")
    lib.nb_fill_hello(hello)
    return int(hello.layout)


def frame(kind: Frame, tag: int, payload: bytes = b"") -> bytes:
    """One frame, ready to be written."""
    header = ffi.new("struct nb_frame *", {"length": len(payload), "type": int(kind), "tag": tag})
    return bytes(ffi.buffer(header)) + payload


def split(buffer: bytearray) -> tuple[Frame, int, bytes] | None:
    """Take the first whole frame off a buffer: (type, tag, payload), or None if it is not whole
    yet. Errors: ProtocolError.
    """
    if len(buffer) < FRAME_HEADER:
        return None
    header = ffi.new("struct nb_frame *")
    ffi.memmove(header, bytes(buffer[:FRAME_HEADER]), FRAME_HEADER)
    length, kind, tag = int(header.length), int(header.type), int(header.tag)
    if length > FRAME_MAX or kind not in Frame._value2member_map_:
        start = bytes(buffer[:40])
        raise ProtocolError(
            f"what came is no frame of netbench's protocol (it starts with {start!r}); "
            "keep what prints there quiet, or deploy the worker again"
        )
    if len(buffer) < FRAME_HEADER + length:
        return None
    payload = bytes(buffer[FRAME_HEADER : FRAME_HEADER + length])
    del buffer[: FRAME_HEADER + length]
    return Frame(kind), tag, payload


def decode_hello(payload: bytes) -> tuple[Hello, list[Row]]:
    """A worker's hello and its rows, refused when version, layout or byte order are not ours.
    Errors: ProtocolError.
    """
    size, row_size = ffi.sizeof("struct nb_hello"), ffi.sizeof("struct nb_row")
    if len(payload) < size:
        raise ProtocolError(
            f"the worker's hello is {len(payload)} bytes long, expected at least {size}{SAME}"
        )
    data = ffi.from_buffer(payload)
    hello = ffi.cast("struct nb_hello *", data)
    if hello.magic != lib.NB_MAGIC or hello.byte_order != lib.NB_BYTE_ORDER:
        raise ProtocolError(
            "the worker's byte order is not this controller's; run the controller on a machine of"
            " the same byte order"
        )
    if hello.version != lib.NB_PROTOCOL or hello.layout != own_layout():
        raise ProtocolError(
            f"the worker has protocol {hello.version} layout {hello.layout:016x}, this controller"
            f" has protocol {lib.NB_PROTOCOL} layout {own_layout():016x}; build both from the same"
            " sources (`make`) and deploy the worker again"
        )
    if len(payload) != size + hello.rows * row_size:
        raise ProtocolError(
            f"the worker announced {hello.rows} descriptors and sent {len(payload) - size} bytes of"
            f" them{SAME}"
        )
    table = ffi.cast("struct nb_row *", data + size)
    names = [field.name for field in fields(Hello)]
    values = [getattr(hello, name) for name in names]
    said: list[Any] = [_text(value) if isinstance(value, ffi.CData) else value for value in values]
    return Hello(*said), _rows(table, hello.rows)


def encode_values(values: Mapping[int, int | str | bytes]) -> bytes:
    """A job's or operation's values by row id: numbers, or text that is padded to 8 bytes."""
    parts: list[bytes] = []
    for row, value in values.items():
        text = (
            value.encode() if isinstance(value, str) else value if isinstance(value, bytes) else b""
        )
        number = value if isinstance(value, int) else 0
        head = ffi.new("struct nb_value *", {"row": row, "bytes": len(text), "number": number})
        parts += [bytes(ffi.buffer(head)), text, b"\0" * (-len(text) % 8)]
    return b"".join(parts)


def decode_vectors(payload: bytes) -> Iterator[Vector]:
    """The vectors of a READY, RESULT, SAMPLES or OP_DONE frame. Errors: ProtocolError for anything
    out of bounds.
    """
    size, at = ffi.sizeof("struct nb_vector"), 0
    data = ffi.from_buffer(payload)
    while at < len(payload):
        if len(payload) - at < size:
            raise ProtocolError(
                f"{len(payload) - at} bytes are left over behind the last vector{SAME}"
            )
        head = ffi.cast("struct nb_vector *", data + at)
        at += size
        length = head.bytes + (-head.bytes % 8) if head.text else head.count * 8
        if length > len(payload) - at:
            raise ProtocolError(
                f"a vector of {length} bytes where {len(payload) - at} are left{SAME}"
            )
        if head.text:
            text = bytes(payload[at : at + head.bytes]).decode("utf-8", "replace")
            yield Vector(head.row, head.edge, head.ns, (), text)
        else:
            raw = ffi.unpack(ffi.cast("uint64_t *", data + at), head.count) if head.count else []
            yield Vector(
                head.row, head.edge, head.ns, tuple(None if n == MISSING else n for n in raw), None
            )
        at += length


def decode_edge(payload: bytes) -> tuple[Edge, bytes]:
    """The edge that an EDGE frame names, and what it carries for the other side's MARK. Errors:
    ProtocolError.
    """
    value = int.from_bytes(payload[:4], sys.byteorder)
    if len(payload) < 8 or len(payload) % 8 or value not in Edge._value2member_map_:
        raise ProtocolError(f"an edge frame of {len(payload)} bytes names no edge{SAME}")
    return Edge(value), payload[8:]


def decode_error(payload: bytes, host: str) -> EngineError:
    """The error that an ERROR frame carries. Errors: ProtocolError when the frame has
    another size.
    """
    if len(payload) != ffi.sizeof("struct nb_error"):
        raise ProtocolError(
            f"an error frame of {len(payload)} bytes, expected"
            f" {ffi.sizeof('struct nb_error')}{SAME}"
        )
    error = ffi.cast("struct nb_error *", ffi.from_buffer(payload))
    return EngineError(
        error.code,
        error.error,
        _text(error.operation),
        _text(error.message),
        _text(error.remedy),
        host,
    )
