"""The shapes of plan.json, facts.json and samples/noise.jsonl: every key is the name of a field
here, and reading checks each.

A field's metadata has `about`, as in netbench/result/record.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import pydantic

from netbench.base.json_lines import JsonLines, cannot_read
from netbench.base.opening import read_inside
from netbench.facts.cpu import NOT_EMULATED
from netbench.result import codec
from netbench.result.codec import SCHEMA, Expected, Integer, IntegerPair, JsonObject, Scalar, about

NOISE = "samples/noise.jsonl"
CAMPAIGN_FILES = ("campaign.yaml", "plan.json")
"""What a campaign was when it began."""


Ticks = Annotated[
    int,
    pydantic.Field(ge=1, le=10**6),
    Expected("clock ticks in a second, such as 100"),
]
Gauge = Annotated[Scalar | list[float | None], Expected("a number, a text, or a list of numbers")]
GaugePair = Annotated[tuple[Gauge, Gauge], Expected("a list of 2 numbers, texts or lists")]


@dataclass(frozen=True)
class PlannedCell(JsonObject):
    """A cell of the plan."""

    cell: str = field(metadata=about("the cell's id"))
    factors: Mapping[str, str] = field(metadata=about("factor -> level, as written"))
    control: bool = field(
        default=False, metadata=about("whether it is a comparison's baseline, a second time")
    )


@dataclass(frozen=True)
class PlannedBoot(JsonObject):
    """A boot of the plan."""

    boot: Integer = field(metadata=about("its number, from 1"))
    kernel: str = field(metadata=about("the level of `kernel`"))
    blocks: Integer = field(metadata=about("how many blocks are run in it"))
    build: Integer | None = field(
        default=None, metadata=about("which build of the kernel, from 1; null where it has one")
    )


@dataclass(frozen=True)
class PlannedRepeat(JsonObject):
    """`repeat` of the campaign."""

    min: Integer = field(metadata=about("the least number of runs of a cell"))
    max: Integer = field(metadata=about("the largest number of runs of a cell"))
    confidence: float = field(metadata=about("of the intervals, a fraction of 1"))
    precision: float = field(metadata=about("half-width over mean at which a cell closes"))
    metrics: tuple[str, ...] = field(metadata=about("the metrics that must be precise"))
    boots: Integer = field(default=1, metadata=about("boots of each kernel"))
    until: str = field(
        default="precision", metadata=about("what closes a comparison: precision or verdict")
    )


@dataclass(frozen=True)
class PlannedCompare(JsonObject):
    """`compare` of the campaign."""

    factor: str = field(metadata=about("the factor whose levels are compared"))
    baseline: str = field(metadata=about("the level that the others are compared to"))
    margin: float | None = field(
        default=None, metadata=about("the relative difference that does not matter")
    )
    control: bool = field(
        default=False, metadata=about("whether each baseline is run a second time, as a control")
    )


@dataclass(frozen=True)
class PlannedTool(JsonObject):
    """The command lines behind a tool's name."""

    client: str = field(metadata=about("that of the client, as a shell would take it"))
    server: str = field(default="", metadata=about("that of the server"))


@dataclass(frozen=True)
class PlannedLink(JsonObject):
    """A link of the campaign: a pair crosses it where one of its ends is among the hosts."""

    hosts: tuple[str, ...] = field(metadata=about("the hosts behind it"))
    capacity: Integer = field(default=1, metadata=about("pairs that may cross it at the same time"))


@dataclass(frozen=True)
class EngineRow(JsonObject):
    """A descriptor that the engine gave: what is needed to read records."""

    kind: str = field(metadata=about("`send receive meter counter proof`"))
    name: str = field(metadata=about("its name"))
    owner: str = field(default="", metadata=about("the method or meter that it is of"))
    unit: str = field(default="", metadata=about("its unit"))
    per: str = field(default="run", metadata=about("`run stream cpu length`"))
    flags: tuple[str, ...] = field(default=(), metadata=about("what it is good for"))
    about: str = field(default="", metadata=about("one sentence"))


