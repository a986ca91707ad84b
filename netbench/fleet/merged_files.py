"""The files of a merged result, from those of its parts. Errors: StoreError; OSError."""

from __future__ import annotations

import heapq
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from netbench.base.json_lines import JsonLines, pieces, to_line
from netbench.base.opening import files_inside, make_folder, open_file, open_inside, write_new
from netbench.fleet.part_result import Entry, PartResult, Places
from netbench.result import codec
from netbench.result.files import CAMPAIGN_FILES, NOISE, HostEntry, parse_noise
from netbench.result.profile_files import PROFILES, RUNS, read_profile_runs

KEPT = (*CAMPAIGN_FILES, "facts.json", "journal.jsonl", "log.txt")
"""What is kept of a part as it was."""
_SAMPLES = re.compile(r"([0-9]{6,18})((?:\.server)?\.(?:jsonl|txt))")


def write_runs(
    parts: Sequence[PartResult], entries: Iterable[Entry], places: Places, draft: Path
) -> None:
    """records.jsonl with new numbers, and the samples of each run under its number."""
    sources = [open_file(part.folder / "records.jsonl") for part in parts]
    samples = [_samples(part.folder) for part in parts]
    try:
        with _new(draft / "records.jsonl") as out:
            for run, entry in enumerate(entries, 1):
                sources[entry.part].seek(entry.offset)
                record = json.loads(sources[entry.part].read(entry.length))
                record["run"] = run
                if "round" in record:  # a part sees fewer pairs
                    record["round"] = places.round((record["cell"], record["pair"]))
                out.write(to_line(record))
                for file, suffix in samples[entry.part].get(entry.run, ()):
                    _copy(file, draft / "samples" / f"{run:06d}{suffix}")
    finally:
        for source in sources:
            source.close()
    noise = heapq.merge(*map(_noise, parts))
    if lines := b"".join(line for _, line in noise):
        write_new(draft / NOISE, lines)


def _samples(folder: Path) -> Mapping[int, list[tuple[Path, str]]]:
    """By run, its files of samples/ and how their names go on after its number."""
    by_run: dict[int, list[tuple[Path, str]]] = {}
    for file in files_inside(folder, "samples/[0-9]*"):
        if name := _SAMPLES.fullmatch(file.name):
            by_run.setdefault(int(name[1]), []).append((file, name[2]))
    return by_run


def _noise(part: PartResult) -> Iterator[tuple[str, bytes]]:
    """The whole lines of what was read around blocks, with their times."""
    file = part.folder / NOISE
    if file.is_file():
        for number, (_, line) in enumerate(JsonLines(file, below=2), 1):
            entry = parse_noise(line, where := f"{file}:{number}")
            for host in (entry.host, *entry.kernel):
                part.refuse_stranger(host, where)
            yield entry.time, line


def write_profiles(parts: Sequence[PartResult], draft: Path) -> None:
    """Profile runs, with new numbers."""
    runs = [
        (run.round, at, run.run, run)
        for at, part in enumerate(parts)
        for run in read_profile_runs(part.folder)
    ]
    for _, at, number, run in runs:
        parts[at].refuse_stranger(run.pair, f"{PROFILES}/{RUNS}, run {number}")
    if not runs:
        return
    make_folder(draft / PROFILES, 0o755)
    lines = []
    for number, (_, at, _, run) in enumerate(sorted(runs, key=lambda each: each[:3]), 1):
        profiles = {}
        for side, profile in run.profiles.items():
            name = profile.file and f"{number:06d}.{side}.folded"
            if profile.file:
                _copy(parts[at].folder / PROFILES / profile.file, draft / PROFILES / name, below=2)
            profiles[side] = replace(profile, file=name)
        renumbered: Any = replace(run, run=number, profiles=profiles)
        lines.append(to_line({"schema": codec.SCHEMA, **codec.to_json(renumbered)}))
    write_new(draft / PROFILES / RUNS, b"".join(lines))


def facts(parts: Sequence[PartResult], entries: Sequence[Entry]) -> Mapping[str, Any]:
    """facts.json: what was known of each host from which run on, by the new numbers."""
    runs: dict[str, list[tuple[int, int]]] = {}
    for number, entry in enumerate(entries, 1):
        for host in entry.hosts:
            runs.setdefault(host, []).append((entry.run, number))
    after = len(entries) + 1

    def renumbered(host: str, known: HostEntry) -> HostEntry:
        def first(number: int | None) -> int | None:
            if number in (None, 1):  # since before there were runs
                return number
            since = (new for run, new in runs.get(host, ()) if run >= (number or 1))
            return min(since, default=after)

        return replace(
            known, from_run=first(known.from_run), changed_from=first(known.changed_from)
        )

    return {
        host: tuple(renumbered(host, known) for known in each)
        for part in parts
        for host, each in part.hosts.items()
    }


def write_logs(parts: Sequence[PartResult], draft: Path) -> None:
    """log.txt: every line with the part that it is of."""
    lines = heapq.merge(*(_log(part) for part in parts))
    write_new(draft / "log.txt", "".join(line for _, line in lines).encode())


def _log(part: PartResult) -> Iterator[tuple[str, str]]:
    lines = JsonLines(part.folder / "log.txt")
    if lines.path.is_file():
        for _, line in lines:
            time, _, message = line.decode("utf-8", "replace").rstrip("\n").partition(" ")
            yield time, f"{time} part {part.label}: {message}\n"


def keep(part: PartResult, folder: Path) -> None:
    """What shows where a part comes from, as it was."""
    make_folder(folder, 0o755)
    for name in KEPT:
        if (part.folder / name).is_file():
            _copy(part.folder / name, folder / name)


def _copy(source: Path, target: Path, below: int = 1) -> None:
    """Copy a file of a part, which may be of another account."""
    with _new(target) as out:
        out.writelines(pieces(source, below))


def _new(file: Path) -> BinaryIO:
    """A file of the merged result, whose folder is held."""
    return os.fdopen(open_inside(file, 0, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb")
