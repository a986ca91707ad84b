"""Proof of mechanism, from counters of the engine's; and settings as they were read back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from netbench.base.units import count
from netbench.read.readbacks import BUFFERS
from netbench.read.totals import MUST_MOVE, MUST_NOT_MOVE, Declared, Proof
from netbench.report.blocks import Row, Section, Table, keyed, prose, tabled
from netbench.report.source import Source

RULES = {MUST_MOVE: "must move", MUST_NOT_MOVE: "must stay 0"}
COPIED = ("copied", "copied_bytes")
"""What methods that spare a copy call what they copied after all."""
FEW = 2
Place = tuple[str, str]  # cell, pair


@dataclass
class _Counter:
    """A counter of one method and side over the cells that have it."""

    proof: Proof
    runs: int = 0
    broken: int = 0
    total: float = 0.0
    whole: float = 0.0  # of what it is a part of: another counter, or all bytes
    per_run: list[float] = field(default_factory=list)

    def row(self) -> Row:
        rule = next((text for flag, text in RULES.items() if flag in self.proof.flags), "")
        counted = f"{self.runs - self.broken} of {self.runs}" if self.broken else "all"
        return {
            "runs": self.runs,
            "least [per run]": min(self.per_run),
            "most [per run]": max(self.per_run),
            "rule": rule,
            "kept": counted if rule else None,
            **({"of all [%]": 100 * self.total / self.whole} if self.whole else {}),
        }


def proof(source: Source) -> Section | None:
    """One row a side, method and counter: the least and the most per run over its cells, in how
    many runs its rule was kept (cautions say where it was not), and its share of what it is a part
    of.
    """
    counted = dict(sorted(counters(source).items()))
    if not counted:
        return None
    rows = ({**keyed("side method counter", *k), **c.row()} for k, c in counted.items())
    note = (
        "Counted within the measured window, mean of a cell's runs; the rule is judged up to the"
        " drained connection."
    )
    return Section("proof", "Proof of mechanism", (tabled("", rows, note),))


def counters(source: Source) -> dict[tuple[str, str, str], _Counter]:
    """By side, method and counter."""
    proofs = source.result.proofs
    rows: dict[tuple[str, str, str], _Counter] = {}
    for (cell, pair, side), meanings in _meanings(source):
        for name, meaning in meanings.items():
            counted = proofs[cell, pair, side, name]
            row = rows.setdefault((side, meaning.owner, name), _Counter(meaning))
            row.runs += counted.runs
            row.broken += counted.broken
            row.total += counted.total
            whole = [meaning.part_of] if meaning.part_of in meanings else []
            if name == "copied_bytes":
                moved = (n for n, m in meanings.items() if MUST_MOVE in m.flags)
                whole = [name, *(n for n in moved if n.endswith("_bytes"))]  # without a copy
            row.whole += sum(proofs[cell, pair, side, each].total for each in whole)
            row.per_run.append(counted.total / counted.runs)
    return rows


def _meanings(source: Source) -> Iterator[tuple[tuple[str, str, str], Mapping[str, Proof]]]:
    """Of each cell, pair and side what its counters mean: together they tell the method."""
    declared = Declared(source.result.plan.rows)
    together: dict[tuple[str, str, str], list[str]] = {}
    for cell, pair, side, name in source.result.proofs:
        together.setdefault((cell, pair, side), []).append(name)
    yield from ((place, declared.of(place[2], names)) for place, names in together.items())


def settings(source: Source) -> Section | None:
    """One row a setting, side and level asked; and one for all that moved in the same cells."""
    tables = (*_asked(source), *_moved(source))
    return Section("settings", "Settings read back", tables) if tables else None


@dataclass
class _Level:
    """What was read of a setting at one level: words with the number of runs that read them."""

    read: Counter[str] = field(default_factory=Counter)
    after: Counter[str] = field(default_factory=Counter)
    places: set[Place] = field(default_factory=set)


def _asked(source: Source) -> Iterator[Table]:
    levels: dict[tuple[str, str, str], _Level] = {}
    for r in source.result.readbacks:
        level = levels.setdefault((r.name, r.side, r.asked or "default"), _Level())
        level.places.add((r.cell, r.pair))
        level.read[r.read] += r.runs
        if r.after:
            level.after[r.after] += r.runs
    rows: list[Row] = []
    # Sizes by their number, not by their digits.
    for key in sorted(levels, key=lambda key: (*key[:2], len(key[2]), key[2])):
        level = levels[key]
        text = _read(level.read)
        if level.after:
            text += f"; after {count(level.after.total(), 'run')}: {_read(level.after)}"
        numbers = {"cells": len(level.places), "runs": level.read.total()}
        name, side, asked = key
        rows.append(
            {**keyed("setting side", name, side), "asked": asked, **numbers, prose("read"): text}
        )
    notes = []
    if any(name in BUFFERS for name, _, _ in levels):
        notes.append(
            "The kernel doubles a socket buffer that is asked for, for its own bookkeeping"
            " (socket(7))."
        )
    if any(level.after for level in levels.values()):
        notes.append(
            "Runs after which a setting read otherwise than before do not count: something else"
            " changes it."
        )
    if rows:
        yield tabled("", rows, *notes)


def _read(found: Collection[str]) -> str:
    """What was read: one word, a few, or the least and the most of many numbers (a buffer that
    tunes itself ends anywhere).
    """
    words = [" ".join(word.split()) or "nothing" for word in found]
    if len(words) <= FEW:
        return ", ".join(sorted(words, key=lambda word: (len(word), word)))
    if all(word.isdecimal() for word in words):
        numbers = sorted(map(int, words))
        return f"{numbers[0]} to {numbers[-1]}"
    return f"{len(words)} different"


def _moved(source: Source) -> Iterator[Table]:
    """What changed unasked, by the levels with which it changed."""
    places: dict[str, dict[Place, int]] = {}
    for (cell, pair, what), runs in source.result.moved.items():
        places.setdefault(what, {})[cell, pair] = runs
    together: dict[tuple[Place, ...], list[str]] = {}
    for what, where in sorted(places.items()):
        together.setdefault(tuple(sorted(where)), []).append(what)
    rows = [
        {
            **keyed("with", _levels(source, {cell for cell, _ in where})),
            "cells": len(where),
            "runs": sum(places[whats[0]].values()),
            prose("moved along"): "; ".join(whats),
        }
        for where, whats in together.items()
    ]
    if rows:
        note = "A comparison of such a level is of everything that moved with it."
        yield tabled("What else moved", rows, note)


def _levels(source: Source, moved: Collection[str]) -> str:
    """The levels that these cells have in common, without those that every cell has."""
    factors = {c.cell: set(c.factors.items()) for c in source.result.cells}
    ran = {r.cell for r in source.result.readbacks} | set(moved)
    common, everywhere = (set.intersection(*(factors[c] for c in some)) for some in (moved, ran))
    levels = dict(common - everywhere)
    words = [f"{name}={levels[name]}" for name in source.result.factors if name in levels]
    return " ".join(words) or ("every cell" if ran == set(moved) else "some cells")
