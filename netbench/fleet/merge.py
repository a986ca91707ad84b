"""Parts of one campaign joined into one result, which is read as any other.

Runs are numbered anew, in the order that one controller on one kernel would have run them: block
after block, each in the plan's order; rounds likewise. Nothing else of a record is changed. What a
part's controller wrote for itself alone, its journal, is kept in `parts/K/`. A merged result has no
state, so nothing acts on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from netbench.base.errors import RequestError
from netbench.base.names import shell_word
from netbench.base.opening import write_new
from netbench.base.units import listed
from netbench.fleet.merged_files import facts, keep, write_logs, write_profiles, write_runs
from netbench.fleet.part_result import PartResult, Places, refuse_others
from netbench.fleet.parts import split
from netbench.plan.plan import Plan
from netbench.plan.plan_json import plan_json
from netbench.result import codec
from netbench.result.files import FactsFile, MergedPart
from netbench.result.journal import Ended, Journal, Why
from netbench.result.store import document, new_folder, new_place

PARTS = "parts"
_WORST: tuple[Why, ...] = ("lost", "interrupted", "limit", "done")


@dataclass(frozen=True)
class Merged:
    """A merged result. `holes`: what of the campaign it has not, and how to get it. `notes`: what
    its reader should know beside.
    """

    path: Path
    holes: Sequence[str]
    notes: Sequence[str]


def merge(paths: Sequence[Path], folder: Path) -> Merged:
    """Join parts into a new result: `folder` itself, or NAME/TIME-ID below it where it is there
    already. Errors: RequestError where the parts are not of one campaign; ReportError; StoreError;
    PlaceError.
    """
    parts = sorted((PartResult(path) for path in paths), key=lambda part: part.part.number)
    refuse_others(parts)
    first = parts[0]
    plan = Plan(first.campaign, dict(each for part in parts for each in part.boot_ids.items()))
    places = Places(plan)
    entries = sorted(
        entry for number, part in enumerate(parts) for entry in part.entries(number, places)
    )
    known = [
        part.merged(sum(entry.part == number for entry in entries))
        for number, part in enumerate(parts)
    ]
    missing = _missing(parts)
    planned = plan_json(plan) | {
        "rows": codec.to_json(first.plan.rows),
        "parts": codec.to_json(sorted([*known, *missing], key=lambda part: part.number)),
    }
    final = new_place(folder, first.plan.name) if folder.is_dir() else folder
    if (folder / "plan.json").exists() or final.exists():
        raise RequestError(f"{folder} is there already, or a result; name a new folder, last")
    with new_folder(final) as (draft, _):
        write_new(draft / "campaign.yaml", first.text.encode())
        write_new(draft / "plan.json", document(planned))
        write_runs(parts, entries, places, draft)
        write_profiles(parts, draft)
        hosts = FactsFile(facts(parts, entries))
        write_new(draft / "facts.json", document(codec.to_json(hosts)))
        write_logs(parts, draft)
        for part in parts:
            keep(part, draft / PARTS / str(part.part.number))
        write_new(draft / "journal.jsonl", b"")
        journal = Journal(draft / "journal.jsonl")
        for part in parts:
            for left in part.left_changed:
                part.refuse_stranger(left.host, f"{part.path}: journal.jsonl")
                journal.write(left)
        if why := _ended([part.ended for part in parts], bool(missing)):
            journal.write(Ended(why))
    return Merged(final, _holes(parts, missing, first.plan.name), _notes(parts))


def _missing(parts: Sequence[PartResult]) -> list[MergedPart]:
    """The parts that were not given."""
    of = parts[0].part.of
    given = {part.part.number for part in parts}
    shares = split(parts[0].campaign, of)
    return [
        MergedPart(number, of, tuple(pair.name for pair in shares[number - 1]))
        for number in range(1, of + 1)
        if number not in given
    ]


def _holes(parts: Sequence[PartResult], missing: Sequence[MergedPart], name: str) -> list[str]:
    """What is missing, and how to get it."""
    holes = [
        f"part {part.number}/{part.of} is missing ({listed(part.pairs, 3, ', ')}): `run C"
        f" --part {part.number}/{part.of}` of the campaign {name}, then merge all parts again"
        for part in missing
    ]
    for part in parts:
        if part.ended != "done":
            how = {"": "it runs, or was killed", "limit": "it reached its limit"}.get(
                part.ended, part.ended
            )
            holes.append(
                f"part {part.label} is not finished ({how}): `resume {shell_word(part.path)}`, then"
                " merge all parts again"
            )
    return holes


def _notes(parts: Sequence[PartResult]) -> list[str]:
    """Kernels that several parts were run on: each counted what the others did, too."""
    users: dict[str, list[PartResult]] = {}
    for part in parts:
        for boot_id in {e.boot_id for entries in part.hosts.values() for e in entries}:
            users.setdefault(boot_id, []).append(part)
    shared = sorted({part.part.number for each in users.values() if len(each) > 1 for part in each})
    if not shared:
        return []
    return [
        f"parts {', '.join(map(str, shared))} were run on hosts of one kernel: where they ran at"
        " the same time they shared its CPUs, and meters of the whole kernel (procstat, perf and"
        " others) counted the work of all"
    ]


def _ended(each: Sequence[str], is_missing: bool) -> Why | None:
    """How the campaign ended: as the part that got least far; None where one may still run."""
    whys = {*each, *(["interrupted"] if is_missing else [])}
    return None if "" in whys else next(why for why in _WORST if why in whys)
