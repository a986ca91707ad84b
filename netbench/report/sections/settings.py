"""Settings as asked and as the kernel said when read back."""

from __future__ import annotations

from netbench.report.blocks import Column, Section, Table, Value
from netbench.report.source import Source


def settings(source: Source) -> Section | None:
    """One row a setting, side, level asked and value read."""
    found: dict[tuple[str, str, str, str], list[int]] = {}
    for r in source.loaded.readbacks:
        row = found.setdefault((r.name, r.side, r.asked or "default", r.read), [0, 0])
        row[0] += 1
        row[1] += r.runs
    if not found:
        return None
    columns = (
        Column("setting", kind="key"),
        Column("side", kind="key"),
        Column("asked"),
        Column("read"),
        Column("cells"),
        Column("runs"),
    )
    rows: list[tuple[Value, ...]] = [(*key, *counts) for key, counts in sorted(found.items())]
    note = "The kernel doubles a socket buffer that is asked for, for its own bookkeeping (socket(7))."
    return Section("settings", "Settings read back", (Table("", columns, tuple(rows), (note,)),))
