"""A report as one HTML file that needs nothing else: style and drawings are inside, nothing is
fetched.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from netbench.control_characters import escape_controls
from netbench.report.blocks import Block, Cautions, Plot, Prose, Section, Table
from netbench.report.build import Report
from netbench.report.drawings import draw
from netbench.report.numbers import column_parts
from netbench.report.source import Source

PLACES = 12


def render(report: Report, *, plots: bool = True, flames: str = "") -> str:
    """The whole page. plots=False leaves the drawings out (a notebook's preview). `flames`: the
    folder with flame graphs, as a page beside it names it; "": there is none.
    """
    sections = [_section(report.source, section, plots, flames) for section in report.sections]
    return _render("report.html", title=report.name, label=report.label, sections=sections)


def fragment(report: Report, keys: Sequence[str] = ("summary", "cells")) -> str:
    """Some sections without page or plots, for a notebook."""
    chosen = [
        _section(report.source, section, plots=False)
        for section in report.sections
        if section.key in keys
    ]
    return _render("fragment.html", sections=chosen)


def _render(name: str, **values: Any) -> str:
    loader = FileSystemLoader(Path(__file__).parent / "templates")
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return escape_controls(environment.get_template(name).render(**values))


def _section(source: Source, section: Section, plots: bool, flames: str = "") -> dict[str, Any]:
    blocks = [
        _link(b, flames) if _is_flame(b) else _block(source, b, f"{section.key}-{i}")
        for i, b in enumerate(section.blocks)
        if (flames if _is_flame(b) else plots or not isinstance(b, Plot))
    ]
    return {"key": section.key, "title": section.title, "blocks": blocks}


def _is_flame(block: Block) -> bool:
    return isinstance(block, Plot) and block.kind == "flame"


def _link(block: Block, flames: str) -> dict[str, Any]:
    """A drawing that is a file of its own."""
    assert isinstance(block, Plot)
    return {"kind": "link", "to": f"{quote(flames)}/{quote(block.metric)}", "title": block.caption}


def _block(source: Source, block: Block, salt: str) -> dict[str, Any]:
    if isinstance(block, Prose):
        return {"kind": "prose", "lines": block.lines, "bullets": block.bullets}
    if isinstance(block, Cautions):
        return {"kind": "cautions", "items": block.items, "places": PLACES}
    if isinstance(block, Plot):
        from netbench.report import plots

        with plots.default_style():
            axes, dots = draw(source, block)
            drawing = Markup(plots.inline(axes, dots, salt))
        return {"kind": "plot", "caption": block.caption, "drawing": drawing}
    return _table(block)


def _table(table: Table) -> dict[str, Any]:
    columns = [column_parts(values) for values in zip(*table.rows, strict=True)] or [
        [] for _ in table.columns
    ]
    numeric = [
        c.kind == "value" and all(mean[:1] in "0123456789-+<" for mean, _ in v)
        for c, v in zip(table.columns, columns, strict=True)
    ]
    last = max((i for i, c in enumerate(table.columns) if c.kind == "key"), default=0)
    heads = [
        {"name": c.name, "unit": c.unit, "numeric": n, "kind": c.kind}
        for c, n in zip(table.columns, numeric, strict=True)
    ]
    marked = {(i, last) for i in table.marked} | table.marked_values
    rows = [
        [
            heads[j] | {"mean": mean, "half": half, "mark": (i, j) in marked}
            for j, (mean, half) in enumerate(row)
        ]
        for i, row in enumerate(zip(*columns, strict=True))
    ]
    return {
        "kind": "table",
        "title": table.title,
        "heads": heads,
        "rows": rows,
        "notes": table.notes,
    }
