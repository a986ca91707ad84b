"""What a result folder says of itself without its records: enough to choose one."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from netbench.base.errors import RequestError, unreadable
from netbench.base.opening import walk
from netbench.result.files import read_facts, read_plan
from netbench.result.journal import Journal
from netbench.result.store import count_records

_UTC = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z-")
STATUSES = {"done": "finished", "": "not ended"}
"""What the journal says of how the last controller ended, where that is no word for a reader."""


class Overview(NamedTuple):
    """One result: `campaign`, `status` (`finished`, `limit`, `interrupted`, `lost`, `not ended`: it
    runs, or was killed; `unreadable`, with `why`), `date` in UTC, releases of its hosts' `kernel`s,
    `runs` (None: not known), `size` in bytes.
    """

    folder: Path
    campaign: str
    status: str
    date: str
    kernel: str
    runs: int | None
    size: int
    why: str = ""


def folders(results: Path) -> list[Path]:
    """The result folders below `results`, newest first by name. Errors: RequestError."""
    if results.is_file():
        raise RequestError(f"{results} is a file; name the folder that results are in")
    paths = [path.parent for path in results.glob("*/[!.]*/plan.json")]
    return sorted(paths, key=lambda path: (path.name, path.parent.name), reverse=True)


def overview(folder: Path) -> Overview:
    """What is known of a result folder; what cannot be read is said, and raises nothing."""
    begun, size = _UTC.match(folder.name), _size(folder)
    date = "{}-{}-{} {}:{}".format(*begun.groups()[:5]) if begun else ""
    with unreadable(folder) as why:
        plan, hosts = read_plan(folder / "plan.json"), read_facts(folder / "facts.json")
        journal = folder / "journal.jsonl"
        ended = Journal(journal).ended() if journal.is_file() else ""
        runs = count_records(folder)
    if why:
        return Overview(folder, folder.parent.name, "unreadable", date, "", None, size, why[0])
    releases = dict.fromkeys(
        str(entry.facts["kernel"])
        for entries in hosts.values()
        for entry in entries
        if entry.facts.get("kernel")
    )
    status, unread = STATUSES.get(ended, ended), ""
    if runs is None:
        status, unread = "unreadable", f"{folder / 'records.jsonl'} cannot be read"
    return Overview(folder, plan.name, status, date, ", ".join(releases), runs, size, unread)


def _size(folder: Path) -> int:
    """Of the files below a folder, those that can be seen; through no link."""
    size = 0
    for file in walk(folder):
        with suppress(OSError):
            size += file.lstat().st_size
    return size