@dataclass(frozen=True)
class PlannedPart(JsonObject):
    """Which part of a campaign a result is."""

    number: Integer = field(metadata=about("its number, from 1"))
    of: Integer = field(metadata=about("how many parts there are"))
    pairs: tuple[str, ...] = field(metadata=about("all pairs of the campaign, `sender>receiver`"))


@dataclass(frozen=True)
class MergedPart(JsonObject):
    """A part that a result was merged from."""

    number: Integer = field(metadata=about("its number, from 1"))
    of: Integer = field(metadata=about("how many parts there are"))
    pairs: tuple[str, ...] = field(metadata=about("its pairs, `sender>receiver`"))
    result: str = field(
        default="", metadata=about("the name of its result folder; empty: it was not given")
    )
    ended: str = field(
        default="",
        metadata=about("how its last controller ended; empty: none has"),
    )
    runs: Integer = field(default=0, metadata=about("how many records it has"))


@dataclass(frozen=True)
class PlanFile(JsonObject):
    """plan.json: the campaign as it was planned."""

    head: ClassVar = {"schema": Literal[SCHEMA]}
    name: str = field(metadata=about("the campaign's name"))
    seed: Integer = field(metadata=about("what the order of cells and boots follows from"))
    pairs: tuple[str, ...] = field(metadata=about("`sender>receiver`"))
    cells: tuple[PlannedCell, ...] = field(metadata=about("in the order of the campaign"))
    order: tuple[str, ...] = field(metadata=about("cell ids of the first block"))
    repeat: PlannedRepeat = field(metadata=about("how often a cell is run"))
    compare: PlannedCompare | None = field(default=None, metadata=about("what is compared"))
    runs_total: int = field(
        default=0, metadata=about("runs in all, if every cell has `repeat.min` on every pair")
    )
    swept: tuple[str, ...] = field(default=(), metadata=about("the factors of `sweep:`"))
    held: Mapping[str, str] = field(
        default_factory=dict, metadata=about("the campaign's `settings:`")
    )
    boots: tuple[PlannedBoot, ...] = field(
        default=(), metadata=about("where netbench boots hosts: each boot, in order")
    )
    seconds: float = field(default=0, metadata=about("estimated time, with least runs"))
    seconds_at_most: float = field(default=0, metadata=about("estimated time, with most runs"))
    tools: Mapping[str, PlannedTool] = field(
        default_factory=dict,
        metadata=about("name -> a tool of the campaign's own, if cells use it"),
    )
    warnings: tuple[str, ...] = field(
        default=(), metadata=about("what in the campaign may not be meant")
    )
    rows: tuple[EngineRow, ...] = field(default=(), metadata=about("the engine's descriptors"))
    rounds: tuple[tuple[str, ...], ...] = field(
        default=(),
        metadata=about("the rounds of pairs; in each, the pairs that run side by side"),
    )
    groups: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict, metadata=about("group -> its hosts")
    )
    links: Mapping[str, PlannedLink] = field(
        default_factory=dict, metadata=about("link -> what pairs share")
    )
    part: PlannedPart | None = field(
        default=None, metadata=about("which part of the campaign it is; null where it is all of it")
    )
    parts: tuple[MergedPart, ...] = field(
        default=(), metadata=about("the parts that the result was merged from")
    )


