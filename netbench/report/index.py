"""All results below a folder: what each found, and where its page is."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from netbench.base.errors import unreadable
from netbench.base.names import PROGRAM, shell_word
from netbench.base.units import rounded_size
from netbench.read.overview import Overview, folders, overview
from netbench.report.blocks import Findings
from netbench.report.pages import render_page
from netbench.report.source import Source

MOST_BYTES = 64 << 20
"""Of records that are read for a finding: those of larger results take too long."""
_PAGE = Path("report", "index.html")


@dataclass(frozen=True)
class Entry:
    """A result of an index: `finding` is its report's first sentence, or "": `overview.why`."""

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
        return f"{PROGRAM} report {shell_word(folder)} --html {shell_word(folder / _PAGE)}"


def entries(results: Path) -> list[Entry]:
    """Every result below a folder, newest first."""
    return [_entry(folder) for folder in folders(results)]


def render(results: Path, file: Path) -> str:
    """The page of all results below a folder; `file`: where it will be, from where links lead."""
    rows = entries(results)

    def link(target: Path) -> str:
        return quote(os.path.relpath(target.resolve(), file.parent.resolve()))

    return render_page(
        "index.html",
        title=f"Results below {results}",
        label="",
        entries=rows,
        link=link,
        size=rounded_size,
    )


def _entry(folder: Path) -> Entry:
    """One result; whatever is wrong with it, the others are listed."""
    each = overview(folder)
    if each.why:
        return Entry(each, "", each.why)
    with unreadable(folder) as why:
        return Entry(each, _finding(folder))
    return Entry(each, "", why[0])


def _finding(folder: Path) -> str:
    """The first sentence of a report. Errors: as analysis.load.load."""
    from netbench.report.sections.summary import summary

    size = (folder / "records.jsonl").stat().st_size
    if size > MOST_BYTES:
        unread = f"not computed for {rounded_size(size)} of records"
        return f"{unread}: `report {shell_word(folder)}` does"
    blocks = (b for b in summary(Source.of(folder)).blocks if isinstance(b, Findings))
    return next((block.lines[0] for block in blocks), "no run has given a result")
