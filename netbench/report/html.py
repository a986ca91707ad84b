"""A report as one HTML file that needs nothing else: style, script and drawings are inside, and the
page itself forbids every request.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from netbench.base.errors import NetbenchError
from netbench.base.json_lines import JsonLines
from netbench.read.shown_levels import shown
from netbench.report.blocks import Block, Cautions, Column, Findings, Plot, Prose, Section, Table
from netbench.report.build import Report
from netbench.report.cards import card
from netbench.report.numbers import count
from netbench.report.pages import html_table, render_page
from netbench.report.source import Source

MOST_RUNS = 2000
"""Rows that a browser lays out in about a second."""
RECORD_BYTES = 1_500_000
"""Of records on a page, which then has 2 MB; 500 runs have about 1 MB."""


def render(report: Report, *, plots: bool = True, flames: str = "") -> str:
    """The whole page. plots=False leaves the drawings out (a notebook's preview). `flames`: the
    file with the stacks of profiles, as a page beside it names it; "": there is none.
    """
    table, records = _runs(report.source)
    return render_page(
        "report.html",
        title=report.name,
        label=report.label,
        sections=[_section(report.source, each, plots, flames) for each in report.sections],
        runs=table,
        records=records,
    )


def fragment(report: Report, keys: Sequence[str] = ("summary", "cells")) -> str:
    """Some sections without page, plots or cards, for a notebook."""
    chosen = [
        _section(report.source, section, False, "", cards=False)
        for section in report.sections
        if section.key in keys
    ]
    return render_page("fragment.html", sections=chosen, label="")


def _section(
    source: Source, section: Section, plots: bool, flames: str, cards: bool = True
) -> dict[str, Any]:
    """A section as the templates take it."""
    blocks = []
    for block in section.blocks:
        if not isinstance(block, Plot):
            blocks.append(_block(block, cards))
        elif block.kind == "flame":
            if flames:
                blocks.append({"kind": "link", "to": quote(flames), "title": block.caption})
        elif plots:
            from netbench.report.plots import image

            drawing = image(source, block)
            blocks.append({"kind": "plot", "caption": block.caption, "drawing": drawing})
    return {"key": section.key, "title": section.title, "blocks": blocks}


def _block(block: Block, cards: bool) -> dict[str, Any]:
    if isinstance(block, Findings) and cards:
        made = [card(item) for item in block.items]
        return {
            "kind": "findings",
            "cards": [each for each in made if each["drawing"]],
            "lines": [each["sentence"] for each in made if not each["drawing"]],
        }
    if isinstance(block, Prose):
        return {"kind": "prose", "lines": block.lines, "bullets": block.bullets}
    if isinstance(block, Cautions):
        return {"kind": "cautions", "cautions": block.items}
    assert isinstance(block, Table)
    return html_table(block)


def _runs(source: Source) -> tuple[dict[str, Any], dict[int, tuple[str, str]]]:
    """The table of the first runs, and by run what is said of it, and its record as it was
    stored; "" where that is gone, or there is no room for it.
    """
    result = source.result
    runs = result.runs
    if len(result.control_runs):
        runs = pd.concat([runs, result.control_runs])
    runs = runs.sort_values("run").head(MOST_RUNS)
    cells = {(c.cell, c.pair) for c in source.cells}
    boots = ["boot"] if len(result.kernels) > 1 else []
    described = [result.describe(name) for name in source.metrics]
    columns = (
        Column("run"),
        *(Column(name, kind="key") for name in source.keys),
        *(Column(name) for name in ("block", *boots, "status")),
        *(Column(metric.title, metric.unit) for metric in described),
    )
    rows = []
    lines = _lines(result.path / "records.jsonl")
    records: dict[int, tuple[str, str]] = {}
    for row in runs.to_dict("records"):
        known = (row["cell"], row["pair"]) in cells
        said = [row[name] for name in ("reason", "engaged", "excluded", "noise")]
        rows.append(
            (
                row["run"],
                *(shown(str(row.get(key, ""))) for key in source.keys),
                *(row[name] for name in ("block", *boots)),
                row["status"] if known or row["status"] != "ok" else "control",
                *(float(row.get(metric.name, "nan")) for metric in described),
            )
        )
        records[row["run"]] = "; ".join(filter(None, said)), lines.get(row["run"], "")
    whole = len(result.runs) + len(result.control_runs)
    notes = []
    if not lines:
        notes.append("Their records are gone.")
    elif sum(bool(line) for _, line in records.values()) < whole:
        notes.append(
            f"{count(len(rows), 'run')} of {whole} are on this page, the first ones; the records of"
            " all are in records.jsonl, one a line."
        )
    table = Table("Runs in order of execution", columns, tuple(rows), tuple(notes))
    return html_table(table), records


def _lines(file: Path) -> dict[int, str]:
    """The first lines of a file of records by their runs, as far as there is room."""
    lines: dict[int, str] = {}
    room = RECORD_BYTES
    try:
        for _, line in islice(JsonLines(file), MOST_RUNS):
            room -= len(line)
            if room < 0:
                break
            lines[json.loads(line)["run"]] = line.decode("utf-8", "replace").rstrip("\n")
    except (OSError, NetbenchError):
        pass
    return lines
