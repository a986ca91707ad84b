"""All results below a folder: what each found, and where its page is."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from netbench import cache
from netbench.analysis.overview import Overview, folders, overview
from netbench.errors import NetbenchError
from netbench.report.blocks import Findings
from netbench.report.pages import render_page
from netbench.report.source import Source
from netbench.units import rounded_size

MOST_BYTES = 64 << 20
"""Of records that are read for a finding: those of larger results take too long."""
KEPT = 5000
"""Findings that are remembered."""
FORM = "1"
"""Another one where findings are told in other words, so that none is remembered."""
_READ = ("records.jsonl", "plan.json", "facts.json", "campaign.yaml")
_PAGE = Path("report", "index.html")


@dataclass(frozen=True)
class Entry:
    """A result of an index: `finding` is the first sentence of its report, "" where `overview.why`
    says why there is none.
    """

    overview: Overview
    finding: str
    why: str = ""

    @property
    def status(self) -> str:
        """That of its folder, or `unreadable` where its records are."""
        return "unreadable" if self.why else self.overview.status

    @property
    def page(self) -> Path | None:
        """Its own report; None where none was written yet."""
        page = self.overview.folder / _PAGE
        return page if page.is_file() else None

    @property
    def command(self) -> str:
        """What writes its report."""
        folder = self.overview.folder
        return f"python -m netbench report {folder} --html {folder / _PAGE}"


def entries(results: Path) -> list[Entry]:
    """Every result below a folder, newest first. A finding is computed once: it is kept in the
    user's cache as long as the result's files stay as they are.
    """
    known = _Known.read()
    found = [_entry(overview(folder), known) for folder in folders(results)]
    known.write()
    return found


def render(results: Path, file: Path) -> str:
    """The page of all results below a folder; `file` is where it will be, from where its links
    lead.
    """
    found = entries(results)

    def link(target: Path) -> str:
        return quote(os.path.relpath(target.resolve(), file.parent.resolve()))

    return render_page(
        "index.html",
        title=f"Results below {results}",
        label="",
        entries=found,
        link=link,
        size=rounded_size,
    )


def _entry(each: Overview, known: _Known) -> Entry:
    if each.why:
        return Entry(each, "", each.why)
    try:
        return Entry(each, known.get(each.folder, _finding))
    except (NetbenchError, OSError) as error:
        return Entry(each, "", str(error))


def _finding(folder: Path) -> str:
    """The first sentence of a report. Errors: as analysis.load.load."""
    from netbench.report.sections.summary import summary

    size = (folder / "records.jsonl").stat().st_size
    if size > MOST_BYTES:
        return f"not computed for {rounded_size(size)} of records: `report {folder}` does"
    found = (b for b in summary(Source.of(folder)).blocks if isinstance(b, Findings))
    return next((block.lines[0] for block in found), "no run has given a result")


class _Known:
    """Findings that were computed before, by what their results' files looked like."""

    def __init__(self, findings: Mapping[str, str]) -> None:
        self._findings = dict(findings)
        self._before = len(self._findings)

    @staticmethod
    def _file() -> Path:
        return cache.base() / "findings.json"

    @classmethod
    def read(cls) -> _Known:
        try:
            stored = json.loads(cls._file().read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return cls({})
        is_own = isinstance(stored, dict) and all(isinstance(v, str) for v in stored.values())
        return cls(stored if is_own else {})

    def get(self, folder: Path, compute: Callable[[Path], str]) -> str:
        key = hashlib.sha256("\0".join(_looks(folder)).encode()).hexdigest()
        if key not in self._findings:
            self._findings[key] = compute(folder)
        return self._findings[key]

    def write(self) -> None:
        """Keep what is new. A cache that cannot be written is no error."""
        if len(self._findings) == self._before:
            return
        file = self._file()
        draft = file.with_name(f".{file.name}.{os.getpid()}")
        latest = dict(list(self._findings.items())[-KEPT:])
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps(latest), encoding="utf-8")
            draft.replace(file)


def _looks(folder: Path) -> Iterator[str]:
    yield FORM
    yield str(folder.resolve())
    for name in _READ:
        with suppress(FileNotFoundError):
            status = (folder / name).stat()
            yield f"{name} {status.st_size} {status.st_mtime_ns} {status.st_ino}"
