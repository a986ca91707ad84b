"""A report as one HTML file that needs nothing else: style, script and drawings are inside, and the
page itself forbids every request.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from netbench.base.errors import NetbenchError
from netbench.base.json_lines import JsonLines
from netbench.read.shown_levels import shown
from netbench.report.blocks import (
    Block,
    Cautions,
    Finding,
    Findings,
    Plot,
    Prose,
    Section,
    Span,
    Table,
    Value,
    keyed,
    tabled,
)
from netbench.report.build import Report
from netbench.report.numbers import column_parts, count, number
from netbench.report.pages import render_page
from netbench.report.source import Source
from netbench.report.text import is_number

MOST_RUNS = 2000
"""Rows that a browser lays out in about a second."""
RECORD_BYTES = 1_500_000
"""Of records on a page, which then has 2 MB; 500 runs have about 1 MB."""
MOST_SPANS = 6
UNFOLDED = ("summary", "cells")
FLEET = "fleet"  # whose sentences are those of the summary
SYMBOLS = {"better": "▲", "worse": "▼", "equivalent": "■", "inconclusive": "○"}


def render(report: Report, *, flames: str = "") -> str:
    """The whole page. `flames`: the page of profiles' stacks as it names it; "": there is none."""
    table, records = _runs(report.source)
    return render_page(
        "report.html",
        title=report.name,
        label=report.label,
        sections=[
            _section(report.source, each, flames)
            for section in report.sections
            for each in _apart(section)
        ],
        runs=table,
        records=records,
    )


def fragment(sections: Sequence[Section], label: str) -> str:
    """Sections without page and plots, for a notebook; the first is not folded."""
    first, *others = (_section(None, each, "") for each in sections)
    return render_page("fragment.html", sections=[first | {"gist": ""}, *others], label=label)


def _apart(section: Section) -> list[Section]:
    """A section; of one that is not folded all plots but the first are a section of their own."""
    plots = [block for block in section.blocks if isinstance(block, Plot)][1:]
    if section.key not in UNFOLDED or not plots:
        return [section]
    rest = tuple(block for block in section.blocks if block not in plots)
    more = Section(f"{section.key}-plots", "More plots", tuple(plots))
    return [section._replace(blocks=rest), more]


def _section(source: Source | None, section: Section, flames: str) -> dict[str, Any]:
    """A section as the templates take it."""
    blocks = [_block(source, block, flames) for block in section.blocks]
    shown = [block for block in blocks if block]
    gist = "" if section.key in UNFOLDED else _gist(section)
    return {"key": section.key, "title": section.title, "blocks": shown, "gist": gist}


def _gist(section: Section) -> str:
    """What a folded section says, in a line."""
    for block in section.blocks:
        if isinstance(block, Cautions):
            return f"{len(block.items)}: {', '.join(dict.fromkeys(c.kind for c in block.items))}"
        if isinstance(block, Prose) and block.lines and section.key != FLEET:
            return block.lines[0]
    for table in (block for block in section.blocks if isinstance(block, Table)):
        return table.title or ", ".join(column.name for column in table.columns)
    return "; ".join(block.caption for block in section.blocks if isinstance(block, Plot))


def _block(source: Source | None, block: Block, flames: str) -> dict[str, Any]:
    """A block as the templates take it; nothing for a link that leads nowhere, and for a plot
    without the source that it is of.
    """
    if isinstance(block, Findings):
        of_items = [_card(item) for item in block.items]
        drawn = groupby([c for c in of_items if c["spans"]], key=itemgetter("of"))
        groups = [(of, [*cards]) for of, cards in drawn]
        return {
            "kind": "findings",
            "groups": groups,
            "single": all(of and len(cards) == 1 for of, cards in groups),
            "lines": [each["sentence"] for each in of_items if not each["spans"]],
        }
    if isinstance(block, Prose):
        return {"kind": "prose", "lines": block.lines, "bullets": block.bullets}
    if isinstance(block, Cautions):
        return {"kind": "cautions", "cautions": block.items}
    if isinstance(block, Table):
        return _table(block)
    if block.kind == "flame":
        return {"kind": "link", "to": quote(flames), "title": block.caption} if flames else {}
    if source is None:
        return {}
    from netbench.report.plots import image

    return {"kind": "plot", "caption": block.caption, "drawing": image(source, block)}


