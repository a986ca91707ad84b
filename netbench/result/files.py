"""The shapes of plan.json, facts.json and samples/noise.jsonl: every key is the name of a field
here, and reading checks each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from netbench.base import names
from netbench.base.json_lines import JsonLines, read_whole
from netbench.facts.cpu import NOT_EMULATED
from netbench.result import codec
from netbench.result.codec import SCHEMA, Expected, Integer, IntegerPair, JsonObject, Scalar
from netbench.result.record import FactorName, Factors, Line, PairName, Time

NOISE = "samples/noise.jsonl"
CAMPAIGN_FILES = ("campaign.yaml", "plan.json")
"""What a campaign was when it began."""


_OwnMetric = "|".join(names.METRICS)
MetricName = Annotated[str, Field(pattern=f"^({names.METRIC}|({_OwnMetric})[.][!-~]+)$")]
CampaignName = Annotated[str, Field(pattern=f"^{names.name_pattern(names.CAMPAIGN_MAX)}$")]
Runs = Annotated[int, Field(ge=1, le=100_000)]
Share = Annotated[float, Field(gt=0, lt=1)]
Ticks = Annotated[int, Field(ge=1, le=10**6)]
Gauge = Annotated[Scalar | list[float | None], Expected("a number, a text, or a list of numbers")]
GaugePair = tuple[Gauge, Gauge]


@dataclass(frozen=True)
class PlannedCell(JsonObject):
    """A cell of the plan."""

    cell: Annotated[str, "the cell's id"]
    factors: Annotated[Factors, "factor -> level, as written"]
    control: Annotated[bool, "whether it is a comparison's baseline, a second time"] = False


@dataclass(frozen=True)
class PlannedBoot(JsonObject):
    """A boot of the plan."""

    boot: Annotated[Integer, "its number, from 1"]
    kernel: Annotated[str, "the level of `kernel`"]
    blocks: Annotated[Integer, "how many blocks are run in it"]
    build: Annotated[Integer | None, "which build of the kernel, from 1; null where it has one"] = (
        None
    )


@dataclass(frozen=True)
class PlannedRepeat(JsonObject):
    """`repeat` of the campaign."""

    min: Annotated[Runs, "the least number of runs of a cell"]
    max: Annotated[Runs, "the largest number of runs of a cell"]
    confidence: Annotated[Share, "of the intervals, a fraction of 1"]
    precision: Annotated[Share, "half-width over mean at which a cell closes"]
    metrics: Annotated[tuple[MetricName, ...], "the metrics that must be precise"]
    boots: Annotated[Runs, "boots of each kernel"] = 1
    until: Annotated[
        Literal["precision", "verdict"], "what closes a comparison: precision or verdict"
    ] = "precision"


@dataclass(frozen=True)
class PlannedCompare(JsonObject):
    """`compare` of the campaign."""

    factor: Annotated[FactorName, "the factor whose levels are compared"]
    baseline: Annotated[Line, "the level that the others are compared to"]
    margin: Annotated[Share | None, "the relative difference that does not matter"] = None
    control: Annotated[bool, "whether each baseline is run a second time, as a control"] = False


@dataclass(frozen=True)
class PlannedTool(JsonObject):
    """The command lines behind a tool's name."""

    client: Annotated[str, "that of the client, as a shell would take it"]
    server: Annotated[str, "that of the server"] = ""


@dataclass(frozen=True)
class PlannedLink(JsonObject):
    """A link of the campaign: a pair crosses it where one of its ends is among the hosts."""

    hosts: Annotated[tuple[str, ...], "the hosts behind it"]
    capacity: Annotated[Integer, "pairs that may cross it at the same time"] = 1


@dataclass(frozen=True)
class EngineRow(JsonObject):
    """A descriptor that the engine gave: what is needed to read records."""

    kind: Annotated[str, "`send receive meter counter proof`"]
    name: Annotated[str, "its name"]
    owner: Annotated[str, "the method or meter that it is of"] = ""
    unit: Annotated[str, "its unit"] = ""
    per: Annotated[str, "`run stream cpu length`"] = "run"
    flags: Annotated[tuple[str, ...], "what it is good for"] = ()
    about: Annotated[str, "one sentence"] = ""


