"""A record: one line of records.jsonl, what one run of one cell gave. Every key of a record is the
name of a field here.

A field's metadata has `about` (one sentence) and, where it has one, `unit`: the reference of
docs/records.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import AfterValidator, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema

from netbench.result import codec
from netbench.result.codec import (
    SCHEMA,
    Expected,
    Int64,
    Integer,
    IntegerPair,
    JsonObject,
    TextPair,
    about,
)

Status = Literal["ok", "failed", "refused", "unsupported", "interrupted"]
STATUSES: tuple[Status, ...] = get_args(Status)
SideName = Literal["sender", "receiver"]
SIDES: tuple[SideName, ...] = get_args(SideName)
_TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z")


def check_time(text: str) -> str:
    """The text, where it is a time of a record. Errors: ValueError."""
    if not _TIME.fullmatch(text):
        raise ValueError("not in ISO 8601")
    datetime.fromisoformat(text)
    return text


def _check_window(edges: tuple[int, int]) -> tuple[int, int]:
    if edges[0] > edges[1]:
        raise ValueError("it closes before it opens")
    return edges


def _check_streams(edges: list[list[int]]) -> list[list[int]]:
    if len({len(streams) for streams in edges}) != 1:
        raise ValueError("not as many streams at each edge")
    return edges


@dataclass(frozen=True)
class _Edges:
    """In an Annotated type: a counter's values at so many edges of the window."""

    least: int
    most: int

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        count = Field(min_length=self.least, max_length=self.most)
        # Nearly all counters have one number, or those of one stream: no Python is called for them.
        one_stream = Annotated[list[Int64], Field(min_length=1, max_length=1)]
        return handler.generate_schema(
            Annotated[
                Annotated[list[Int64], count, Field(fail_fast=True)]
                | Annotated[list[one_stream], count, Field(fail_fast=True)]
                | Annotated[list[list[Int64]], count, AfterValidator(_check_streams)],
                Field(union_mode="left_to_right"),
                Expected("whole numbers at the window's edges"),
            ]
        )


Time = Annotated[
    str, AfterValidator(check_time), Expected("a time such as 2026-03-01T12:00:00.123456Z")
]
RunNumber = Annotated[int, Field(ge=1, lt=2**63), Expected("a whole number from 1 on")]
Count = Annotated[int, Field(ge=0, lt=2**63), Expected("a whole number from 0 on")]
SettingValue = Annotated[
    str | Integer | list[Integer] | None, Expected("a text, a whole number, or a list of them")
]
PairName = Annotated[
    str, Field(pattern="^[^>]+>[^>]+$"), Expected("the names of two hosts as SENDER>RECEIVER")
]
Window = Annotated[
    IntegerPair,
    AfterValidator(_check_window),
    Expected("a list of 2 whole numbers, the second not below the first"),
]
Counters = Mapping[str, Annotated[Any, _Edges(2, 2)]]
"""Counter -> [opening, closing]: its values at the edges of the window. A value is a whole number,
or a list with one for each stream. Lists stay lists: a record has some forty counters.
"""
ProofCounters = Mapping[str, Annotated[Any, _Edges(1, 3)]]
"""Proof -> [opening, closing, drained], as in Counters."""


@dataclass(frozen=True)
class ToolReading(JsonObject):
    """What an external tool said it moved: bytes and seconds, or a rate in its own words."""

    bytes: Integer | None = field(default=None, metadata=about("what it moved", "bytes"))
    seconds: float | None = field(default=None, metadata=about("how long it took", "s"))
    rate: str | None = field(default=None, metadata=about("its rate, as it printed it"))


@dataclass(frozen=True)
class Capture(JsonObject):
    """What a pattern found in the output of an external tool."""

    text: str = field(metadata=about("what it matched, as it was printed"))
    value: float | None = field(
        default=None, metadata=about("the number; of `throughput` it is in `receiver.tool`")
    )
    unit: str = field(
        default="",
        metadata=about("of `value`: `Gb/s` for rates, `µs` for times, else as it was printed"),
    )


@dataclass(frozen=True)
class SideCounters(JsonObject):
    """Raw counters of one side of a run, and notes on it."""

    host: str = field(metadata=about("the host's name in the campaign"))
    time_ns: Window | None = field(
        default=None,
        metadata=about("CLOCK_MONOTONIC of the worker at the window's edges", "ns"),
    )
    resident: Integer | None = field(
        default=None,
        metadata=about("bytes of the source in the page cache before the run", "bytes"),
    )
    source_size: Integer | None = field(
        default=None, metadata=about("bytes of the source in all", "bytes")
    )
    resident_after: Integer | None = field(
        default=None,
        metadata=about("bytes of the source in the page cache after the run", "bytes"),
    )
    cache: str = field(default="", metadata=about("what was asked: `warm` or `cold`"))
    sink_resident: IntegerPair | None = field(
        default=None,
        metadata=about("bytes of the sink in the page cache before and after the run", "bytes"),
    )
    sink_dirty: IntegerPair | None = field(
        default=None,
        metadata=about(
            "those of them that were not on the disk yet; after the run, but before `fsync: after`",
            "bytes",
        ),
    )
    fsync_ns: Integer | None = field(
        default=None, metadata=about("how long it took to force the sink to its disk", "ns")
    )
    rejected_connections: Integer = field(
        default=0,
        metadata=about(
            "connections to the data port that did not send the run's token; of a tool: that were"
            " there before its client's",
            "connections",
        ),
    )
    samples_lost: Integer = field(
        default=0, metadata=about("interval samples that did not fit the worker's memory")
    )
    tool: ToolReading | None = field(
        default=None, metadata=about("of an external tool: the bytes that it reported (receiver)")
    )
    meters: Mapping[str, Counters] = field(
        default_factory=dict,
        metadata=about(
            "by meter (`flow tcp rusage procstat` and others), each a key of the side: counter ->"
            " [opening, closing], with one number for each stream where it counts by stream",
            rest=True,
        ),
    )


