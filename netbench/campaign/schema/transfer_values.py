"""Values of `transfer:` that can be mappings: source, sink, pin, tool; and the range of ports."""

from __future__ import annotations

import math
import re
from pathlib import PurePosixPath
from typing import Annotated, Any

from netbench.base.units import TIME_PATTERN, parse_time
from netbench.campaign.messages import expected, nearest, wrong
from netbench.campaign.schema import kinds
from netbench.campaign.schema.keys import Keys, optional, required
from netbench.campaign.schema.kinds import Kind
from netbench.campaign.schema.tools import TOOL_NAME, pattern_of
from netbench.campaign.tree import Plain
from netbench.model import Pin, Sink, Source, Tool
from netbench.tools.adaptors import TOOLS
from netbench.tools.own import groups_wanted
from netbench.tools.tool import THROUGHPUT

_ARGUMENT = kinds.text("an argument of the program")
_ARGV = kinds.list_of("a list of words, the program first")
CPUS_MAX, CPUS_LISTED = 65536, 1024  # numbers of CPUs; CPUs of one side
_PATH = kinds.matching("a path", r"[^\0\n]{1,4095}")


_CPU = kinds.number("a CPU", 0, CPUS_MAX - 1)
_CPU_RANGE = r"([0-9]{1,5})-([0-9]{1,5})"


def _cpu_range(value: Plain) -> list[int]:
    """One CPU, or a range of them such as 0-3."""
    match = re.fullmatch(_CPU_RANGE, value) if isinstance(value, str) else None
    if not match:
        return [_CPU.parse(value)]
    low, high = int(match[1]), int(match[2])
    if not low <= high < CPUS_MAX:
        raise expected(f"a range of CPUs such as 0-3, from 0 to {CPUS_MAX - 1}", value)
    return list(range(low, high + 1))


def _cpus(value: Plain) -> tuple[int, ...]:
    if value == []:
        raise wrong("expected a CPU, a range such as 0-3, or a list of them, got an empty list")
    cpus = [
        cpu for one in (value if isinstance(value, list) else [value]) for cpu in _cpu_range(one)
    ]
    twice = [cpu for cpu in cpus if cpus.count(cpu) > 1] if len(cpus) <= CPUS_LISTED else []
    if len(cpus) > CPUS_LISTED:
        raise wrong(f"expected at most {CPUS_LISTED} CPUs, got {len(cpus)}")
    if twice:
        raise wrong(f"expected each CPU once, got CPU {twice[0]} twice")
    return tuple(cpus)


_ONE_CPU = {"anyOf": [_CPU.schema, {"type": "string", "pattern": f"^({_CPU_RANGE})$"}]}
_CPUS = Kind(
    _cpus, {"anyOf": [*_ONE_CPU["anyOf"], {"type": "array", "items": _ONE_CPU, "minItems": 1}]}
)


class FileSource(Keys):
    """{file: F}"""

    file: Annotated[str, _PATH] = required("path of the file to send", "/srv/image.iso")


class FilesSource(Keys):
    """{files: N, size: S}"""

    files: Annotated[int, kinds.number("a number of files", 1, 100_000)] = required(
        "how many files to make", 60
    )
    size: Annotated[int, kinds.size(1)] = required("the size of each file, such as 300K", "300K")


class FileSink(Keys):
    """{file: F, overwrite: true}"""

    file: Annotated[str, _PATH] = required("path of the file to fill", "/data/out")
    overwrite: Annotated[bool, kinds.switch()] = optional(
        "whether the file may exist already, or be a block device", "on", default="off"
    )


class CpuPin(Keys):
    """{sender: 0-3, receiver: [2, 4]}"""

    sender: Annotated[tuple[int, ...] | None, _CPUS] = optional(
        "CPUs of the sender: one, a range or a list, which its threads take in turn; left out: any",
        "0-3",
    )
    receiver: Annotated[tuple[int, ...] | None, _CPUS] = optional(
        "CPUs of the receiver; left out: any", [2, 4]
    )


class ArgvTool(Keys):
    """{argv: [...], pattern: '...'}"""

    argv: Annotated[list[Annotated[str, _ARGUMENT]], _ARGV] = required(
        "a list of words, the program first", ["mytool", "{address}", "{port}"]
    )
    pattern: Annotated[str, pattern_of(THROUGHPUT)] = required(
        f"a regular expression with {groups_wanted(THROUGHPUT)}", "rate=(?P<rate>.*)"
    )


