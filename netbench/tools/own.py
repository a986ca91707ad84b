"""A tool of the campaign's own: programs with placeholders, and patterns of their output."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from netbench.model import Tool, Transfer
from netbench.tools.captures import read
from netbench.tools.search import search
from netbench.tools.tool import Adaptor, Commands, Output, Place, Reading, seconds_of

PLACEHOLDERS: Mapping[str, str] = {
    "address": "",  # the receiver's data address
    "port": "",  # a TCP port of the run
    "seconds": "duration",
    "bytes": "`bytes`",
    "chunk": "size of a call",
    "streams": "",  # their number
    "file": "file there",  # the source's path for the client, the sink's for the server
    "sender_cpu": "CPU for the sender (`pin`)",
    "receiver_cpu": "CPU for the receiver (`pin`)",
    "congestion": "`congestion`",
}
"""Placeholder -> what a cell is said to lack where nothing stands in its place ("": no cell lacks
it).
"""
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


class OwnTool(Adaptor):
    """What `tools:` describes."""

    def __init__(self, tool: Tool) -> None:
        self._tool = tool
        self.name = tool.name

    def limits(self, transfer: Transfer, one_host: bool) -> Iterator[str]:
        words = {**_words(transfer, Place("", 1, transfer.pin.sender, transfer.pin.receiver))}
        pins = transfer.pin.kind
        words |= {side: "1" for side in ("sender_cpu", "receiver_cpu") if pins in ("same", "apart")}
        if transfer.direct or transfer.fsync != "none":
            yield "its command line has no place for `direct` and `fsync`"
        for argv, file in (
            (self._tool.client, transfer.source.path),
            (self._tool.server, transfer.sink.path),
        ):
            for name in placeholders(argv):
                if not (words | {"file": file})[name]:
                    lacking = PLACEHOLDERS[name]
                    yield f"its command line has {{{name}}}, and the cell has no {lacking}"

    def commands(self, transfer: Transfer, place: Place) -> Commands:
        words = _words(transfer, place)
        return Commands(
            _filled(self._tool.client, words | {"file": transfer.source.path}),
            _filled(self._tool.server, words | {"file": transfer.sink.path}),
            self._tool.ready,
        )

    def is_complete(self, output: Output) -> bool:
        patterns = [pattern for _, pattern in self._tool.captures]
        try:
            return None not in search(patterns, output.text, output.errors, output.server)
        except ValueError:
            return True  # `reading` says so

    def reading(self, transfer: Transfer, output: Output) -> Reading:
        return read(self._tool.captures, output.text, output.errors, output.server)


def placeholders(argv: tuple[str, ...]) -> Iterator[str]:
    """The placeholders in a command line."""
    return (name for name in _braced(argv) if name in PLACEHOLDERS)


def unknown_placeholders(argv: tuple[str, ...]) -> Iterator[str]:
    """Words in braces that stand for nothing."""
    return (name for name in _braced(argv) if name not in PLACEHOLDERS)


def _braced(argv: tuple[str, ...]) -> Iterator[str]:
    return (name for word in argv for name in _PLACEHOLDER.findall(word))


def _words(transfer: Transfer, place: Place) -> dict[str, str]:
    """What stands in place of each; "": the cell has none."""
    return {
        "address": place.address or "address",
        "port": str(place.port),
        "seconds": seconds_of(transfer) if transfer.duration else "",
        "bytes": str(transfer.bytes or ""),
        "chunk": str(transfer.chunk or ""),
        "streams": str(transfer.streams),
        "sender_cpu": ",".join(map(str, place.sender_cpus)),
        "receiver_cpu": ",".join(map(str, place.receiver_cpus)),
        "congestion": transfer.congestion or "",
    }


def _filled(argv: tuple[str, ...], words: Mapping[str, str]) -> tuple[str, ...]:
    """A command line with all placeholders replaced at once: what replaces one is not looked at
    again.
    """
    return tuple(_PLACEHOLDER.sub(lambda m: words.get(m[1], m[0]), word) for word in argv)