@dataclass(frozen=True)
class SettingNote(JsonObject):
    """A setting as it was asked and as the kernel said when it was read back."""

    asked: SettingValue = field(
        metadata=about("what was asked; null where it was left to the kernel")
    )
    read: SettingValue = field(metadata=about("what was read back"))
    after: str | None = field(
        default=None,
        metadata=about("what was read after the run, where that was something else"),
    )


@dataclass(frozen=True)
class Settings(JsonObject):
    """Settings of a run, read back."""

    sender: Mapping[str, SettingNote] = field(metadata=about("by setting, of the sender"))
    receiver: Mapping[str, SettingNote] = field(metadata=about("by setting, of the receiver"))
    moved: Mapping[str, TextPair] = field(
        metadata=about("`HOST.NAME` -> what it was before and after a change that moved it along")
    )

    def of(self, side: SideName) -> Mapping[str, SettingNote]:
        """One side's settings."""
        return self.sender if side == "sender" else self.receiver


@dataclass(frozen=True)
class Proof(JsonObject):
    """What each method counted: by counter [opening, closing, drained], one number a stream."""

    sender: ProofCounters = field(metadata=about("of the send method"))
    receiver: ProofCounters = field(metadata=about("of the receive method"))

    def of(self, side: SideName) -> ProofCounters:
        """One side's proofs."""
        return self.sender if side == "sender" else self.receiver


NO_SETTINGS, NO_PROOF = Settings({}, {}, {}), Proof({}, {})


@dataclass(frozen=True)
class Record(JsonObject):
    """One run. Runs that did not get so far have no sides, settings or proof."""

    head: ClassVar = {"schema": Literal[SCHEMA]}
    run: RunNumber = field(metadata=about("counts from 1 in the order of execution"))
    cell: str = field(metadata=about("the cell's id: its levels, `send=sendfile,pin=apart`"))
    pair: PairName = field(metadata=about("`sender>receiver`"))
    block: Count = field(metadata=about("counts from 0"))
    boot: Count = field(
        metadata=about("the boot that the hosts were in: from 1 where netbench boots them, else 0")
    )
    factors: Mapping[str, str] = field(metadata=about("factor -> level, as written"))
    status: Status = field(metadata=about("how the run ended"))
    reason: str = field(metadata=about('why it is not ok; "" where it is'))
    started: Time = field(metadata=about("UTC in ISO 8601"))
    sender: SideCounters | None = field(default=None, metadata=about("the sender's counters"))
    receiver: SideCounters | None = field(default=None, metadata=about("the receiver's counters"))
    settings: Settings = field(
        default=NO_SETTINGS, metadata=about("what was asked of hosts and sockets, and read back")
    )
    proof: Proof = field(
        default=NO_PROOF, metadata=about("what shows that the methods did what they should")
    )
    captures: Mapping[str, Capture] = field(
        default_factory=dict,
        metadata=about("of an external tool, by metric: what its output said"),
    )
    unverified: str = field(
        default="",
        metadata=about("why what arrived was not verified, where `verify` was asked for"),
    )
    cut: Mapping[str, float] = field(
        default_factory=dict,
        metadata=about(
            "side -> the longest time in which its worker or the controller did not hear the other,"
            " of a run that went on meanwhile",
            "s",
        ),
    )
    control: bool = field(
        default=False,
        metadata=about(
            "whether it is of a control: of a comparison's baseline, a second time, whose cell ends"
            " in `,control`"
        ),
    )

    round: RunNumber | None = field(
        default=None,
        metadata=about(
            "of a campaign of several pairs: the round of those that run side by side, from 1"
        ),
    )
    concurrent: tuple[PairName, ...] | None = field(
        default=None,
        metadata=about(
            "of a campaign of several pairs: the others whose data began to move with this run's;"
            " [] where none did"
        ),
    )

    def to_json(self) -> dict[str, Any]:
        """The JSON object of this record: settings and proof are there wherever a side is."""
        raw: dict[str, Any] = {"schema": SCHEMA, **codec.to_json(self)}
        if self.sender or self.receiver:
            raw |= {"settings": codec.to_json(self.settings), "proof": codec.to_json(self.proof)}
        return raw

    def side(self, name: SideName) -> SideCounters | None:
        """One side's counters."""
        return self.sender if name == "sender" else self.receiver


def parse_record(line: bytes, where: object) -> Record:
    """A line of records.jsonl. Errors: StoreError with `where`."""
    return codec.read(Record, line, where, "a record")
