"""A tool of the campaign's own: programs, and patterns that find numbers in their output."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from netbench.base.units import (
    printed,
    printed_microseconds,
    printed_rate,
    printed_size,
    printed_time,
)
from netbench.model import Tool, Transfer
from netbench.result.record import Capture, ToolReading
from netbench.tools.tool import (
    THROUGHPUT,
    Adaptor,
    Commands,
    Output,
    Place,
    Reading,
    moved,
    seconds_of,
    shown,
)

TEXT_MAX = 200  # characters of a match that a record keeps
GROUPS = "the named groups bytes and seconds, or rate"
TRANSACTIONS = ("1/s", "tps", "trans/s", "Trans/s", "transactions/s", "req/s", "requests/s")
"""Units in which tools print what netbench has in the first."""
SEARCHED = 32 * 1024  # characters at the end of an output that are searched
LINE = 8 * 1024  # and of each line: many patterns take the square of it, and nothing else runs
PLACEHOLDERS: Mapping[str, str] = {
    "address": "",  # the receiver's data address
    "sender_address": "",
    "port": "",  # a TCP port of the run
    "seconds": "duration",
    "bytes": "`bytes`",
    "chunk": "size of a call",
    "streams": "",  # their number
    "file": "file there",  # the source's path for the client, the sink's for the server
    "sender_cpu": "CPU for the sender (`pin`)",
    "receiver_cpu": "CPU for the receiver (`pin`)",
    "congestion": "`congestion`",
    "request": "requests",
    "response": "requests",
}
"""Placeholder -> what a cell is said to lack where nothing stands in its place ("": no cell lacks
it).
"""
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
Groups = Mapping[str, str | None]
"""What the named groups of a pattern hold (None: nothing)."""
Match = tuple[str, Groups]
"""What a pattern matched, and its groups."""


class OwnTool(Adaptor):
    """What `tools:` describes."""

    def __init__(self, tool: Tool) -> None:
        self._tool = tool
        self.name = tool.name

    def limits(self, transfer: Transfer, one_host: bool) -> Mapping[str, object]:
        words = _words(transfer, Place("", 1, transfer.pin.sender, transfer.pin.receiver))
        pins = transfer.pin.kind
        words |= {side: "1" for side in ("sender_cpu", "receiver_cpu") if pins in ("same", "apart")}
        ends = (self._tool.client, transfer.source.path), (self._tool.server, transfer.sink.path)
        unset = transfer.direct or transfer.fsync != "none"
        return {"its command line has no place for `direct` and `fsync`": unset} | {
            f"its command line has {{{name}}}, and the cell has no {PLACEHOLDERS[name]}": True
            for argv, file in ends
            for name in placeholders(argv)
            if not (words | {"file": file})[name]
        }

    def commands(self, transfer: Transfer, place: Place) -> Commands:
        words = _words(transfer, place)
        return Commands(
            _filled(self._tool.client, words | {"file": transfer.source.path}),
            _filled(self._tool.server, words | {"file": transfer.sink.path}),
            self._tool.ready,
        )

    def is_complete(self, output: Output) -> bool:
        patterns = [pattern for _, pattern in self._tool.captures]
        return None not in search(patterns, output.text, output.errors, output.server)

    def reading(self, transfer: Transfer, output: Output) -> Reading:
        pattern = dict(self._tool.captures).get(THROUGHPUT, "")
        (own, errors, server) = map(end_of, (output.text, output.errors, output.server))
        if pattern and not re.search(pattern, own) and not re.search(pattern, errors):
            results = sum(1 for _ in re.finditer(pattern, server))
            if results > transfer.streams:
                raise ValueError(
                    f"its server printed {results} results: something else connected to it, or the"
                    f" pattern {pattern!r} matches more than the result"
                )
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
    default = 1 if transfer.asks else ""
    return {
        "address": place.address or "address",
        "sender_address": place.source or ("::" if ":" in place.address else "0.0.0.0"),
        "port": str(place.port),
        "seconds": seconds_of(transfer) if transfer.duration else "",
        "bytes": str(transfer.bytes or ""),
        "chunk": str(transfer.chunk or ""),
        "streams": str(transfer.streams),
        "sender_cpu": ",".join(map(str, place.sender_cpus)),
        "receiver_cpu": ",".join(map(str, place.receiver_cpus)),
        "congestion": transfer.congestion or "",
        "request": str(transfer.options.get("request", default)),
        "response": str(transfer.options.get("response", default)),
    }


def _filled(argv: tuple[str, ...], words: Mapping[str, str]) -> tuple[str, ...]:
    """A command line with all placeholders replaced at once: what replaces one is final."""
    return tuple(_PLACEHOLDER.sub(lambda m: words.get(m[1], m[0]), word) for word in argv)


def groups_wanted(metric: str) -> str:
    """What the pattern of a metric has to have, in words."""
    return GROUPS if metric == THROUGHPUT else "the named group value"


def lacks_groups(metric: str, pattern: str) -> bool:
    """Whether a pattern has not the groups that its metric needs. Errors: ValueError."""
    groups = set(compiled(pattern).groupindex)
    if metric == THROUGHPUT:
        return not ({"bytes", "seconds"} <= groups or "rate" in groups)
    return "value" not in groups


def read(captures: Sequence[tuple[str, str]], *texts: str) -> Reading:
    """What patterns find, by metric. Errors: ValueError."""
    tool = None
    by_metric = {}
    matches = search([pattern for _, pattern in captures], *texts)
    for (metric, pattern), match in zip(captures, matches, strict=True):
        if match is None:
            output = shown(next(filter(str.strip, texts), ""))
            raise ValueError(
                f"{metric}: its output does not match the pattern {pattern!r}: {output}"
            )
        try:
            if metric == THROUGHPUT:
                tool, by_metric[metric] = _throughput(match[1]), Capture(match[0][:TEXT_MAX])
            else:
                capture = _value(match)
                each = metric == "transactions" and capture.unit in TRANSACTIONS
                by_metric[metric] = replace(capture, unit="1/s") if each else capture
        except ValueError as error:
            raise ValueError(
                f"{metric}: no number where the pattern matches {shown(match[0])}: {error}"
            ) from error
    return Reading(tool, by_metric)


def _group(groups: Groups, name: str) -> str:
    """A group with its unit, where that is in a group of its own."""
    return " ".join(filter(None, (groups.get(name), groups.get("unit"))))


def _throughput(groups: Groups) -> ToolReading:
    if groups.get("rate") is not None:
        rate = _group(groups, "rate")
        printed_rate(rate)  # a rate that cannot be read fails the run
        return ToolReading(rate=rate)
    seconds = printed_time(groups.get("seconds") or "")
    return moved(printed_size(_group(groups, "bytes")), seconds)


def _value(match: Match) -> Capture:
    """Times in µs and rates in Gb/s, one unit for all runs; what else there is, as printed."""
    text, quantity = match[0][:TEXT_MAX], _group(match[1], "value")
    number, unit = printed(quantity)
    if not unit:
        return Capture(text, number)
    for parse, divisor, base in ((printed_microseconds, 1.0, "µs"), (printed_rate, 1e9, "Gb/s")):
        try:
            return Capture(text, parse(quantity) / divisor, base)
        except ValueError:
            continue
    return Capture(text, number, unit[:20])


def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern as Python reads it. Errors: ValueError."""
    try:
        return re.compile(pattern)
    except (re.error, OverflowError) as error:
        raise ValueError(str(error)) from error
    except RecursionError as error:
        raise ValueError("its groups are nested too deeply") from error


def end_of(text: str) -> str:
    """Its last SEARCHED characters, from the start of a line, or else of a word: what was cut off
    may be the first digits of a number. Of long lines likewise the last LINE.
    """
    end = text if len(text) <= SEARCHED else text[-SEARCHED:].partition("\n")[2]
    end = end or re.sub(r"^\S*", "", text[-SEARCHED:])
    return "\n".join(
        line if len(line) <= LINE else re.sub(r"^\S*", "", line[-LINE:]) for line in end.split("\n")
    )


def search(patterns: Sequence[str], *texts: str) -> list[Match | None]:
    """Of each pattern the first match in what the texts end with."""
    ends = [end_of(text) for text in texts]
    matches: list[Match | None] = []
    for pattern in patterns:
        match = next(filter(None, (re.search(pattern, end) for end in ends)), None)
        matches.append(match and (match[0], match.groupdict()))
    return matches