@dataclass(frozen=True)
class PlannedPart(JsonObject):
    """Which part of a campaign a result is."""

    number: Annotated[Integer, "its number, from 1"]
    of: Annotated[Integer, "how many parts there are"]
    pairs: Annotated[tuple[str, ...], "all pairs of the campaign, `sender>receiver`"]


@dataclass(frozen=True)
class MergedPart(JsonObject):
    """A part that a result was merged from."""

    number: Annotated[Integer, "its number, from 1"]
    of: Annotated[Integer, "how many parts there are"]
    pairs: Annotated[tuple[str, ...], "its pairs, `sender>receiver`"]
    result: Annotated[str, "the name of its result folder; empty: it was not given"] = ""
    ended: Annotated[str, "how its last controller ended; empty: none has"] = ""
    runs: Annotated[Integer, "how many records it has"] = 0


@dataclass(frozen=True)
class PlanFile(JsonObject):
    """plan.json: the campaign as it was planned."""

    head: ClassVar = {"schema": Literal[SCHEMA]}
    name: Annotated[CampaignName, "the campaign's name"]
    seed: Annotated[Integer, "what the order of cells and boots follows from"]
    pairs: Annotated[tuple[PairName, ...], "`sender>receiver`"]
    cells: Annotated[tuple[PlannedCell, ...], "in the order of the campaign"]
    order: Annotated[tuple[str, ...], "cell ids of the first block"]
    repeat: Annotated[PlannedRepeat, "how often a cell is run"]
    compare: Annotated[PlannedCompare | None, "what is compared"] = None
    runs_total: Annotated[int, "runs in all, if every cell has `repeat.min` on every pair"] = 0
    swept: Annotated[tuple[FactorName, ...], "the factors of `sweep:`"] = ()
    held: Annotated[Factors, "the campaign's `settings:`"] = field(default_factory=dict)
    boots: Annotated[
        tuple[PlannedBoot, ...], "where netbench boots hosts: each boot, in order"
    ] = ()
    seconds: Annotated[float, "estimated time, with least runs"] = 0
    seconds_at_most: Annotated[float, "estimated time, with most runs"] = 0
    tools: Annotated[
        Mapping[str, PlannedTool], "name -> a tool of the campaign's own, if cells use it"
    ] = field(default_factory=dict)
    warnings: Annotated[tuple[str, ...], "what in the campaign may not be meant"] = ()
    rows: Annotated[tuple[EngineRow, ...], "the engine's descriptors"] = ()
    rounds: Annotated[
        tuple[tuple[str, ...], ...], "the rounds of pairs; in each, the pairs that run side by side"
    ] = ()
    groups: Annotated[Mapping[str, tuple[str, ...]], "group -> its hosts"] = field(
        default_factory=dict
    )
    links: Annotated[Mapping[str, PlannedLink], "link -> what pairs share"] = field(
        default_factory=dict
    )
    part: Annotated[
        PlannedPart | None, "which part of the campaign it is; null where it is all of it"
    ] = None
    parts: Annotated[tuple[MergedPart, ...], "the parts that the result was merged from"] = ()
    pilot: Annotated[str, "how `duration: auto` was found"] = ""


