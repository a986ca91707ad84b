"""A record: a line of records.jsonl, what one run gave. A key of it is the name of a field here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import AfterValidator, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema

from netbench.base import names
from netbench.base.units import LARGEST
from netbench.result import codec
from netbench.result.codec import REST, SCHEMA, Expected, Integer, IntegerPair, JsonObject, TextPair

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
        one_stream = Annotated[list[Integer], Field(min_length=1, max_length=1)]
        return handler.generate_schema(
            Annotated[
                Annotated[list[Integer], count, Field(fail_fast=True)]
                | Annotated[list[one_stream], count, Field(fail_fast=True)]
                | Annotated[list[list[Integer]], count, AfterValidator(_check_streams)],
                Field(union_mode="left_to_right"),
                Expected("whole numbers at the window's edges"),
            ]
        )


Time = Annotated[str, AfterValidator(check_time)]
Printed = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
RunNumber = Annotated[int, Field(ge=1, lt=2**63)]
Count = Annotated[int, Field(ge=0, lt=2**63)]
SettingValue = Annotated[
    str | Integer | list[Integer] | None, Expected("a text, a whole number, or a list of them")
]
PairName = Annotated[str, Field(pattern=f"^{names.HOST}>{names.HOST}$")]
Line = Annotated[str, Field(pattern=names.LINE)]


def _free(name: str) -> str:
    if names.is_taken(name):
        raise ValueError("the name of a column that tables have already")
    return name


FactorName = Annotated[str, Field(pattern=f"^{names.FACTOR}$"), AfterValidator(_free)]
Factors = Mapping[FactorName, Line]
MetricName = Annotated[
    str,
    Field(pattern=f"^{names.METRIC}$"),
    AfterValidator(lambda name: name if name == "throughput" else _free(name)),
]
Window = Annotated[IntegerPair, AfterValidator(_check_window)]
Counters = Mapping[str, Annotated[Any, _Edges(2, 2)]]
"""Counter -> [opening, closing]: its values at the edges of the window. A value is a whole number,
or a list with one for each stream. Lists stay lists: a record has some forty counters.
"""
ProofCounters = Mapping[str, Annotated[Any, _Edges(1, 3)]]
"""Proof -> [opening, closing, drained], as in Counters."""


@dataclass(frozen=True)
class ToolReading(JsonObject):
    """What an external tool said it moved: bytes and seconds, or a rate in its own words."""

    bytes: Annotated[Integer | None, "what it moved", "bytes"] = None
    seconds: Annotated[float | None, "how long it took", "s"] = None
    rate: Annotated[str | None, "its rate, as it printed it"] = None


@dataclass(frozen=True)
class Capture(JsonObject):
    """What a pattern found in the output of an external tool."""

    text: Annotated[str, "what it matched, as it was printed"]
    value: Annotated[Printed | None, "the number; of `throughput` it is in `receiver.tool`"] = None
    unit: Annotated[str, "of `value`: `Gb/s` for rates, `µs` for times, else as it was printed"] = (
        ""
    )


@dataclass(frozen=True)
class SideCounters(JsonObject):
    """Raw counters of one side of a run, and notes on it."""

    host: Annotated[str, "the host's name in the campaign"]
    time_ns: Annotated[
        Window | None, "CLOCK_MONOTONIC of the worker at the window's edges", "ns"
    ] = None
    resident: Annotated[
        Integer | None, "bytes of the source in the page cache before the run", "bytes"
    ] = None
    source_size: Annotated[Integer | None, "bytes of the source in all", "bytes"] = None
    resident_after: Annotated[
        Integer | None, "bytes of the source in the page cache after the run", "bytes"
    ] = None
    cache: Annotated[str, "what was asked: `warm` or `cold`"] = ""
    sink_resident: Annotated[
        IntegerPair | None, "bytes of the sink in the page cache before and after the run", "bytes"
    ] = None
    sink_dirty: Annotated[
        IntegerPair | None,
        "those of them that were not on the disk yet; after the run, but before `fsync: after`",
        "bytes",
    ] = None
    fsync_ns: Annotated[Integer | None, "how long forcing the sink to its disk took", "ns"] = None
    rejected_connections: Annotated[
        Integer,
        "connections to the data port that did not send the run's token; of a tool: that were"
        " there before its client's",
        "connections",
    ] = 0
    samples_lost: Annotated[Integer, "interval samples that did not fit the worker's memory"] = 0
    tool: Annotated[
        ToolReading | None, "of an external tool: the bytes that it reported (receiver)"
    ] = None
    meters: Annotated[
        Mapping[str, Counters],
        "by meter (`flow tcp rusage procstat` and others), each a key of the side: counter ->"
        " [opening, closing], with one number for each stream where it counts by stream",
        REST,
    ] = field(default_factory=dict)


@dataclass(frozen=True)
class SettingNote(JsonObject):
    """A setting as it was asked and as the kernel said when it was read back."""

    asked: Annotated[SettingValue, "what was asked; null where it was left to the kernel"]
    read: Annotated[SettingValue, "what was read back"]
    after: Annotated[str | None, "what was read after the run, where that was something else"] = (
        None
    )


@dataclass(frozen=True)
class Settings(JsonObject):
    """Settings of a run, read back."""

    sender: Annotated[Mapping[str, SettingNote], "by setting, of the sender"]
    receiver: Annotated[Mapping[str, SettingNote], "by setting, of the receiver"]
    moved: Annotated[
        Mapping[str, TextPair],
        "`HOST.NAME` -> what it was before and after a change that moved it along",
    ]

    def of(self, side: SideName) -> Mapping[str, SettingNote]:
        """One side's settings."""
        return self.sender if side == "sender" else self.receiver


