"""Values of `transfer:` that can be mappings: source, sink, pin and tool; and the range
of ports.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import Field

from netbench.campaign import words
from netbench.campaign.keys import Keys
from netbench.campaign.words import Kind, expected, nearest, wrong
from netbench.model import Pin, Sink, Source, Tool
from netbench.units import TIME_PATTERN, parse_time

_ARGUMENT = words.text("an argument of the program")
_ARGV = words.list_of("a list of words, the program first")
_PATH = words.matching("a path", r"[^\0\n]{1,4095}")
_CPU = words.number("a CPU", 0, 65535)


class FileSource(Keys):
    """{file: F}"""

    file: Annotated[str, _PATH] = Field(description="file: the path of the file to send")


class FilesSource(Keys):
    """{files: N, size: S}"""

    files: Annotated[int, words.number("a number of files", 1, 100_000)] = Field(
        description="files: how many files to make"
    )
    size: Annotated[int, words.size(1)] = Field(
        description="size: the size of each file, such as 300K"
    )


class FileSink(Keys):
    """{file: F, overwrite: true}"""

    file: Annotated[str, _PATH] = Field(description="file: the path of the file to fill")
    overwrite: Annotated[bool, words.switch()] = False


class CpuPin(Keys):
    """{sender: 2, receiver: 3}"""

    sender: Annotated[int | None, _CPU] = None
    receiver: Annotated[int | None, _CPU] = None


def _pattern(value: Any) -> str:
    what = "a regular expression with the named groups bytes and seconds, or rate"
    if not isinstance(value, str):
        raise expected(what, value)
    try:
        groups = set(re.compile(value).groupindex)
    except re.error as error:
        raise wrong(f"expected {what}, got {value!r}: {error}") from error
    if not ({"bytes", "seconds"} <= groups or "rate" in groups):
        raise expected(what, value)
    return value


class ArgvTool(Keys):
    """{argv: [...], pattern: '...'}"""

    argv: Annotated[list[Annotated[str, _ARGUMENT]], _ARGV] = Field(
        description="argv: a list of words, the program first"
    )
    pattern: Annotated[str, Kind(_pattern, {"type": "string"})] = Field(
        description="pattern: a regular expression with the named groups bytes and seconds, or rate"
    )


def _source(value: Any) -> Source:
    if isinstance(value, dict) and ("files" in value or "size" in value):
        files = FilesSource.model_validate(value)
        return Source("files", count=files.files, size=files.size)
    if isinstance(value, dict) and value:
        return Source("file", path=FileSource.model_validate(value).file)
    if value in ("memory", "zero"):
        return Source(value)
    raise expected(
        "memory, zero, {file: PATH} or {files: 60, size: 300K}",
        value,
        nearest(value, ("memory", "zero")),
    )


def _sink(value: Any) -> Sink:
    if isinstance(value, dict) and value:
        sink = FileSink.model_validate(value)
        return Sink("file", sink.file, sink.overwrite)
    if value == "discard":
        return Sink()
    raise expected(
        "discard, {file: PATH} or {file: PATH, overwrite: true}",
        value,
        nearest(value, ("discard",)),
    )


def _pin(value: Any) -> Pin:
    if isinstance(value, dict) and value:
        pin = CpuPin.model_validate(value)
        return Pin("cpus", pin.sender, pin.receiver)
    if value in ("none", "same", "apart"):
        return Pin(value)
    raise expected(
        "none, same, apart or {sender: 2, receiver: 3}",
        value,
        nearest(value, ("none", "same", "apart")),
    )


def _tool(value: Any) -> Tool:
    if isinstance(value, dict) and value:
        tool = ArgvTool.model_validate(value)
        return Tool("argv", tuple(tool.argv), tool.pattern)
    if value in ("none", "iperf3"):
        return Tool(value)
    raise expected(
        "none, iperf3 or {argv: [...], pattern: '...'}", value, nearest(value, ("none", "iperf3"))
    )


def _port(value: Any) -> tuple[int, int]:
    match = (
        re.fullmatch(r"([0-9]{1,5})(?:-([0-9]{1,5}))?", value) if isinstance(value, str) else None
    )
    if match:
        low, high = int(match[1]), int(match[2] or match[1])
        if 1 <= low <= high <= 65535:
            return low, high
    raise expected("a port such as 5000 or a range such as 5000-5010", value)


def _seconds(value: Any) -> int:
    """Nanoseconds of a profile: seconds as a bare number, or a time."""
    if isinstance(value, str) and re.fullmatch("[1-9][0-9]{0,5}", value):
        return parse_time(f"{value}s")
    return int(words.time(1).parse(value))


SOURCE = Kind(
    _source,
    {
        "anyOf": [
            {"enum": ["memory", "zero"]},
            FileSource.model_json_schema(),
            FilesSource.model_json_schema(),
        ]
    },
)
SINK = Kind(_sink, {"anyOf": [{"const": "discard"}, FileSink.model_json_schema()]})
PIN = Kind(_pin, {"anyOf": [{"enum": ["none", "same", "apart"]}, CpuPin.model_json_schema()]})
TOOL = Kind(_tool, {"anyOf": [{"enum": ["none", "iperf3"]}, ArgvTool.model_json_schema()]})
PORT = Kind(
    _port,
    {
        "type": ["integer", "string"],
        "minimum": 1,
        "maximum": 65535,
        "pattern": "^[0-9]+(-[0-9]+)?$",
    },
)
SECONDS = Kind(
    _seconds,
    {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": TIME_PATTERN}]},
)
