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
from functools import lru_cache, partial
from typing import Any, Literal, get_args

from netbench import codec
from netbench.codec import HIGHEST, LOWEST, Flaw, about

SCHEMA = 2
Status = Literal["ok", "failed", "refused", "unsupported", "interrupted"]
STATUSES: tuple[Status, ...] = get_args(Status)
SideName = Literal["sender", "receiver"]
SIDES: tuple[SideName, ...] = get_args(SideName)
Counters = Mapping[str, Any]
"""Counter or proof -> its values at the edges of the window: [opening, closing], of a proof also
[opening, closing, drained]. A value is a whole number, or a list with one for each stream."""
_TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z")


def _meters(raw: Any) -> Mapping[str, Counters]:
    """Counters by meter, each at two edges. Raw lists are kept: a record has some forty counters,
    and tuples of them would cost as much as reading the JSON.
    """
    for meter, counters in raw.items():
        try:  # what nearly all counters look like; the complete check takes three times as long
            for edges in counters.values():
                opening, closing = edges
                if type(opening) is list:
                    (opening,), (closing,) = edges
                if type(opening) is not int or type(closing) is not int:
                    break
                if not 0 <= opening <= closing <= HIGHEST:
                    break
            else:
                continue
        except (AttributeError, TypeError, ValueError):
            pass
        _check_counters(counters, (2,), meter)
    return raw  # type: ignore[no-any-return]


def _proof(raw: Any) -> Counters:
    """Counters of one side's proof, each at up to three edges."""
    try:  # as in _meters
        for edges in raw.values():
            opening, closing, drained = edges
            if type(opening) is list:
                (opening,), (closing,), (drained,) = edges
            if not type(opening) is type(closing) is type(drained) is int:
                break
            if not 0 <= opening <= closing <= drained <= HIGHEST:
                break
        else:
            return raw  # type: ignore[no-any-return]
    except (AttributeError, TypeError, ValueError):
        pass
    _check_counters(raw, (1, 2, 3))
    return raw  # type: ignore[no-any-return]


def _check_counters(counters: Any, edge_counts: tuple[int, ...], meter: str = "") -> None:
    """Refuse counters that are not 64-bit numbers, or lists of as many of them, at each edge.
    Errors: Flaw.
    """
    if type(counters) is not dict:
        raise Flaw(f"expected an object of counters, found {codec.shown(counters)}", meter)
    for name, edges in counters.items():
        if type(edges) is not list or len(edges) not in edge_counts or not _are_numbers(edges):
            path = f"{meter}.{name}" if meter else name
            raise Flaw("expected whole numbers at the window's edges", path)


def _are_numbers(edges: list[Any]) -> bool:
    if type(edges[0]) is not list:
        return all(map(_is_number, edges))
    size = len(edges[0])
    return all(
        type(streams) is list and len(streams) == size and all(map(_is_number, streams))
        for streams in edges
    )


def _is_number(value: Any) -> bool:
    return type(value) is int and LOWEST <= value <= HIGHEST


def _value(raw: Any) -> Any:
    """What a setting was asked or read as: a text, a number, a list of numbers, or None."""
    if raw is None or (type(raw) is str and raw.isascii()):
        return raw
    if type(raw) is list:
        return [codec.whole_number(each) for each in raw]
    return codec.text(raw) if type(raw) is str else codec.number(raw)


def _time(raw: Any) -> str:
    try:
        if _TIME.fullmatch(raw):
            datetime.fromisoformat(raw)
            return raw  # type: ignore[no-any-return]
    except (TypeError, ValueError):
        pass
    raise Flaw("expected a time such as 2026-03-01T12:00:00.123456Z")


def _number_from(least: int) -> codec.Check:
    """A whole number that a column of 64 bits takes, and that is not less than `least`."""

    def check(raw: Any) -> Any:
        if type(raw) is not int or not least <= raw < 2**63:
            raise Flaw(f"expected a whole number from {least} on")
        return raw

    return check


@dataclass(frozen=True)
class ToolReading:
    """What an external tool said it moved: bytes and seconds, or a rate in its own words."""

    bytes: int | None = field(default=None, metadata=about("what it moved", "bytes"))
    seconds: float | None = field(default=None, metadata=about("how long it took", "s"))
    rate: str | None = field(default=None, metadata=about("its rate, as it printed it"))


@dataclass(frozen=True)
class SideCounters:
    """Raw counters of one side of a run, and notes on it."""

    host: str = field(metadata=about("the host's name in the campaign"))
    time_ns: tuple[int, int] | None = field(
        default=None,
        metadata=about("CLOCK_MONOTONIC of the worker at the window's edges", "ns"),
    )
    resident: int | None = field(
        default=None,
        metadata=about("bytes of the source in the page cache before the run", "bytes"),
    )
    source_size: int | None = field(
        default=None, metadata=about("bytes of the source in all", "bytes")
    )
    cache: str = field(default="", metadata=about("what was asked: `warm` or `cold`"))
    rejected_connections: int = field(
        default=0,
        metadata=about(
            "connections to the data port that did not send the run's token", "connections"
        ),
    )
    samples_lost: int = field(
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
            check=_meters,
        ),
    )