def _card(finding: Finding) -> dict[str, Any]:
    """A finding with its verdict in a word, a shape and a colour, and its intervals as bars on one
    scale, in percent of its width; no bars where no number is known.
    """
    verdicts = {span.verdict for span in finding.spans} - {""}
    verdict = verdicts.pop() if len(verdicts) == 1 else "mixed" if verdicts else ""
    spans = [span for span in finding.spans[:MOST_SPANS] if math.isfinite(span.at)]
    reference, margin = finding.reference, finding.margin
    shown_ends = [x for s in spans for x in (s.at, s.low, s.high) if math.isfinite(x)]
    shown_ends += [] if reference is None else [reference - margin, reference + margin]
    low, high = min(shown_ends, default=0.0), max(shown_ends, default=0.0)
    scale = 94 / (high - low or abs(high) or 1.0)

    def bar(span: Span) -> dict[str, Any]:
        known = math.isfinite(span.low) and math.isfinite(span.high)
        ends = (span.low, span.high) if known else (span.at, span.at)
        return {
            "label": span.label if len(finding.spans) > 1 else "",
            "told": _told(span, finding),
            "verdict": span.verdict or "plain",
            "at": 3 + scale * (span.at - low),
            "from": 3 + scale * (ends[0] - low),
            "width": scale * (ends[1] - ends[0]),
        }

    return {
        "sentence": finding.sentence,
        "head": finding.head,
        "of": finding.of,
        "place": finding.place,
        "doubts": finding.doubts,
        "verdict": verdict,
        "symbol": SYMBOLS.get(verdict, "◆"),
        "spans": [bar(span) for span in spans],
        "reference": None if reference is None else 3 + scale * (reference - low),
        "margin": scale * margin,
        "more": max(0, len(finding.spans) - MOST_SPANS),
    }


def _told(span: Span, finding: Finding) -> str:
    """`+84.1% (+80.2 to +88.1%), better`."""
    unit = finding.unit if finding.unit == "%" else f" {finding.unit}".rstrip()

    def end(value: float) -> str:
        if finding.reference is None:
            return number(value)
        return f"{value:+.{2 if abs(value) < 1 else 1}f}"

    text = f"{end(span.at)}{unit}"
    if math.isfinite(span.low) and math.isfinite(span.high):
        text += f" ({end(span.low)} to {end(span.high)}{unit})"
    return f"{text}, {span.verdict}" if span.verdict else text


def _table(table: Table) -> dict[str, Any]:
    """A table as its template takes it: values as text."""
    columns = [column_parts(values) for values in zip(*table.rows, strict=True)]
    heads = [
        {
            "name": column.name,
            "unit": column.unit,
            "kind": column.kind,
            "numeric": is_number(column, [mean for mean, _ in parts]),
        }
        for column, parts in zip(table.columns, columns, strict=True)
    ]
    rows = [
        [
            heads[j] | {"mean": mean, "half": half, "mark": (i, j) in table.marks}
            for j, (mean, half) in enumerate(row)
        ]
        for i, row in enumerate(zip(*columns, strict=True))
    ]
    shape = {"kind": "table", "title": table.title, "notes": table.notes}
    return {**shape, "heads": heads, "rows": rows}


def _runs(source: Source) -> tuple[dict[str, Any], dict[int, tuple[str, str]]]:
    """The table of the first runs, and by run what is said of it, and its record as it was
    stored; "" where that is gone, or there is no room for it.
    """
    result = source.result
    runs = result.runs
    if len(result.control_runs):
        runs = pd.concat([runs, result.control_runs])
    boots = ["boot"] if len(result.kernels) > 1 else []
    described = [result.describe(name) for name in source.metrics]
    lines = _lines(result.path / "records.jsonl")
    rows: list[dict[Any, Value]] = []
    records: dict[int, tuple[str, str]] = {}
    for row in runs.sort_values("run").head(MOST_RUNS).to_dict("records"):
        known = (row["cell"], row["pair"]) in source.at
        reasons = [row[name] for name in ("reason", "engaged", "excluded", "noise")]
        rows.append(
            {
                "run": row["run"],
                **keyed(source.keys, *(shown(str(row.get(key, ""))) for key in source.keys)),
                **{name: row[name] for name in ("block", *boots)},
                "status": row["status"] if known or row["status"] != "ok" else "control",
                **{f"{m.title} [{m.unit}]": float(row.get(m.name, "nan")) for m in described},
            }
        )
        records[row["run"]] = "; ".join(filter(None, reasons)), lines.get(row["run"], "")
    notes = []
    if not lines:
        notes.append("Their records are gone.")
    elif sum(bool(line) for _, line in records.values()) < len(runs):
        notes.append(
            f"{count(len(rows), 'run')} of {len(runs)} are on this page, the first ones; the"
            " records of all are in records.jsonl, one a line."
        )
    return _table(tabled("Runs in order of execution", rows, *notes)), records


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
