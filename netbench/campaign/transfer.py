"""The keys of `transfer:`: what each accepts (bounds and names from the engine's catalogue) and
what a set of values means.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any

from pydantic import Field, create_model

from netbench.campaign import transfer_values, words
from netbench.campaign.keys import Keys
from netbench.campaign.words import Kind
from netbench.engine.catalogue import Catalogue, Row
from netbench.model import WHOLE_FILE, Transfer

PLANNED_SEND = ("vmsplice", "uring")
PLANNED_RECEIVE = ("splice", "mmap", "vmsplice", "zerocopy", "uring")
PLANNED_METERS = ("soak", "perf")
STREAMS_MAX = 128
Values = Mapping[str, Any]
"""Keys that were written and what they mean; options of methods by their word."""


def with_planned(built: Mapping[str, object], planned: Sequence[str]) -> list[str]:
    """Names that are valid words: what the engine offers, then what is planned."""
    return [*built, *(name for name in planned if name not in built)]


def _bounds(
    catalogue: Catalogue, name: str, low: int, high: int = words.U64_MAX
) -> tuple[int, int]:
    row = catalogue.options.get(name)
    return (max(low, row.minimum), min(high, row.maximum)) if row else (low, high)


def _kinds(catalogue: Catalogue) -> dict[str, tuple[Kind, str]]:
    """Each key with its kind and its description."""

    def size(name: str, low: int) -> Kind:
        return words.size(*_bounds(catalogue, name, low))

    def time(name: str, low: int) -> Kind:
        return words.time(*_bounds(catalogue, name, low))

    def buffer(*sides: str) -> Kind:
        bounds = [_bounds(catalogue, side, 1) for side in sides]
        return words.keyword(
            {"default": None},
            words.size(max(low for low, _ in bounds), min(high for _, high in bounds)),
        )

    streams = words.number("a number of streams", *_bounds(catalogue, "streams", 1, STREAMS_MAX))
    cubic = words.matching("a congestion control such as cubic", "[a-z0-9_-]{1,15}")
    send = words.choice("a send method", with_planned(catalogue.send, PLANNED_SEND))
    receive = words.choice("a receive method", with_planned(catalogue.receive, PLANNED_RECEIVE))
    return {
        "send": (send, "how the sender moves data"),
        "receive": (receive, "how the receiver moves data"),
        "source": (transfer_values.SOURCE, "where the sender takes bytes from"),
        "sink": (transfer_values.SINK, "where the receiver puts bytes"),
        "chunk": (
            words.keyword({"file": WHOLE_FILE}, size("chunk", 1)),
            "bytes per send call; file: the whole file per call",
        ),
        "receive_chunk": (size("receive_chunk", 1), "bytes per receive call"),
        "align": (size("align", 0), "offset of the user buffer from a page"),
        "preamble": (size("preamble", 0), "bytes sent first in a call of their own"),
        "socket_buffer": (
            buffer("send_buffer", "receive_buffer"),
            "SO_SNDBUF of the sender and SO_RCVBUF of the receiver",
        ),
        "send_buffer": (buffer("send_buffer"), "SO_SNDBUF of the sender; overrides socket_buffer"),
        "receive_buffer": (
            buffer("receive_buffer"),
            "SO_RCVBUF of the receiver; overrides socket_buffer",
        ),
        "streams": (streams, "connections at the same time"),
        "pin": (transfer_values.PIN, "CPUs of the two sides"),
        "congestion": (words.keyword({"default": None}, cubic), "TCP congestion control"),
        "rate": (
            words.keyword({"none": None}, words.rate(*_bounds(catalogue, "rate", 1))),
            "offered load per pair",
        ),
        "ip": (words.enumerated({"4": 4, "6": 6}), "IP version"),
        "duration": (time("duration", 1), "length of the measured window"),
        "bytes": (size("bytes", 1), "bytes to move, over all streams, instead of a duration"),
        "warmup": (time("warmup", 0), "time before the measured window"),
        "cache": (words.choice("", ("warm", "cold")), "state of the page cache for files"),
        "tool": (transfer_values.TOOL, "an external program instead of the engine"),
        "port": (transfer_values.PORT, "data port, or range of ports"),
        "sample": (words.keyword({"none": 0}, time("sample", 0)), "interval between samples"),
    }


def _option_kind(row: Row) -> Kind:
    simple: dict[str, Callable[[], Kind]] = {
        "size": lambda: words.size(row.minimum, row.maximum),
        "time": lambda: words.time(row.minimum, row.maximum),
        "rate": lambda: words.rate(row.minimum, row.maximum),
        "flag": words.switch,
        "word": lambda: words.choice("", row.words),
        "text": lambda: words.text(f"a text for {row.name}"),
    }
    make = simple.get(row.type)
    return make() if make else words.number(row.name, row.minimum, row.maximum)


def _option(rows: Sequence[Row]) -> Kind:
    """A method's option: checked by every row of that name, and what it means to the engine: base
    units, 0 or 1, or a word.
    """
    kinds = [_option_kind(row) for row in rows]

    def parse(value: Any) -> Any:
        meant, *_ = [kind.parse(value) for kind in kinds]
        return int(meant) if isinstance(meant, bool) else meant

    return Kind(parse, kinds[0].schema)


def method_options(catalogue: Catalogue) -> dict[str, list[Row]]:
    """Rows of the options that methods declare, by option name."""
    found: dict[str, list[Row]] = {}
    for method in (*catalogue.send.values(), *catalogue.receive.values()):
        for row in method.options:
            found.setdefault(row.name, []).append(row)
    return found


class TransferKeys(Keys):
    """Base of the model of `transfer:`; the model itself is made from a catalogue."""

    def values(self) -> dict[str, Any]:
        """What was written, by key."""
        return {
            key: getattr(self, key)
            for key in type(self).model_fields
            if key in self.model_fields_set
        }


@lru_cache(maxsize=8)
def _model(rows: tuple[Row, ...]) -> type[TransferKeys]:
    catalogue = Catalogue.of(rows)
    kinds = _kinds(catalogue)
    for name, owned in method_options(catalogue).items():
        owners = words.listed(dict.fromkeys(row.owner for row in owned))
        kinds.setdefault(name, (_option(owned), f"{owned[0].about} (option of {owners})"))
    fields: dict[str, Any] = {
        name: (Annotated[Any, kind], Field(default=None, description=about))
        for name, (kind, about) in kinds.items()
    }
    return create_model("Transfer", __base__=TransferKeys, **fields)


def transfer_model(catalogue: Catalogue) -> type[TransferKeys]:
    """The pydantic model of `transfer:` for what an engine offers."""
    return _model(catalogue.rows)


_SAME = {f.name for f in dataclasses.fields(Transfer)} - {
    "send_buffer",
    "receive_buffer",
    "options",
}


def meaning(values: Values, options: Sequence[str]) -> Transfer:
    """What values mean, defaults filled in. `options` names those that the values' methods declare;
    others are left out.
    """
    given = {key: value for key, value in values.items() if key in _SAME}
    buffers = {
        key: values.get(key, values.get("socket_buffer"))
        for key in ("send_buffer", "receive_buffer")
    }
    if "bytes" in given:
        given["duration"] = None
        given.setdefault(
            "warmup", 0
        )  # the whole transfer is the window, unless a warm-up is written
    return Transfer(
        **given, **buffers, options={key: values[key] for key in options if key in values}
    )
