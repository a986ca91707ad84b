"""Settings as asked and as the kernel said when read back, before and after the runs; and what else
moved with them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from netbench.base.units import count
from netbench.read.readbacks import BUFFERS
from netbench.report.blocks import Column, Section, Table, Value
from netbench.report.source import Source

FEW = 2
Place = tuple[str, str]  # cell, pair


@dataclass
class _Row:
    """What was read of a setting at one level: words with the number of runs that read them."""

    read: dict[str, int] = field(default_factory=dict)
    after: dict[str, int] = field(default_factory=dict)
    places: set[Place] = field(default_factory=set)


def settings(source: Source) -> Section | None:
    """One row a setting, side and level asked; and one for everything that moved along in the same
    cells.
    """
    tables = [table for table in (_asked(source), _moved(source)) if table]
    return Section("settings", "Settings read back", tuple(tables)) if tables else None


def _asked(source: Source) -> Table | None:
    by_level: dict[tuple[str, str, str], _Row] = {}
    for r in source.result.readbacks:
        row = by_level.setdefault((r.name, r.side, r.asked or "default"), _Row())
        row.places.add((r.cell, r.pair))
        row.read[r.read] = row.read.get(r.read, 0) + r.runs
        if r.after:
            row.after[r.after] = row.after.get(r.after, 0) + r.runs
    if not by_level:
        return None
    columns = (
        Column("setting", kind="key"),
        Column("side", kind="key"),
        Column("asked"),
        Column("cells"),
        Column("runs"),
        Column("read", kind="prose"),
    )
    rows: list[tuple[Value, ...]] = [
        (*key, len(row.places), sum(row.read.values()), _readings(row))
        for key, row in sorted(by_level.items(), key=lambda item: _natural(item[0]))
    ]
    notes = []
    if any(name in BUFFERS for name, _, _ in by_level):
        notes.append(
            "The kernel doubles a socket buffer that is asked for, for its own bookkeeping"
            " (socket(7))."
        )
    if any(row.after for row in by_level.values()):
        notes.append(
            "Runs after which a setting read otherwise than before do not count: something else"
            " changes it."
        )
    return Table("", columns, tuple(rows), tuple(notes))


def _natural(key: tuple[str, str, str]) -> tuple[str, str, int, str]:
    """Sizes by their number, not by their digits."""
    name, side, asked = key
    return name, side, len(asked), asked


def _readings(row: _Row) -> str:
    text = _read(list(row.read))
    if row.after:
        runs = sum(row.after.values())
        text += f"; after {count(runs, 'run')}: {_read(list(row.after))}"
    return text


def _read(words: list[str]) -> str:
    """What was read: one word, a few, or the least and the most of many numbers (a buffer that
    tunes itself ends anywhere).
    """
    words = [" ".join(word.split()) or "nothing" for word in words]
    if len(words) <= FEW:
        return ", ".join(sorted(words, key=lambda word: (len(word), word)))
    if all(word.isdecimal() for word in words):
        numbers = sorted(map(int, words))
        return f"{numbers[0]} to {numbers[-1]}"
    return f"{len(words)} different"


def _moved(source: Source) -> Table | None:
    """What changed unasked, by the levels with which it changed."""
    places: dict[str, dict[Place, int]] = {}
    for (cell, pair, what), runs in source.result.moved.items():
        places.setdefault(what, {})[cell, pair] = runs
    together: dict[tuple[Place, ...], list[str]] = {}
    for what, where in sorted(places.items()):
        together.setdefault(tuple(sorted(where)), []).append(what)
    if not together:
        return None
    columns = (
        Column("with", kind="key"),
        Column("cells"),
        Column("runs"),
        Column("moved along", kind="prose"),
    )
    rows = tuple(
        (
            _levels(source, [cell for cell, _ in where]),
            len(where),
            sum(places[whats[0]].values()),
            "; ".join(whats),
        )
        for where, whats in together.items()
    )
    note = "A comparison of such a level is of everything that moved with it."
    return Table("What else moved", columns, rows, (note,))


def _levels(source: Source, moved: Collection[str]) -> str:
    """The levels that these cells have in common, without those that every cell that ran has: what
    it moved with.
    """
    factors = {c.cell: set(c.factors.items()) for c in source.result.cells}
    ran = {r.cell for r in source.result.readbacks} | set(moved)
    common = _shared([factors[cell] for cell in moved]) - _shared([factors[cell] for cell in ran])
    words = [
        f"{name}={level}" for name in source.result.factors for key, level in common if key == name
    ]
    return " ".join(words) or ("every cell" if ran == set(moved) else "some cells")


def _shared(levels: Sequence[set[tuple[str, str]]]) -> set[tuple[str, str]]:
    return set.intersection(*levels)
