"""A report as one HTML file that needs nothing else: style, script and drawings are inside, and the
page itself forbids every request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from netbench.report.blocks import Block, Cautions, Findings, Plot, Prose, Section
from netbench.report.build import Report
from netbench.report.cards import card
from netbench.report.drawings import draw
from netbench.report.formulas import formula
from netbench.report.html_table import html_table
from netbench.report.numbers import words
from netbench.report.pages import render_page
from netbench.report.places import Places
from netbench.report.run_panels import RunPanels, run_panels
from netbench.report.source import Source
from netbench.report.svg import Point

PLACES = 12


def render(report: Report, *, plots: bool = True, flames: str = "") -> str:
    """The whole page. plots=False leaves the drawings out (a notebook's preview). `flames`: the
    file with the stacks of profiles, as a page beside it names it; "": there is none.
    """
    source = report.source
    places = Places(source)
    runs = run_panels(source, places)
    page = _Page(source, plots, flames, places, runs.numbers)
    return render_page(
        "report.html",
        title=report.name,
        label=report.label,
        sections=[page.section(section) for section in report.sections],
        cells=_cells(source, places, runs),
        runs=runs,
        shown=[(name, source.result.describe(name)) for name in source.metrics],
        columns=[runs.metrics.index(name) for name in source.metrics if name in runs.metrics],
        several_boots=len(source.result.kernels) > 1,
        facts=_facts(source, runs),
    )


def fragment(report: Report, keys: Sequence[str] = ("summary", "cells")) -> str:
    """Some sections without page or plots, for a notebook."""
    page = _Page(report.source, False, "", None, frozenset())
    chosen = [page.section(section) for section in report.sections if section.key in keys]
    return render_page("fragment.html", sections=chosen, label="")


def _cells(source: Source, places: Places, runs: RunPanels) -> list[dict[str, Any]]:
    """What stands in the panel of each cell."""
    return [
        {
            "id": places.name(c.cell, c.pair),
            "title": " · ".join(source.key(c)),
            "cell": c,
            "means": [
                f"{m.title} {words(c.intervals[m.name])} {m.unit}".strip()
                for m in map(source.result.describe, source.metrics)
                if m.name in c.intervals
            ],
            "runs": runs.of_cell(places.name(c.cell, c.pair)),
        }
        for c in source.cells
    ]


def _facts(source: Source, runs: RunPanels) -> dict[str, Any]:
    """What the script needs to lay out a run: its metrics, and the units of counters."""
    result = source.result
    known = [result.describe(name) for name in runs.metrics]
    return {
        "metrics": [[m.name, m.title, m.unit, formula(result, m.name)] for m in known],
        "units": {
            f"{row.owner}.{row.name}": row.unit for row in result.plan.rows if row.kind == "counter"
        },
    }


class _Page:
    """Blocks as the templates take them; without `places` nothing is a link."""

    def __init__(
        self,
        source: Source,
        plots: bool,
        flames: str,
        places: Places | None,
        runs: frozenset[int],
    ) -> None:
        self.source, self.plots, self.flames = source, plots, flames
        self.places, self.runs = places, runs

    def section(self, section: Section) -> dict[str, Any]:
        blocks = [
            self._link(block) if _is_flame(block) else self._block(block, f"{section.key}-{i}")
            for i, block in enumerate(section.blocks)
            if (self.flames if _is_flame(block) else self.plots or not isinstance(block, Plot))
        ]
        return {"key": section.key, "title": section.title, "blocks": blocks}

    def _link(self, block: Block) -> dict[str, Any]:
        """What is drawn from a file of its own."""
        assert isinstance(block, Plot)
        return {"kind": "link", "to": quote(self.flames), "title": block.caption}

    def _block(self, block: Block, salt: str) -> dict[str, Any]:
        if isinstance(block, Findings) and self.places:
            cards = [card(item, self.places) for item in block.items]
            return {
                "kind": "findings",
                "cards": [each for each in cards if each["drawing"]],
                "lines": [each["sentence"] for each in cards if not each["drawing"]],
            }
        if isinstance(block, Prose):
            return {"kind": "prose", "lines": block.lines, "bullets": block.bullets}
        if isinstance(block, Cautions):
            return {"kind": "cautions", "items": self._cautions(block), "places": PLACES}
        if isinstance(block, Plot):
            return self._plot(block, salt)
        return html_table(block, self.places)

    def _cautions(self, block: Cautions) -> list[dict[str, Any]]:
        to = self.places.of_label if self.places else lambda label: ""
        return [
            {"caution": item, "where": [(label, to(label)) for label in item.where]}
            for item in block.items
        ]

    def _plot(self, block: Plot, salt: str) -> dict[str, Any]:
        from netbench.report import plots

        address = self.places.address if self.places else lambda cell: None
        with plots.default_style():
            drawn = draw(self.source, block, address)
            points = [
                Point(f"#run-{run}" if run in self.runs else "", f"run {run}: {value}")
                for run, value in drawn.runs
            ]
            inside = plots.inline(drawn.axes, drawn.dots, salt, block.caption, drawn.about, points)
        return {
            "kind": "plot",
            "id": f"plot-{salt}",
            "caption": block.caption,
            "drawing": Markup(inside),
            "linked": bool(points) and "<svg" in inside,
        }


def _is_flame(block: Block) -> bool:
    return isinstance(block, Plot) and block.kind == "flame"