@dataclass(frozen=True)
class Proof(JsonObject):
    """What each method counted: by counter [opening, closing, drained], one number a stream."""

    sender: Annotated[ProofCounters, "of the send method"]
    receiver: Annotated[ProofCounters, "of the receive method"]

    def of(self, side: SideName) -> ProofCounters:
        """One side's proofs."""
        return self.sender if side == "sender" else self.receiver


NO_SETTINGS, NO_PROOF = Settings({}, {}, {}), Proof({}, {})


@dataclass(frozen=True)
class Record(JsonObject):
    """One run. Runs that did not get so far have no sides, settings or proof."""

    head: ClassVar = {"schema": Literal[SCHEMA]}
    run: Annotated[RunNumber, "counts from 1 in the order of execution"]
    cell: Annotated[str, "the cell's id: its levels, `send=sendfile,pin=apart`"]
    pair: Annotated[PairName, "`sender>receiver`"]
    block: Annotated[Count, "counts from 0"]
    boot: Annotated[
        Count, "the boot that the hosts were in: from 1 where netbench boots them, else 0"
    ]
    factors: Annotated[Factors, "factor -> level, as written"]
    status: Annotated[Status, "how the run ended"]
    reason: Annotated[str, 'why it is not ok; "" where it is']
    started: Annotated[Time, "UTC in ISO 8601"]
    sender: Annotated[SideCounters | None, "the sender's counters"] = None
    receiver: Annotated[SideCounters | None, "the receiver's counters"] = None
    settings: Annotated[Settings, "what was asked of hosts and sockets, and read back"] = (
        NO_SETTINGS
    )
    proof: Annotated[Proof, "what shows that the methods did what they should"] = NO_PROOF
    captures: Annotated[
        Annotated[Mapping[MetricName, Capture], Field(max_length=names.CAPTURES_MAX)],
        "of an external tool, by metric: what its output said",
    ] = field(default_factory=dict)
    unverified: Annotated[
        str, "why what arrived was not verified, where `verify` was asked for"
    ] = ""
    cut: Annotated[
        Mapping[str, float],
        "side -> the longest time in which its worker or the controller did not hear the other,"
        " of a run that went on meanwhile",
        "s",
    ] = field(default_factory=dict)
    control: Annotated[
        bool,
        "whether it is of a control: of a comparison's baseline, a second time, whose cell ends"
        " in `,control`",
    ] = False

    round: Annotated[
        RunNumber | None,
        "of a campaign of several pairs: the round of those that run side by side, from 1",
    ] = None
    concurrent: Annotated[
        tuple[PairName, ...] | None,
        "of a campaign of several pairs: the others whose data began to move with this run's;"
        " [] where none did",
    ] = None

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
