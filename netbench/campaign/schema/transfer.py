"""The keys of `transfer:`: what each accepts (bounds and names from the engine's catalogue) and
what a set of values means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

from pydantic import create_model

from netbench.base.hints import hints
from netbench.base.units import format_rate, format_size, format_time
from netbench.campaign.messages import listed
from netbench.campaign.schema import kinds, transfer_values
from netbench.campaign.schema.keys import Keys, optional
from netbench.campaign.schema.kinds import Kind
from netbench.campaign.settings import is_setting
from netbench.campaign.tree import Plain
from netbench.engine.catalogue import Catalogue, Row
from netbench.model import OR_DEFAULT, WHOLE_FILE, Transfer

STREAMS_MAX, CONNECTIONS_MAX = 1024, 10_000
FSYNC = ("none", "window", "after")
REQUESTS = frozenset(
    ("request", "response", "mode", "depth", "arrivals", "connections", "requests")
)
"""Keys of which each makes a cell one of requests."""
SIZES = ("request", "response")
OF_BULK = ("chunk receive_chunk source sink align preamble bytes cache direct fsync").split()
"""Keys that mean nothing to requests."""
AUTO = 0  # a duration that a pilot finds
SHORTEST_WINDOW = 10**6  # ns: in less a run moves nothing, or a single chunk
Values = Mapping[str, Any]
"""Keys that were written and what they mean; options of methods by their word."""


def _bounds(
    catalogue: Catalogue, name: str, low: int, high: int = kinds.U64_MAX
) -> tuple[int, int]:
    row = catalogue.options.get(name)
    return (max(low, row.minimum), min(high, row.maximum)) if row else (low, high)


class _Key(NamedTuple):
    """One key: what it accepts, what it is about, an example, and its default as it is written."""

    kind: Kind
    about: str
    example: object
    default: str = ""


def _keys(catalogue: Catalogue) -> dict[str, _Key]:
    """The keys that every transfer has."""

    def size(name: str, low: int) -> Kind:
        return kinds.size(*_bounds(catalogue, name, low))

    def time(name: str, low: int) -> Kind:
        return kinds.time(*_bounds(catalogue, name, low))

    def buffer(*sides: str) -> Kind:
        bounds = [_bounds(catalogue, side, 1) for side in sides]
        low, high = max(low for low, _ in bounds), min(high for _, high in bounds)
        return kinds.keyword({"default": None}, kinds.size(low, high))

    def method(side: str, built: Mapping[str, object]) -> Kind:
        return kinds.choice(f"a {side} method", list(built))

    def drawn(of: str) -> _Key:
        about = f"bytes of a {of}, or sizes that are drawn by the seed: {{64: 70%, 16K: 30%}}"
        return _Key(transfer_values.size_or_drawn(kinds.size(1, 16 << 20)), about, 1, "1")

    streams = kinds.number("a number of streams", *_bounds(catalogue, "streams", 1, STREAMS_MAX))
    many = kinds.number("a number", *_bounds(catalogue, "streams", 1, CONNECTIONS_MAX))
    threads = kinds.number("a number of threads", *_bounds(catalogue, "threads", 1, STREAMS_MAX))
    cubic = kinds.matching(
        "a congestion control such as cubic, or `cubic or default`",
        f"[a-z0-9_-]{{1,15}}({OR_DEFAULT})?",
    )
    rate = kinds.rate(*_bounds(catalogue, "rate", 1))
    whole_file = {"file": WHOLE_FILE}
    return {
        "send": _Key(
            method("send", catalogue.send), "how the sender moves data", "sendfile", "write"
        ),
        "receive": _Key(
            method("receive", catalogue.receive), "how the receiver moves data", "trunc", "read"
        ),
        "source": _Key(
            transfer_values.SOURCE,
            "where the sender takes bytes from: {file: PATH}, or {files: N, size: S} that netbench"
            " makes; not every send method takes files",
            {"file": "/srv/image.iso"},
            "memory",
        ),
        "sink": _Key(
            transfer_values.SINK, "where the receiver puts bytes", {"file": "/data/out"}, "discard"
        ),
        "chunk": _Key(
            kinds.keyword(whole_file, size("chunk", 1)),
            "bytes per send call; file: the whole file per call",
            "1M",
            "64K",
        ),
        "receive_chunk": _Key(size("receive_chunk", 1), "bytes per receive call", "1M", "64K"),
        "align": _Key(size("align", 0), "offset of the user buffer from a page", 64, "0"),
        "preamble": _Key(size("preamble", 0), "bytes sent first in a call of their own", 512, "0"),
        "socket_buffer": _Key(
            buffer("send_buffer", "receive_buffer"),
            "SO_SNDBUF of the sender and SO_RCVBUF of the receiver",
            "128K",
            "default",
        ),
        "send_buffer": _Key(
            buffer("send_buffer"),
            "SO_SNDBUF of the sender; overrides socket_buffer",
            "128K",
            "default",
        ),
        "receive_buffer": _Key(
            buffer("receive_buffer"),
            "SO_RCVBUF of the receiver; overrides socket_buffer",
            "128K",
            "default",
        ),
        "streams": _Key(streams, "connections at the same time", 8, "1"),
        **{name: drawn(name) for name in SIZES},
        "connections": _Key(many, "connections of requests at the same time", 64, "1"),
        "threads": _Key(
            kinds.keyword({"default": None}, threads),
            "threads of each side that serve the streams; default: one a stream, of connections of"
            " requests one, and of a pinned side one a CPU (uring: one a stream)",
            2,
            "default",
        ),
        "pin": _Key(transfer_values.PIN, "CPUs of the two sides", "apart", "none"),
        "congestion": _Key(
            kinds.keyword({"default": None}, cubic),
            "TCP congestion control; `cubic or default`: the host's own where cubic may not be"
            " chosen",
            "bbr",
            "default",
        ),
        "rate": _Key(
            kinds.keyword({"none": None}, transfer_values.rate_or_requests(rate)),
            "offered load per pair; of requests 10000/s, which makes an open loop",
            "1Gb/s",
            "none",
        ),
        "ip": _Key(kinds.enumerated({"4": 4, "6": 6}), "IP version", 6, "4"),
        "duration": _Key(
            kinds.keyword({"auto": AUTO}, time("duration", SHORTEST_WINDOW)),
            "length of the measured window; auto: the length that tells most a second, by a pilot"
            " of the baseline",
            "30s",
            "10s",
        ),
        "bytes": _Key(
            size("bytes", 1), "bytes to move, over all streams, instead of a duration", "16G"
        ),
        "requests": _Key(
            kinds.number("a number of requests", 1, 10**12),
            "requests to be answered, over all connections, instead of a duration",
            100000,
        ),
        "warmup": _Key(
            time("warmup", 0),
            "time before the measured window; 0 where bytes or requests is written",
            "200ms",
            "1s",
        ),
        "cache": _Key(
            kinds.choice("", ("warm", "cold")), "state of the page cache for files", "cold", "warm"
        ),
        "direct": _Key(
            kinds.switch(),
            "files of source and sink past the page cache (O_DIRECT), where the methods read and"
            " write them by calls with a buffer of their own",
            "on",
            "off",
        ),
        "fsync": _Key(
            kinds.choice("", FSYNC),
            "when a sink's file is forced to its disk: within the measured window, which closes"
            " then, or after it",
            "window",
            "none",
        ),
        "tool": _Key(
            transfer_values.TOOL, "an external program instead of the engine", "iperf3", "none"
        ),
        "port": _Key(
            transfer_values.PORT, "data port, or range of ports; left out: any", "5000-5010"
        ),
        "sample": _Key(
            kinds.keyword({"none": 0}, time("sample", 0)), "interval between samples", "1s", "100ms"
        ),
    }


def _option_kind(row: Row) -> Kind:
    simple: dict[str, Callable[[], Kind]] = {
        "size": lambda: kinds.size(row.minimum, row.maximum),
        "time": lambda: kinds.time(row.minimum, row.maximum),
        "rate": lambda: kinds.rate(row.minimum, row.maximum),
        "flag": kinds.switch,
        "word": lambda: kinds.choice("", row.words),
        "text": lambda: kinds.text(f"a text for {row.name}"),
    }
    make = simple.get(row.type)
    return make() if make else kinds.number(row.name, row.minimum, row.maximum)


def _option(rows: Sequence[Row]) -> Kind:
    """A method's option: checked by every row of that name, and what it means to the engine: base
    units, 0 or 1, or a word.
    """
    if rows[0].type == "word":  # of which each method has its own
        return kinds.choice("", list(dict.fromkeys(word for row in rows for word in row.words)))
    accepting = [_option_kind(row) for row in rows]

    def parse(value: Plain) -> Any:
        parsed, *_ = [kind.parse(value) for kind in accepting]
        return int(parsed) if isinstance(parsed, bool) else parsed

    return Kind(parse, accepting[0].schema)


def _option_example(row: Row) -> object:
    numbers: dict[str, Callable[[int], str]] = {
        "size": format_size,
        "time": format_time,
        "rate": format_rate,
    }
    if row.type in numbers:
        return numbers[row.type](row.minimum)
    words = {"flag": "on", "word": row.words[0] if row.words else "", "text": "TEXT"}
    return words.get(row.type, row.minimum)


def method_options(catalogue: Catalogue) -> dict[str, list[Row]]:
    """Rows of the options that methods declare, by option name."""
    rows_by_name: dict[str, list[Row]] = {}
    for method in (*catalogue.send.values(), *catalogue.receive.values()):
        for row in method.options:
            if "user" in row.flags:
                rows_by_name.setdefault(row.name, []).append(row)
    return rows_by_name


class TransferKeys(Keys):
    """Base of the model of `transfer:`; the model itself is made from a catalogue."""

    @classmethod
    def nearest_key(cls, key: str) -> str:
        """A setting that was written below `transfer` is told with its place, a word of iperf3's,
        netperf's, flent's or fio's by the key that does it.
        """
        if other := hints("keys").get(key):
            return other.removeprefix("transfer.")
        return f"settings.{key}" if is_setting(key) else super().nearest_key(key)

    def values(self) -> dict[str, Any]:
        """What was written, by key."""
        return {
            key: getattr(self, key)
            for key in type(self).model_fields
            if key in self.model_fields_set
        }


@lru_cache(maxsize=8)
def _model(descriptors: tuple[Row, ...]) -> type[TransferKeys]:
    catalogue = Catalogue.of(descriptors)
    keys = _keys(catalogue)
    for name, rows in method_options(catalogue).items():
        owners = listed(dict.fromkeys(row.owner for row in rows))
        about = f"{rows[0].about} (option of {owners})"
        keys.setdefault(name, _Key(_option(rows), about, _option_example(rows[0])))
    model: dict[str, Any] = {
        name: (Annotated[Any, key.kind], optional(key.about, key.example, shown=key.default))
        for name, key in keys.items()
    }
    return create_model("Transfer", __base__=TransferKeys, **model)


def transfer_model(catalogue: Catalogue) -> type[TransferKeys]:
    """The pydantic model of `transfer:` for what an engine offers."""
    return _model(catalogue.rows)


_SAME = {*Transfer._fields} - {"send_buffer", "receive_buffer", "options"}


def meaning(values: Values, options: Sequence[str]) -> Transfer:
    """What values mean, defaults filled in. `options`: those that the values' methods declare."""
    given = {key: value for key, value in values.items() if key in _SAME}
    if "connections" in values:
        given["streams"] = values["connections"]
    if isinstance(values.get("rate"), transfer_values.PerSecond) and "request_rate" in options:
        values = {**values, "request_rate": int(given.pop("rate"))}
    buffers = {
        key: values.get(key, values.get("socket_buffer"))
        for key in ("send_buffer", "receive_buffer")
    }
    if "requests" in values:  # of a connection each it is one; else the engine counts their bytes
        is_each = values.get("mode", "rr") != "rr"
        size = 1 if is_each else values.get("request", 1)
        given["bytes"] = values["requests"] * (size if isinstance(size, int) else 1)
    if "bytes" in given:
        given["duration"] = None
        given.setdefault(
            "warmup", 0
        )  # the whole transfer is the window, unless a warm-up is written
    return Transfer(
        **given, **buffers, options={key: values[key] for key in options if key in values}
    )