@dataclass(frozen=True)
class HostEntry(JsonObject):
    """What was known of a host from one run on: an entry of facts.json."""

    boot: Annotated[Integer, "counts the boots that a host was seen in"]
    boot_id: Annotated[str, "/proc/sys/kernel/random/boot_id"]
    clock_ticks: Annotated[Ticks, "sysconf(_SC_CLK_TCK), in a second"]
    facts: Annotated[Mapping[str, Scalar], "fact -> value; null where it could not be read"]
    missing: Annotated[Mapping[str, str], "fact -> why it could not be read"] = field(
        default_factory=dict
    )
    unread: Annotated[
        Mapping[str, str], "`METER`, or `METER.COUNTER`, that cannot be read there -> why"
    ] = field(default_factory=dict)
    not_held: Annotated[
        Mapping[str, str], "setting that a campaign holds by itself where it can -> why not there"
    ] = field(default_factory=dict)
    cpus: Annotated[Integer, "CPUs that the worker may use"] = 0
    architecture: Annotated[str, "`uname -m`"] = ""
    engine: Annotated[str, "the engine's version"] = ""
    layout: Annotated[str, "the hash of the engine's descriptors"] = ""
    from_run: Annotated[Integer | None, "the number of the first run that it holds for"] = None
    changed_from: Annotated[
        Integer | None, "of the first run that may have seen its facts change; null: none did"
    ] = None
    on: Annotated[
        str | None, 'the level of `kernel` that netbench booted ("": the original kernel)'
    ] = None
    build: Annotated[Integer | None, "which build of `on`, from 1; null where it has one"] = None

    @property
    def known(self) -> dict[str, str]:
        """The facts that were read, and those of the engine, by name."""
        values = {"engine": self.engine or None, "layout": self.layout or None, **self.facts}
        return {name: str(value) for name, value in values.items() if value is not None}

    @property
    def is_emulated(self) -> bool:
        """Whether the host's CPU is software: what it measures is no machine's speed."""
        return (self.facts.get("emulated") or NOT_EMULATED) != NOT_EMULATED

    @property
    def is_virtual_machine(self) -> bool:
        """Whether the host is a lab's guest under KVM, so that costs are those of a guest."""
        return str(self.facts.get("lab_guest")).startswith("KVM")


HostEntries = Annotated[tuple[HostEntry, ...], Field(min_length=1)]
"""The entries of a host, one or more."""
Hosts = Mapping[str, Sequence[HostEntry]]
"""The entries of facts.json by host."""


@dataclass(frozen=True)
class FactsFile(JsonObject):
    """facts.json."""

    head: ClassVar = {"schema": Literal[SCHEMA]}
    hosts: Annotated[
        Mapping[str, HostEntries], "by host, an entry for each boot and for each change of a fact"
    ]


@dataclass(frozen=True)
class NoiseEntry(JsonObject):
    """What was read around a block on one host, before and after it: a line of noise.jsonl."""

    time: Annotated[Time, "when it was written: UTC in ISO 8601"]
    block: Annotated[Integer, "the block"]
    host: Annotated[str, "the host"]
    ns: Annotated[IntegerPair, "CLOCK_MONOTONIC of the controller"]
    counters: Annotated[
        Mapping[str, IntegerPair], "counters that moved, though they should stand still"
    ] = field(default_factory=dict)
    kernel: Annotated[
        tuple[str, ...], "the hosts of this kernel, where this entry speaks for it"
    ] = ()
    cpu: Annotated[Mapping[str, IntegerPair], "/proc/stat, in ticks"] = field(default_factory=dict)
    own: Annotated[IntegerPair | None, "ticks that workers and controller have used"] = None
    gauges: Annotated[Mapping[str, GaugePair], "of older results: no counters"] = field(
        default_factory=dict
    )
    missing: Annotated[Mapping[str, str], "what could not be read, and why"] = field(
        default_factory=dict
    )


def read_plan(file: Path) -> PlanFile:
    """A plan.json. Errors: StoreError with the file."""
    plan = codec.read(PlanFile, read_whole(file), file, "a plan")
    if len(plan.pairs) * len(plan.cells) > names.PAIRS_MAX:
        raise codec.flawed(file, "a plan", f"more than {names.PAIRS_MAX} pairs in all cells")
    return plan


def read_facts(file: Path) -> Hosts:
    """By host its entries of a facts.json, one at least; none where there is no such file. Errors:
    StoreError with the file.
    """
    if not file.exists():
        return {}
    return codec.read(FactsFile, read_whole(file), file, "facts").hosts


def read_noise(file: Path) -> list[NoiseEntry]:
    """The whole lines of a noise.jsonl; none without one. Errors: StoreError with file and line."""
    lines = JsonLines(file, below=2)
    return [
        parse_noise(line, lines.where(number)) for number, line in (lines if file.exists() else ())
    ]


def parse_noise(line: bytes, where: object) -> NoiseEntry:
    """A line of noise.jsonl. Errors: StoreError with `where` (`FILE:LINE`)."""
    return codec.read(NoiseEntry, line, where, "readings of noise")