@dataclass(frozen=True)
class SettingNote:
    """A setting as it was asked and as the kernel said when it was read back."""

    asked: Any = field(
        metadata=about("what was asked; null where it was left to the kernel", check=_value)
    )
    read: Any = field(metadata=about("what was read back", check=_value))
    after: str | None = field(
        default=None,
        metadata=about("what was read after the run, where that was something else"),
    )


@lru_cache(4096, typed=True)
def _note(asked: Any, read: Any) -> SettingNote:
    """A note without `after`. Runs of a campaign share few different ones."""
    return SettingNote(_value(asked), _value(read))


def _notes(raw: Any) -> Mapping[str, SettingNote]:
    """Notes by setting: as codec.read_as reads them, in a third of the time."""
    try:
        return {
            name: _note(note["asked"], note["read"])
            if len(note) == 2
            else codec.read_as(SettingNote, note)
            for name, note in raw.items()
        }
    except (AttributeError, KeyError, TypeError, Flaw):  # numbers by stream, or a flaw
        return _ANY_NOTES(raw)  # type: ignore[no-any-return]


_ANY_NOTES = codec.mapping_of(partial(codec.read_as, SettingNote))


@dataclass(frozen=True)
class Settings:
    """Settings of a run, read back."""

    sender: Mapping[str, SettingNote] = field(
        metadata=about("by setting, of the sender", check=_notes)
    )
    receiver: Mapping[str, SettingNote] = field(
        metadata=about("by setting, of the receiver", check=_notes)
    )
    moved: Mapping[str, tuple[str, str]] = field(
        metadata=about("`HOST.NAME` -> what it was before and after a change that moved it along")
    )

    def of(self, side: SideName) -> Mapping[str, SettingNote]:
        """One side's settings."""
        return self.sender if side == "sender" else self.receiver


@dataclass(frozen=True)
class Proof:
    """What each method counted: by counter [opening, closing, drained], one number a stream."""

    sender: Counters = field(metadata=about("of the send method", check=_proof))
    receiver: Counters = field(metadata=about("of the receive method", check=_proof))

    def of(self, side: SideName) -> Counters:
        """One side's proofs."""
        return self.sender if side == "sender" else self.receiver


NO_SETTINGS, NO_PROOF = Settings({}, {}, {}), Proof({}, {})


@dataclass(frozen=True)
class Record:
    """One run. Runs that did not get so far have no sides, settings or proof."""

    run: int = field(
        metadata=about("counts from 1 in the order of execution", check=_number_from(1))
    )
    cell: str = field(metadata=about("the cell's id: its levels, `send=sendfile,pin=apart`"))
    pair: str = field(metadata=about("`sender>receiver`"))
    block: int = field(metadata=about("counts from 0", check=_number_from(0)))
    boot: int = field(
        metadata=about(
            "the boot that the hosts were in: from 1 where netbench boots them, else 0",
            check=_number_from(0),
        )
    )
    factors: Mapping[str, str] = field(metadata=about("factor -> level, as written"))
    status: Status = field(metadata=about("how the run ended"))
    reason: str = field(metadata=about('why it is not ok; "" where it is'))
    started: str = field(metadata=about("UTC in ISO 8601", check=_time))
    sender: SideCounters | None = field(default=None, metadata=about("the sender's counters"))
    receiver: SideCounters | None = field(default=None, metadata=about("the receiver's counters"))
    settings: Settings = field(
        default=NO_SETTINGS, metadata=about("what was asked of hosts and sockets, and read back")
    )
    proof: Proof = field(
        default=NO_PROOF, metadata=about("what shows that the methods did what they should")
    )
    cut: Mapping[str, float] = field(
        default_factory=dict,
        metadata=about(
            "side -> the longest time without a word of its worker, of a run that went on while the"
            " controller was cut off from it",
            "s",
        ),
    )

    @staticmethod
    def from_json(raw: object, where: object) -> Record:
        """A record from its JSON object. `where`: `FILE:LINE`. Errors: StoreError with it."""
        if type(raw) is not dict:
            raise codec.unreadable(where, "not a JSON object")
        if raw.get("schema") != SCHEMA:
            raise codec.other_schema(where, SCHEMA)
        values = raw.copy()
        del values["schema"]
        try:
            return codec.read_as(Record, values)
        except Flaw as flaw:
            raise codec.flawed(where, "a record", flaw) from flaw

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
    return Record.from_json(codec.parse(line, where), where)
