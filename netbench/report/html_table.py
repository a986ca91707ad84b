"""A table as its template takes it: values as text, and where each is from."""

from __future__ import annotations

from typing import Any

from netbench.report.blocks import Table
from netbench.report.numbers import column_parts
from netbench.report.places import Link, Places


def html_table(table: Table, places: Places | None) -> dict[str, Any]:
    """The heads and rows of a table; with `places` its rows lead to their runs."""
    columns = [column_parts(values) for values in zip(*table.rows, strict=True)] or [
        [] for _ in table.columns
    ]
    numeric = [
        c.kind == "value" and all(mean[:1] in "0123456789-+<" for mean, _ in v)
        for c, v in zip(table.columns, columns, strict=True)
    ]
    keys = [i for i, c in enumerate(table.columns) if c.kind == "key"]
    first, last = min(keys, default=0), max(keys, default=0)
    heads = [
        {"name": c.name, "unit": c.unit, "numeric": n, "kind": c.kind}
        for c, n in zip(table.columns, numeric, strict=True)
    ]
    marked = {(i, last) for i in table.marked} | table.marked_values

    def link(i: int, j: int, text: str) -> Link | None:
        if places is None or not text:
            return None
        return places.of_row(table, i) if j == first else places.of_value(table, i, j)

    rows = [
        [
            heads[j]
            | {"mean": mean, "half": half, "mark": (i, j) in marked, "link": link(i, j, mean)}
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
