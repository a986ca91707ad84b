"""Proof that each method did what its name says: what it counted that must not be, and its own
counters over all cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from netbench.base.units import format_size, parse_size
from netbench.read.proofs import MUST_MOVE, MUST_NOT_MOVE, Declared, Proof, histogram
from netbench.read.shown_levels import shown
from netbench.report.blocks import ROW, Block, Column, Levels, Prose, Section, Table, Value
from netbench.report.numbers import count
from netbench.report.source import Source

RULES = {MUST_MOVE: "must move", MUST_NOT_MOVE: "must stay 0"}
NAMED = 4  # cells that a sentence names; the rest are counted


@dataclass
class _Row:
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
    rows = _rows(source)
    if not rows:
        return None
    blocks: list[Block] = []
    sentences = tuple(_sentences(rows))
    if sentences:
        blocks.append(Prose(sentences, bullets=True))
    columns = (
        Column("side", kind="key"),
        Column("method", kind="key"),
        Column("counter", kind="key"),
        Column("runs"),
        Column("least", "per run"),
        Column("most", "per run"),
        Column("rule"),
        Column("kept"),
    )
    table = [
        (side, owner, name, *_numbers(row)) for (side, owner, name), row in sorted(rows.items())
    ]
    note = (
        "Counted within the measured window, mean of a cell's runs; the rule is judged up to the"
        " drained connection."
    )
    places = {
        (i, ROW): _place(source, side, owner) for i, (side, owner, _) in enumerate(sorted(rows))
    }
    blocks.append(Table("", columns, tuple(table), (note,), places=places))
    if lengths := _lengths(source):
        blocks.append(lengths)
    return Section("proof", "Proof of mechanism", tuple(blocks))


def _place(source: Source, side: str, method: str) -> Levels:
    """The cells of a method: all where none is swept."""
    factor = {"sender": "send", "receiver": "receive"}[side]
    return {factor: method} if factor in source.result.factors else {}


def _rows(source: Source) -> dict[tuple[str, str, str], _Row]:
    """By side, method and counter."""
    proofs = source.result.proofs
    several = len(source.result.plan.pairs) > 1
    rows: dict[tuple[str, str, str], _Row] = {}
    for (cell, pair, side), meanings in _meanings(source):
        for name, meaning in meanings.items():
            if histogram(name):
                continue
            counted = proofs[cell, pair, side, name]
            row = rows.setdefault((side, meaning.owner, name), _Row(meaning))
            row.runs += counted.runs
            row.broken += counted.broken
            row.total += counted.total
            row.whole += (
                proofs[cell, pair, side, meaning.part_of].total
                if meaning.part_of in meanings
                else 0
            )
            row.per_run.append(counted.total / counted.runs)
            if counted.broken:
                row.places.append(f"{shown(cell)} {pair}" if several else shown(cell))
    return rows


def _meanings(source: Source) -> Iterator[tuple[tuple[str, str, str], Mapping[str, Proof]]]:
    """Of each cell, pair and side what its counters mean: together they tell the method."""
    declared = Declared(source.result.plan.rows)
    together: dict[tuple[str, str, str], list[str]] = {}
    for cell, pair, side, name in source.result.proofs:
        together.setdefault((cell, pair, side), []).append(name)
    yield from ((place, declared.of(place[2], names)) for place, names in together.items())


def _lengths(source: Source) -> Table | None:
    """How long the pieces were that calls moved: a row a power of two, over all cells."""
    proofs = source.result.proofs
    counts: dict[tuple[str, str, str], dict[int, float]] = {}
    for (cell, pair, side), meanings in _meanings(source):
        for name, meaning in meanings.items():
            if calls := histogram(name):
                size = parse_size(name.removeprefix(f"{calls}."))
                mine = counts.setdefault((side, meaning.owner, calls), {})
                mine[size] = mine.get(size, 0) + proofs[cell, pair, side, name].total
    rows = [
        (*key, format_size(size), each[size], 100 * each[size] / sum(each.values()))
        for key, each in sorted(counts.items())
        if sum(each.values())
        for size in sorted(each)
        if each[size]
    ]
    columns = (
        Column("side", kind="key"),
        Column("method", kind="key"),
        Column("call", kind="key"),
        Column("length", kind="key"),
        Column("calls"),
        Column("share", "%"),
    )
    note = "A row begins at its length, and ends below the next power of two; all runs together."
    places = {(i, ROW): _place(source, *row[:2]) for i, row in enumerate(rows)}
    table = Table("Bytes that a call moved", columns, tuple(rows), (note,), places=places)
    return table if rows else None


def _sentences(rows: dict[tuple[str, str, str], _Row]) -> Iterator[str]:
    """What must stay 0, and what must move and did not."""
    for (side, owner, name), row in sorted(rows.items()):
        who = f"{owner} ({side})" if owner else side
        if MUST_NOT_MOVE in row.proof.flags:
            of = (
                f" of {row.whole:,.0f} {row.proof.part_of} {name}"
                if row.proof.part_of
                else f" {name}"
            )
            yield f"{who}: {row.total:,.0f}{of}; {_engaged(row)}."
        elif row.broken:
            yield (
                f"{who}: {name} stayed 0 in {row.broken} of {count(row.runs, 'run')};"
                f" {_engaged(row)}."
            )


def _engaged(row: _Row) -> str:
    if not row.broken:
        return f"it engaged in all {row.runs} runs" if row.runs > 1 else "it engaged in the one run"
    if row.broken == row.runs:
        return (
            f"it did NOT engage in any of {row.runs} runs"
            if row.runs > 1
            else "it did NOT engage in the one run"
        )
    named = "; ".join(row.places[:NAMED]) + (
        f"; and {len(row.places) - NAMED} more" if len(row.places) > NAMED else ""
    )
    return f"it did NOT engage in {row.broken} of {row.runs} runs: {named}"


def _numbers(row: _Row) -> tuple[Value, ...]:
    rule = next((text for flag, text in RULES.items() if flag in row.proof.flags), "")
    engaged = row.runs - row.broken
    words = "all" if engaged == row.runs else f"{engaged} of {row.runs}"
    return row.runs, min(row.per_run), max(row.per_run), rule, words if rule else None
