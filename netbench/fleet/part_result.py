"""A result that is a part of a campaign, and where its runs were in the whole one."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from netbench import campaign
from netbench.base.errors import RequestError
from netbench.base.json_lines import JsonLines, read_whole
from netbench.campaign.yaml_tree import decode
from netbench.fleet.parts import as_planned
from netbench.model import Campaign
from netbench.plan.plan import Plan
from netbench.plan.plan_json import plan_json
from netbench.result import codec
from netbench.result.files import (
    CAMPAIGN_FILES,
    Hosts,
    MergedPart,
    PlanFile,
    PlannedPart,
    read_facts,
    read_plan,
)
from netbench.result.journal import Journal, LeftChanged
from netbench.result.record import parse_record
from netbench.result.store import no_result

_PLANNED = ("cells", "pairs", "order", "part")
"""What of a plan follows from the campaign."""
_UNCOMPARED = {"text", "source", "about", "warnings", "hosts", "part"}
_PATHS: dict[str, Any] = dict.fromkeys(
    ("image", "initrd", "deb", "tree", "git", "config", "fragment"), ""
)
"""What of a campaign, and of a kernel, may differ between controllers: how hosts are reached and
where trees are.
"""


@dataclass(frozen=True, order=True)
class Entry:
    """Where a record is in a part's file; in the order of the merged result."""

    block: int
    change: int  # how often facts of the part's hosts had changed since the block began
    place: int  # in the block, of the whole campaign
    part: int
    run: int
    offset: int
    length: int
    hosts: tuple[str, ...]


class PartResult:
    """A result that is a part of a campaign. Errors: ReportError; StoreError; RequestError where it
    is all of one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folder = path
        if not all((self.folder / name).is_file() for name in (*CAMPAIGN_FILES, "records.jsonl")):
            raise no_result(path)
        self.plan = read_plan(self.folder / "plan.json")
        if self.plan.part is None:
            what = "merged already" if self.plan.parts else "all of a campaign"
            raise RequestError(f"{path} is {what}; parts are what `run C --part K/N` makes")
        self.part: PlannedPart = self.plan.part
        self.name = self.folder.resolve().name
        file = self.folder / "journal.jsonl"
        journal = Journal(file if file.is_file() else None)
        self.ended, self.left_changed = journal.ended(), journal.all(LeftChanged)

    @cached_property
    def campaign(self) -> Campaign:
        """The whole campaign."""
        return campaign.parse(self.text, str(self.folder / "campaign.yaml"), inventories=False)

    @cached_property
    def text(self) -> str:
        file = self.folder / "campaign.yaml"
        return decode(read_whole(file), str(file))

    @cached_property
    def hosts(self) -> Hosts:
        facts = read_facts(file := self.folder / "facts.json")
        for host in facts:
            self.refuse_stranger(host, file)
        return facts

    def refuse_stranger(self, name: str, where: object) -> None:
        """Refuse what is said of a host or pair that is another part's: it would be believed there.
        Errors: RequestError.
        """
        if name not in {each for pair in self.plan.pairs for each in (pair, *pair.split(">"))}:
            raise RequestError(f"{where}: {name} is no host or pair of part {self.label}")

    @property
    def boot_ids(self) -> dict[str, str]:
        """The boot of each host that it began in."""
        return {host: entries[0].boot_id for host, entries in self.hosts.items()}

    def entries(self, number: int, places: Places) -> Iterator[Entry]:
        """Its records, each checked."""
        known = [entry for entries in self.hosts.values() for entry in entries]
        changes = sorted({n or 1 for e in known for n in (e.changed_from, e.from_run)} - {1})
        at_begin: dict[int, int] = {}  # by block
        lines, offset, seen = JsonLines(self.folder / "records.jsonl"), 0, set[int]()
        for at, line in lines:
            record = parse_record(line, where := lines.where(at))
            if record.pair not in self.plan.pairs:
                raise RequestError(f"{where}: {record.pair} is no pair of part {self.label}")
            if record.run in seen:
                raise RequestError(f"{where}: run {record.run} is there twice")
            seen.add(record.run)
            change = bisect_right(changes, record.run)
            change -= at_begin.setdefault(record.block, change)
            place = places.of(record.block, (record.cell, record.pair))
            hosts = tuple(record.pair.split(">"))
            yield Entry(record.block, change, place, number, record.run, offset, len(line), hosts)
            offset += len(line)

    @property
    def label(self) -> str:
        return f"{self.part.number}/{self.part.of}"

    def merged(self, runs: int) -> MergedPart:
        """What the merged result says of it."""
        part = self.part
        return MergedPart(part.number, part.of, self.plan.pairs, self.name, self.ended, runs)


class Places:
    """Where units are in the blocks and rounds of a whole campaign."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._rounds = {unit.key: plan.round_of(unit) for unit in plan.units}
        self._places: dict[int, dict[tuple[str, str], int]] = {}

    def of(self, block: int, key: tuple[str, str]) -> int:
        """The place of a unit; the last one for a unit that the plan does not have."""
        if block not in self._places:
            units = self._plan.wanted(block, lambda key: True, ())
            self._places[block] = {unit.key: at for at, unit in enumerate(units)}
        return self._places[block].get(key, len(self._places[block]))

    def round(self, key: tuple[str, str]) -> int | None:
        """The round of a unit, from 1; None in a campaign of one pair."""
        return self._rounds.get(key) if len(self._plan.campaign.pairs) > 1 else None


def refuse_others(parts: Sequence[PartResult]) -> None:
    """Refuse parts that are not of one campaign, or that are there twice. Errors: RequestError."""
    first = parts[0]
    for one, other in itertools.pairwise(parts):
        if one.part.of == other.part.of and one.part.number == other.part.number:
            raise RequestError(
                f"{one.path} and {other.path} are both part {one.label}; name one of them"
            )
    for part in parts[1:]:
        if why := _other_campaign(first, part):
            raise RequestError(f"{first.path} and {part.path} are not of one campaign: {why}")
    for part in parts:
        stored, plan = part.plan, Plan(as_planned(first.campaign, part.plan), part.boot_ids)
        planned = codec.of_json(PlanFile, plan_json(plan))
        if any(getattr(planned, key) != getattr(stored, key) for key in _PLANNED):
            raise RequestError(
                f"{part.path}: campaign.yaml does not match plan.json; restore it from a copy"
            )


def _other_campaign(one: PartResult, other: PartResult) -> str:
    """Why two parts are not of one campaign; "" where they are."""
    if one.part.of != other.part.of:
        return f"it was split into {one.part.of} parts for one, into {other.part.of} for the other"
    if one.part.pairs != other.part.pairs:
        return "their pairs differ"
    if one.plan.rows != other.plan.rows:
        return "they were measured by different versions of netbench's engine"
    if one.text == other.text:
        return ""
    here, there = _without_paths(one.campaign), _without_paths(other.campaign)
    differing = [
        name
        for name in here._fields
        if name not in _UNCOMPARED and getattr(here, name) != getattr(there, name)
    ]
    return f"`{differing[0]}` differs" if differing else ""


def _without_paths(campaign: Campaign) -> Campaign:
    kernels = campaign.kernels.items()
    return campaign._replace(kernels={n: k._replace(**_PATHS, builds=()) for n, k in kernels})