def _source(value: Plain) -> Source:
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


def _tool(value: Plain) -> Tool:
    if isinstance(value, dict) and value:
        tool = ArgvTool.model_validate(value)
        argv = tuple(tool.argv)
        return Tool(PurePosixPath(argv[0]).name, argv, captures=((THROUGHPUT, tool.pattern),))
    if isinstance(value, str) and re.fullmatch(TOOL_NAME, value):
        return Tool(value)
    raise expected("none, the name of a tool, or {argv: [...], pattern: '...'}", value)


def _port(value: Plain) -> tuple[int, int]:
    match = (
        re.fullmatch(r"([0-9]{1,5})(?:-([0-9]{1,5}))?", value) if isinstance(value, str) else None
    )
    if match:
        low, high = int(match[1]), int(match[2] or match[1])
        if 1 <= low <= high <= 65535:
            return low, high
    raise expected("a port such as 5000 or a range such as 5000-5010", value)


def _seconds(value: Plain) -> int:
    """Nanoseconds of a profile: seconds as a bare number, or a time."""
    if isinstance(value, str) and re.fullmatch("[1-9][0-9]{0,5}", value):
        return parse_time(f"{value}s")
    return int(kinds.time(1).parse(value))


SIZES_MAX = 16


def size_or_drawn(size: Kind) -> Kind:
    """A size; or those that are drawn, with their shares, as a text: 64:0.7,16384:0.3."""
    share = kinds.share("a share", "70%", 0, 1)

    def parse(value: Plain) -> Any:
        if not isinstance(value, dict) or not value:
            return size.parse(value)
        shares = {size.parse(each): share.parse(part) for each, part in value.items()}
        if len(shares) > SIZES_MAX or not math.isclose(sum(shares.values()), 1):
            together = f"{len(shares)} of {100 * sum(shares.values()):.6g}%"
            raise wrong(f"expected 1 to {SIZES_MAX} sizes of 100% together, got {together}")
        return ",".join(f"{each}:{part:.12g}" for each, part in shares.items())

    drawn = {"type": "object", "additionalProperties": share.schema, "minProperties": 1}
    return Kind(parse, {"anyOf": [size.schema, drawn]})


class PerSecond(int):
    """A rate of requests."""


PER_SECOND = r"([0-9]+(?:\.[0-9]+)?)([kM]?)/s"
SCALES = {"": 1, "k": 1000, "M": 1_000_000}


def rate_or_requests(rate: Kind) -> Kind:
    """A rate in bits per second, or of requests: 10000/s."""

    def parse(value: Plain) -> Any:
        match = re.fullmatch(PER_SECOND, value) if isinstance(value, str) else None
        if isinstance(value, str) and value.isdigit():
            raise expected("a rate such as 940Mb/s, or of requests 1000/s", value)
        if not match:
            return rate.parse(value)
        number = float(match[1]) * SCALES[match[2]]
        if not 1 <= number <= 1e9 or number % 1:
            raise expected("a whole number of requests a second, such as 10000/s", value)
        return PerSecond(number)

    return Kind(parse, {"anyOf": [rate.schema, {"type": "string", "pattern": f"^{PER_SECOND}$"}]})


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
SINK = kinds.word_or(
    {"discard": Sink()},
    FileSink,
    lambda keys: Sink("file", keys.file, keys.overwrite),
    "discard, {file: PATH} or {file: PATH, overwrite: true}",
)
PIN = kinds.word_or(
    {word: Pin(word) for word in ("none", "same", "apart")},
    CpuPin,
    lambda keys: Pin("cpus", keys.sender or (), keys.receiver or ()),
    "none, same, apart or {sender: 2, receiver: 3}, with CPUs such as 2, 0-3 or [2, 4]",
)
TOOL = Kind(
    _tool,
    {
        "anyOf": [
            {"enum": ["none", *TOOLS]},
            {"type": "string", "pattern": f"^({TOOL_NAME})$"},
            ArgvTool.model_json_schema(),
        ]
    },
)
PORT = Kind(
    _port,
    {
        "type": ["integer", "string"],
        "format": "port or range of ports",
        "minimum": 1,
        "maximum": 65535,
        "pattern": "^[0-9]+(-[0-9]+)?$",
    },
)
SECONDS = Kind(
    _seconds,
    {
        "anyOf": [
            {"type": "integer", "minimum": 1},
            {"type": "string", "format": "time", "pattern": TIME_PATTERN},
        ]
    },
)