@dataclass(frozen=True)
class HostEntry(JsonObject):
    """What was known of a host from one run on: an entry of facts.json."""

    boot: Integer = field(metadata=about("counts the boots that a host was seen in"))
    boot_id: str = field(metadata=about("/proc/sys/kernel/random/boot_id"))
    clock_ticks: Ticks = field(metadata=about("sysconf(_SC_CLK_TCK), in a second"))
    facts: Mapping[str, Scalar] = field(
        metadata=about("fact -> value; null where it could not be read")
    )
    missing: Mapping[str, str] = field(
        default_factory=dict, metadata=about("fact -> why it could not be read")
    )
    unread: Mapping[str, str] = field(
        default_factory=dict,
        metadata=about("`METER`, or `METER.COUNTER`, that cannot be read there -> why"),
    )
    not_held: Mapping[str, str] = field(
        default_factory=dict,
        metadata=about("setting that a campaign holds by itself where it can -> why not there"),
    )
    cpus: Integer = field(default=0, metadata=about("CPUs that the worker may use"))
    architecture: str = field(default="", metadata=about("`uname -m`"))
    engine: str = field(default="", metadata=about("the engine's version"))
    layout: str = field(default="", metadata=about("the hash of the engine's descriptors"))
    from_run: Integer | None = field(
        default=None, metadata=about("the number of the first run that it holds for")
    )
    on: str | None = field(
        default=None,
        metadata=about('the level of `kernel` that netbench booted ("": the original kernel)'),
    )
    build: Integer | None = field(
        default=None, metadata=about("which build of `on`, from 1; null where it has one")
    )

    @property
    def known(self) -> dict[str, str]:
        """The facts that were read, and those of the engine, by name."""
        values = {"engine": self.engine or None, "layout": self.layout or None, **self.facts}
        return {name: str(value) for name, value in values.items() if value is not None}

    @property
    def is_emulated(self) -> bool:
        """Whether the host's CPU is software, so that what it measures is not the speed of any
        machine.
        """
        return (self.facts.get("emulated") or NOT_EMULATED) != NOT_EMULATED

    @property
    def is_virtual_machine(self) -> bool:
        """Whether the host is a lab's guest under KVM, so that costs are those of a guest."""
        return str(self.facts.get("lab_guest")).startswith("KVM")


HostEntries = Annotated[tuple[HostEntry, ...], pydantic.Field(min_length=1)]
"""The entries of a host, one or more."""
Hosts = Mapping[str, Sequence[HostEntry]]
"""The entries of facts.json by host."""


@dataclass(frozen=True)
class FactsFile(JsonObject):
    """facts.json."""

    head: ClassVar = {"schema": Literal[SCHEMA]}
    hosts: Mapping[str, HostEntries] = field(
        metadata=about("by host, an entry for each boot and for each change of a fact")
    )


@dataclass(frozen=True)
class NoiseEntry(JsonObject):
    """What was read around a block on one host, before and after it: a line of noise.jsonl."""

    time: str = field(metadata=about("when it was written: UTC in ISO 8601"))
    block: Integer = field(metadata=about("the block"))
    host: str = field(metadata=about("the host"))
    ns: IntegerPair = field(metadata=about("CLOCK_MONOTONIC of the controller"))
    counters: Mapping[str, IntegerPair] = field(
        default_factory=dict, metadata=about("counters that moved, though they should stand still")
    )
    kernel: tuple[str, ...] = field(
        default=(),
        metadata=about("the hosts of this kernel, where this entry speaks for it"),
    )
    cpu: Mapping[str, IntegerPair] = field(
        default_factory=dict, metadata=about("/proc/stat, in ticks")
    )
    own: IntegerPair | None = field(
        default=None, metadata=about("ticks that workers and controller have used")
    )
    gauges: Mapping[str, GaugePair] = field(
        default_factory=dict, metadata=about("readings that are no counters")
    )
    missing: Mapping[str, str] = field(
        default_factory=dict, metadata=about("what could not be read, and why")
    )


def read_plan(file: Path) -> PlanFile:
    """A plan.json. Errors: StoreError with the file."""
    return codec.read(PlanFile, _contents(file), file, "a plan")


def read_facts(file: Path) -> Hosts:
    """By host its entries of a facts.json, one at least; none where there is no such file. Errors:
    StoreError with the file.
    """
    if not file.exists():
        return {}
    return codec.read(FactsFile, _contents(file), file, "facts").hosts


def read_noise(file: Path) -> list[NoiseEntry]:
    """The whole lines of a noise.jsonl; none where there is no such file. Errors: StoreError with
    file and line.
    """
    lines = JsonLines(file, below=2)
    return [
        parse_noise(line, lines.where(number)) for number, line in (lines if file.exists() else ())
    ]


def parse_noise(line: bytes, where: object) -> NoiseEntry:
    """A line of noise.jsonl. Errors: StoreError with `where` (`FILE:LINE`)."""
    return codec.read(NoiseEntry, line, where, "readings of noise")


def _contents(file: Path) -> bytes:
    try:
        return read_inside(file)
    except OSError as error:
        raise cannot_read(file, error) from error
