"""Pages out of templates/. The style and the script are within each page; its content security
policy allows them, by the script's hash, and no request to any address.
"""

from __future__ import annotations

import base64
import hashlib
from html import escape
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from netbench.base.control_characters import escape_controls
from netbench.report.blocks import Table
from netbench.report.numbers import column_parts

TEMPLATES = Path(__file__).parent / "templates"


def render_page(name: str, **values: Any) -> str:
    """A template of templates/ with these values; what is text is escaped."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["raw"] = _raw
    script = (TEMPLATES / "page.js").read_text(encoding="utf-8")
    page = environment.get_template(name).render(
        script=Markup(script), policy=_policy(script), **values
    )
    return escape_controls(page)


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline';"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )


def _raw(text: str) -> Markup:
    """Text between tags, where quotes need no escape: a record has hundreds."""
    return Markup(escape(text, quote=False))


def html_table(table: Table) -> dict[str, Any]:
    """A table as its template takes it: values as text."""
    columns = [column_parts(values) for values in zip(*table.rows, strict=True)] or [
        [] for _ in table.columns
    ]
    heads = [
        {
            "name": column.name,
            "unit": column.unit,
            "kind": column.kind,
            "numeric": column.kind == "value"
            and all(mean[:1] in "0123456789-+<" for mean, _ in parts),
        }
        for column, parts in zip(table.columns, columns, strict=True)
    ]
    last = max((i for i, c in enumerate(table.columns) if c.kind == "key"), default=0)
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
