"""The engine as Python: its constants, structs and descriptors.

The only module that imports the cffi module. Layouts and constants come from
native/include/netbench.h, so that each is written once.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from netbench.base.errors import EngineError, ProtocolError
from netbench.engine.catalogue import Row

try:
    from netbench.engine import _native  # type: ignore[attr-defined]  # made by the build
except ImportError as error:  # pragma: no cover - only without a build
    raise EngineError(
        0,
        0,
        "load engine",
        f"the native engine is not there, or of another kind of machine ({error})",
        "in a clone run `make`; else install the wheel whose name ends in this machine's type"
        " (`uname -m`), on Linux with glibc 2.28 or later: musl's is not enough",
    ) from error

ffi: Any = _native.ffi
lib: Any = _native.lib
FRAME_MAX: int = lib.NB_FRAME_MAX
MISSING = 2**64 - 1
SAMPLES_MAX: int = lib.NB_SAMPLES_MAX
SAMPLES_BYTES: int = lib.NB_SAMPLES_BYTES
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
    PRINTED = lib.NB_PRINTED


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


def _named(prefix: str, names: str) -> dict[int, str]:
    """Words by the constants that are named after them."""
    return {getattr(lib, prefix + name.upper()): name for name in names.split()}


KINDS = _named("NB_ROW_", "send receive meter op option counter proof readback")
TYPES = _named("NB_", "count size time rate flag word text")
UNITS = _named("NB_UNIT_", "none bytes ns us ticks calls packets bits_per_second")
UNITS |= {lib.NB_UNIT_NONE: "", lib.NB_UNIT_BITS_PER_SECOND: "bits/s"}
PER = _named("NB_PER_", "run stream cpu bucket")
FLAGS = _named(
    "NB_",
    "delivers no_data from_memory from_zero from_file whole_file buffers to_discard to_file always"
    " host_wide sampled sliced gauge user list cpu_time idle_time must_move must_not_move"
    " alone fetches direct by_helper without_soak requests",
)


class Hello(NamedTuple):
    """What a worker reports about itself and its host; sizes in bytes, `clock_ticks` per second,
    `user`: the id that it runs as, `tick_rate`: the kernel's own ticks a second (CONFIG_HZ),
    `network`: the number of its network namespace; `machine`: machine-id(5), or "".
    """

    version: int
    layout: int
    pid: int
    clock_ticks: int
    cpus: int
    page_size: int
    user: int
    tick_rate: int
    network: int
    architecture: str
    kernel: str
    boot_id: str
    machine: str
    engine: str


class Vector(NamedTuple):
    """Numbers or a text of one row at one edge; `ns` is the worker's CLOCK_MONOTONIC. A number that
    could not be read is None.
    """

    row: int
    edge: int
    ns: int
    numbers: tuple[int | None, ...]
    text: str | None


def text_of(field: Any) -> str:
    """A char array up to its NUL."""
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
        name=text_of(row.name),
        about=text_of(row.about),
        words=tuple(text_of(row.words).split()),
        why=text_of(row.why),
        minimum=row.minimum,
        maximum=row.maximum,
    )


def rows_of(table: Any, count: int) -> list[Row]:
    """The rows of an array of struct nb_row. Errors: ProtocolError."""
    names = [text_of(table[i].name) for i in range(count)]
    try:
        return [_row(table[i], names) for i in range(count)]
    except (KeyError, IndexError) as error:
        raise ProtocolError(
            f"a descriptor has an unknown kind, type or owner ({error}){SAME}"
        ) from error


def describe() -> list[Row]:
    """The rows of the library loaded in this process."""
    count = lib.nb_describe(ffi.NULL, 0)
    table = ffi.new("struct nb_row[]", count)
    lib.nb_describe(table, count)
    return rows_of(table, count)


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
