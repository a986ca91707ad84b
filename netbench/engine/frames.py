"""Frames of the protocol as bytes: encoded, split off a buffer, decoded."""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from netbench.base.errors import EngineError, ProtocolError
from netbench.engine.binding import (
    FRAME_MAX,
    MISSING,
    SAME,
    Edge,
    Frame,
    Hello,
    Vector,
    describe,
    ffi,
    lib,
    own_layout,
    rows_of,
    text_of,
)
from netbench.engine.catalogue import Row

Value = int | str | bytes | tuple[int, ...]

HEADER_BYTES: int = ffi.sizeof("struct nb_frame")
_VECTOR = struct.Struct("=IHHIIQ")  # nb_vector: 0.2 us, by cffi 1.0, some 200 a run
VECTOR_BYTES: int = ffi.sizeof("struct nb_vector")  # without its numbers or text


def frame(kind: Frame, tag: int, payload: bytes = b"") -> bytes:
    """One frame, ready to be written."""
    header = ffi.new("struct nb_frame *", {"length": len(payload), "type": int(kind), "tag": tag})
    return bytes(ffi.buffer(header)) + payload


def split(buffer: bytearray) -> tuple[Frame, int, bytes] | None:
    """Take the first whole frame off a buffer: (type, tag, payload), or None if it is not whole
    yet. Errors: ProtocolError.
    """
    if len(buffer) < HEADER_BYTES:
        return None
    header = ffi.new("struct nb_frame *")
    ffi.memmove(header, bytes(buffer[:HEADER_BYTES]), HEADER_BYTES)
    length, kind, tag = int(header.length), int(header.type), int(header.tag)
    if length > FRAME_MAX or kind not in Frame._value2member_map_:
        start = bytes(buffer[:40])
        raise ProtocolError(
            f"received data that is not netbench's protocol (it starts with {start!r}); does a"
            " shell profile print to stdout? If not, deploy the worker again"
        )
    if len(buffer) < HEADER_BYTES + length:
        return None
    payload = bytes(buffer[HEADER_BYTES : HEADER_BYTES + length])
    del buffer[: HEADER_BYTES + length]
    return Frame(kind), tag, payload


def decode_hello(payload: bytes) -> tuple[Hello, tuple[Row, ...]]:
    """A worker's hello and its rows, refused when version, layout or byte order differ from this
    controller's.
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
    return _hello(hello), _rows(payload[size:])


@lru_cache(maxsize=16)  # hosts of one kind send the same
def _rows(payload: bytes) -> tuple[Row, ...]:
    """The rows of a hello, which are this controller's but for what a host cannot do: no host says
    what others' counters mean. Errors: ProtocolError.
    """
    table = ffi.cast("struct nb_row *", ffi.from_buffer(payload))
    rows = rows_of(table, len(payload) // ffi.sizeof("struct nb_row"))
    if [row._replace(why="") for row in rows] != [row._replace(why="") for row in describe()]:
        raise ProtocolError(f"the worker's descriptors are not this controller's{SAME}")
    return tuple(rows)


def _hello(hello: Any) -> Hello:
    values = (getattr(hello, name) for name in Hello._fields)
    decoded: list[Any] = [text_of(v) if isinstance(v, ffi.CData) else v for v in values]
    return Hello(*decoded)


def encode_values(values: Mapping[int, Value]) -> bytes:
    """A job's or operation's values by row id: numbers, or text that ends with a NUL or more,
    padded to 8 bytes. A list of numbers is a value for each.
    """
    parts: list[bytes] = []
    items = ((row, v if isinstance(v, tuple) else (v,)) for row, v in values.items())
    for row, value in ((row, one) for row, many in items for one in many):
        number = value if isinstance(value, int) else 0
        text = b"" if isinstance(value, int) else value
        text = text.encode() if isinstance(text, str) else text
        head = ffi.new("struct nb_value *", {"row": row, "bytes": len(text), "number": number})
        end = b"\0" * (8 - len(text) % 8) if text else b""
        parts += [bytes(ffi.buffer(head)), text, end]
    return b"".join(parts)


def number_of(options: Mapping[str, Value], name: str, absent: int = 0) -> int:
    """An option that is a number, or `absent`."""
    value = options.get(name, absent)
    return value if isinstance(value, int) else absent


def decode_vectors(payload: bytes) -> Iterator[Vector]:
    """The vectors of a READY, RESULT, SAMPLES or OP_DONE frame. Errors: ProtocolError."""
    at = 0
    words = struct.unpack_from(f"={len(payload) // 8}Q", payload)
    while at < len(payload):
        if len(payload) - at < VECTOR_BYTES:
            raise ProtocolError(f"{len(payload) - at} bytes follow the last vector{SAME}")
        row, edge, is_text, count, size, ns = _VECTOR.unpack_from(payload, at)
        at += VECTOR_BYTES
        length = size + (-size % 8) if is_text else count * 8
        if length > len(payload) - at:
            raise ProtocolError(
                f"a vector of {length} bytes does not fit into the remaining"
                f" {len(payload) - at}{SAME}"
            )
        if is_text:
            text = payload[at : at + size].decode("utf-8", "replace")
            yield Vector(row, edge, ns, (), text)
        else:
            raw = words[at // 8 : (at + length) // 8]
            numbers = (None if n == MISSING else n for n in raw) if MISSING in raw else raw
            yield Vector(row, edge, ns, tuple(numbers), None)
        at += length


def decode_edge(payload: bytes) -> tuple[Edge, bytes]:
    """The edge that an EDGE frame names, and what it carries for MARK. Errors: ProtocolError."""
    value = int.from_bytes(payload[:4], sys.byteorder)
    if len(payload) < 8 or len(payload) % 8 or value not in Edge._value2member_map_:
        raise ProtocolError(f"an edge frame of {len(payload)} bytes has no valid edge{SAME}")
    return Edge(value), payload[8:]


def decode_error(payload: bytes, host: str) -> EngineError:
    """The error that an ERROR frame carries. Errors: ProtocolError for another size."""
    if len(payload) != ffi.sizeof("struct nb_error"):
        raise ProtocolError(
            f"an error frame of {len(payload)} bytes, expected"
            f" {ffi.sizeof('struct nb_error')}{SAME}"
        )
    error = ffi.cast("struct nb_error *", ffi.from_buffer(payload))
    return EngineError(
        error.code,
        error.error,
        text_of(error.operation),
        text_of(error.message),
        text_of(error.remedy),
        host,
    )
