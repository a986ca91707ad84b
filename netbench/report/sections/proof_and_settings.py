"""Proof of mechanism, from the counters that netbench/model.py declares; and settings as they were
read back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from netbench.base.units import count, format_size, parse_size
from netbench.read.readbacks import BUFFERS
from netbench.read.shown_levels import shown
from netbench.read.totals import MUST_MOVE, MUST_NOT_MOVE, Declared, Proof, histogram
from netbench.report.blocks import Block, Column, Prose, Section, Table, Value, keys
from netbench.report.source import Source

RULES = {MUST_MOVE: "must move", MUST_NOT_MOVE: "must stay 0"}
NAMED = 4  # cells that a sentence names; the rest are counted
FEW = 2
Place = tuple[str, str]  # cell, pair


@dataclass
class _Counter:
    """A counter of one method and side over the cells that have it."""

    proof: Proof
    runs: int = 0
    broken: int = 0
    total: float = 0.0
    whole: float = 0.0  # of the counter that it is a part of
    per_run: list[float] = field(default_factory=list)
    places: list[str] = field(default_factory=list)  # where its rule was broken


def proof(source: Source) -> Section | None:
    """Sentences of what must stay 0 and of every broken rule, then one row a side, method and
    counter.

    A row holds the least and the most per run over its cells, and in how many runs its rule was
    kept. A second table has what splice(2) and sendfile(2) returned, by powers of two.
    """
    counters = dict(sorted(_counters(source).items()))
    if not counters:
        return None
    blocks: list[Block] = []
    if sentences := tuple(_sentences(counters)):
        blocks.append(Prose(sentences, bullets=True))
    columns = (
        *keys("side", "method", "counter"),
        Column("runs"),
        Column("least", "per run"),
        Column("most", "per run"),
        Column("rule"),
        Column("kept"),
    )
    rows = tuple((*key, *_numbers(row)) for key, row in counters.items())
    note = (
        "Counted within the measured window, mean of a cell's runs; the rule is judged up to the"
        " drained connection."
    )
    blocks.append(Table("", columns, rows, (note,)))
    return Section("proof", "Proof of mechanism", (*blocks, *_lengths(source)))


def _counters(source: Source) -> dict[tuple[str, str, str], _Counter]:
    """By side, method and counter."""
    proofs = source.result.proofs
    rows: dict[tuple[str, str, str], _Counter] = {}
    for (cell, pair, side), meanings in _meanings(source):
        for name, meaning in meanings.items():
            if histogram(name):
                continue
            counted = proofs[cell, pair, side, name]
            row = rows.setdefault((side, meaning.owner, name), _Counter(meaning))
            row.runs += counted.runs
            row.broken += counted.broken
            row.total += counted.total
            if meaning.part_of in meanings:
                row.whole += proofs[cell, pair, side, meaning.part_of].total
            row.per_run.append(counted.total / counted.runs)
            if counted.broken:
                row.places.append(f"{shown(cell)} {pair}" if source.several else shown(cell))
    return rows


def _meanings(source: Source) -> Iterator[tuple[tuple[str, str, str], Mapping[str, Proof]]]:
    """Of each cell, pair and side what its counters mean: together they tell the method."""
    declared = Declared(source.result.plan.rows)
    together: dict[tuple[str, str, str], list[str]] = {}
    for cell, pair, side, name in source.result.proofs:
        together.setdefault((cell, pair, side), []).append(name)
    yield from ((place, declared.of(place[2], names)) for place, names in together.items())


def _lengths(source: Source) -> Iterator[Table]:
    """How long the pieces were that calls moved: a row a power of two, over all cells."""
    proofs = source.result.proofs
    counts: dict[tuple[str, str, str], dict[int, float]] = {}
    for (cell, pair, side), meanings in _meanings(source):
        for name, meaning in meanings.items():
            if calls := histogram(name):
                size = parse_size(name.removeprefix(f"{calls}."))
                mine = counts.setdefault((side, meaning.owner, calls), {})
                mine[size] = mine.get(size, 0) + proofs[cell, pair, side, name].total
    rows = tuple(
        (*key, format_size(size), each[size], 100 * each[size] / sum(each.values()))
        for key, each in sorted(counts.items())
        for size in sorted(each)
        if each[size]
    )
    columns = (*keys("side", "method", "call", "length"), Column("calls"), Column("share", "%"))
    note = "A row begins at its length, and ends below the next power of two; all runs together."
    if rows:
        yield Table("Bytes that a call moved", columns, rows, (note,))


def _sentences(rows: Mapping[tuple[str, str, str], _Counter]) -> Iterator[str]:
    """What must stay 0, and what must move and did not."""
    for (side, owner, name), row in rows.items():
        who = f"{owner} ({side})" if owner else side
        whole = row.proof.part_of
        if MUST_NOT_MOVE in row.proof.flags:
            of = f" of {row.whole:,.0f} {whole} {name}" if whole else f" {name}"
            yield f"{who}: {row.total:,.0f}{of}; {_engaged(row)}."
        elif row.broken:
            runs = count(row.runs, "run")
            yield f"{who}: {name} stayed 0 in {row.broken} of {runs}; {_engaged(row)}."


def _engaged(row: _Counter) -> str:
    one = row.runs == 1
    if not row.broken:
        return "it engaged in the one run" if one else f"it engaged in all {row.runs} runs"
    if row.broken == row.runs:
        return f"it did NOT engage in {'the one run' if one else f'any of {row.runs} runs'}"
    named = "; ".join(row.places[:NAMED])
    if len(row.places) > NAMED:
        named += f"; and {len(row.places) - NAMED} more"
    return f"it did NOT engage in {row.broken} of {row.runs} runs: {named}"


def _numbers(row: _Counter) -> tuple[Value, ...]:
    rule = next((text for flag, text in RULES.items() if flag in row.proof.flags), "")
    engaged = row.runs - row.broken
    words = "all" if engaged == row.runs else f"{engaged} of {row.runs}"
    return row.runs, min(row.per_run), max(row.per_run), rule, words if rule else None


def settings(source: Source) -> Section | None:
    """One row a setting, side and level asked; and one for everything that moved along in the same
    cells.
    """
    tables = (*_asked(source), *_moved(source))
    return Section("settings", "Settings read back", tables) if tables else None


@dataclass
class _Level:
    """What was read of a setting at one level: words with the number of runs that read them."""

    read: dict[str, int] = field(default_factory=dict)
    after: dict[str, int] = field(default_factory=dict)
    places: set[Place] = field(default_factory=set)


def _asked(source: Source) -> Iterator[Table]:
    levels: dict[tuple[str, str, str], _Level] = {}
    for r in source.result.readbacks:
        row = levels.setdefault((r.name, r.side, r.asked or "default"), _Level())
        row.places.add((r.cell, r.pair))
        row.read[r.read] = row.read.get(r.read, 0) + r.runs
        if r.after:
            row.after[r.after] = row.after.get(r.after, 0) + r.runs
    if not levels:
        return
    columns = (
        *keys("setting", "side"),
        *map(Column, ("asked", "cells", "runs")),
        Column("read", kind="prose"),
    )
    # Sizes by their number, not by their digits.
    ordered = sorted(levels, key=lambda key: (*key[:2], len(key[2]), key[2]))
    rows = tuple(
        (*key, len(row.places), sum(row.read.values()), _readings(row))
        for key, row in ((key, levels[key]) for key in ordered)
    )
    notes = []
    if any(name in BUFFERS for name, _, _ in levels):
        notes.append(
            "The kernel doubles a socket buffer that is asked for, for its own bookkeeping"
            " (socket(7))."
        )
    if any(row.after for row in levels.values()):
        notes.append(
            "Runs after which a setting read otherwise than before do not count: something else"
            " changes it."
        )
    yield Table("", columns, rows, tuple(notes))


def _readings(row: _Level) -> str:
    text = _read(list(row.read))
    if row.after:
        text += f"; after {count(sum(row.after.values()), 'run')}: {_read(list(row.after))}"
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


def _moved(source: Source) -> Iterator[Table]:
    """What changed unasked, by the levels with which it changed."""
    places: dict[str, dict[Place, int]] = {}
    for (cell, pair, what), runs in source.result.moved.items():
        places.setdefault(what, {})[cell, pair] = runs
    together: dict[tuple[Place, ...], list[str]] = {}
    for what, where in sorted(places.items()):
        together.setdefault(tuple(sorted(where)), []).append(what)
    columns = (
        *keys("with"),
        *map(Column, ("cells", "runs")),
        Column("moved along", kind="prose"),
    )
    rows = tuple(
        (
            _levels(source, {cell for cell, _ in where}),
            len(where),
            sum(places[whats[0]].values()),
            "; ".join(whats),
        )
        for where, whats in together.items()
    )
    note = "A comparison of such a level is of everything that moved with it."
    if rows:
        yield Table("What else moved", columns, rows, (note,))


def _levels(source: Source, moved: Collection[str]) -> str:
    """The levels that these cells have in common, without those that every cell that ran has: what
    it moved with.
    """
    factors = {c.cell: set(c.factors.items()) for c in source.result.cells}
    ran = {r.cell for r in source.result.readbacks} | set(moved)
    common, everywhere = (set.intersection(*(factors[c] for c in some)) for some in (moved, ran))
    levels = dict(common - everywhere)
    words = [f"{name}={levels[name]}" for name in source.result.factors if name in levels]
    return " ".join(words) or ("every cell" if ran == set(moved) else "some cells")
