"""Settings as asked and as the kernel said when read back."""

from __future__ import annotations

from netbench.report.blocks import Column, Section, Table, Value
from netbench.report.source import Source

FEW = 2


def settings(source: Source) -> Section | None:
    """One row a setting, side and level asked; what was read, or from where to where it went where nothing was asked."""
    found: dict[tuple[str, str, str], dict[str, int]] = {}
    cells: dict[tuple[str, str, str], set[tuple[str, str]]] = {}
    for r in source.loaded.readbacks:
        key = r.name, r.side, r.asked or "default"
        found.setdefault(key, {})[r.read] = found.get(key, {}).get(r.read, 0) + r.runs
        cells.setdefault(key, set()).add((r.cell, r.pair))
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
    rows: list[tuple[Value, ...]] = [
        (*key, _read(list(reads)), len(cells[key]), sum(reads.values())) for key, reads in sorted(found.items())
    ]
    note = "The kernel doubles a socket buffer that is asked for, for its own bookkeeping (socket(7))."
    return Section("settings", "Settings read back", (Table("", columns, tuple(rows), (note,)),))


def _read(words: list[str]) -> str:
    """What was read: one word, a few, or the least and the most of many numbers (a buffer that tunes itself ends anywhere)."""
    if len(words) <= FEW:
        return ", ".join(sorted(words, key=lambda word: (len(word), word)))
    if all(word.isdecimal() for word in words):
        numbers = sorted(map(int, words))
        return f"{numbers[0]} to {numbers[-1]}"
    return f"{len(words)} different"
