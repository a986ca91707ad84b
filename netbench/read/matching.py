"""Which cells and which pairs of hosts of two results are compared with each other."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from netbench.base.units import listed
from netbench.read.compare import Place
from netbench.read.result import Result
from netbench.result.files import PlannedCell

A, B = "A", "B"
NAMED = 6  # things that a note names; the rest are counted


@dataclass(frozen=True)
class Match:
    """A cell of A and the one of B that it is compared with; `context` are the levels that say
    which, `pair` whose they are.
    """

    a: Place
    b: Place
    context: Mapping[str, str]
    pair: str


@dataclass(frozen=True)
class Matching:
    """What is compared, and in words what was left out or had to be assumed."""

    matches: tuple[Match, ...]
    notes: tuple[str, ...]


def match(a: Result, b: Result) -> Matching:
    """Cells of two results whose factors agree.

    A factor that one result alone swept must be at the level that the other campaign wrote for it;
    where it wrote none, each of its levels is compared with the other result's one cell.
    """
    pairs, notes = pairs_of(a, b)
    common = [name for name in a.swept if name in b.swept]
    own = {A: [n for n in a.swept if n not in common], B: [n for n in b.swept if n not in common]}
    sides: dict[str, dict[tuple[str, ...], list[PlannedCell]]] = {}
    for name, mine, against in ((A, a, b), (B, b, a)):
        other = B if name == A else A
        notes += [
            f"{factor} was swept in {name} alone; {_assumed(factor, against, other)}"
            for factor in own[name]
        ]
        groups = sides[name] = {}
        for cell in mine.cells:
            levels = tuple(cell.factors.get(name, "") for name in common)
            groups.setdefault(levels, []).append(cell)
        for key, group in groups.items():
            groups[key] = _as_written(group, own[name], against)
            left_out = [cell.cell for cell in group if cell not in groups[key]]
            if left_out:
                notes.append(
                    f"left out of {name}: {listed(left_out, NAMED)}: the other was run with another"
                    " level"
                )
    matches: list[Match] = []
    for key in (key for key in sides[A] if key in sides[B]):
        cells, left_out = _combined(sides[A][key], sides[B][key])
        if left_out:
            notes.append(f"left out: {listed(left_out, NAMED)}, of which several could be meant")
        for x, y in cells:
            context = _context(x, y, common, own)
            notes += _attached(x, y, {*common, *own[A], *own[B]})
            matches += [Match((x.cell, p), (y.cell, q), context, p) for p, q in pairs]
    for name, other in ((A, B), (B, A)):
        alone = [
            cell.cell
            for key, group in sides[name].items()
            if key not in sides[other]
            for cell in group
        ]
        notes += [f"only in {name}: {listed(alone, NAMED)}"] if alone else []
    return Matching(tuple(matches), tuple(notes))


def _combined(
    a: Sequence[PlannedCell], b: Sequence[PlannedCell]
) -> tuple[list[tuple[PlannedCell, PlannedCell]], list[str]]:
    """Which of the cells whose common levels agree are compared, and the ids of those that are not:
    where both results have several, those of one id.
    """
    if len(a) == 1 or len(b) == 1:
        return [(x, y) for x in a for y in b], []
    ids = {cell.cell for cell in a} & {cell.cell for cell in b}
    left_out = dict.fromkeys(cell.cell for cell in (*a, *b) if cell.cell not in ids)
    return [(x, y) for x in a for y in b if x.cell == y.cell], list(left_out)


def _context(
    x: PlannedCell, y: PlannedCell, common: Sequence[str], own: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """The levels that say which match it is."""
    context = {name: x.factors.get(name, "") for name in common}
    context |= {f"{A}'s {n}": x.factors[n] for n in own[A] if n in x.factors}
    context |= {f"{B}'s {n}": y.factors[n] for n in own[B] if n in y.factors}
    return context


def _attached(x: PlannedCell, y: PlannedCell, swept: Collection[str]) -> Iterator[str]:
    """Notes on keys that `include` attached to two cells, where their levels differ."""
    for name in dict.fromkeys((*x.factors, *y.factors)):
        levels = [cell.factors.get(name, "not given") for cell in (x, y)]
        if name not in swept and levels[0] != levels[1]:
            yield f"{x.cell}: {name} is {levels[0]} in {A}, {levels[1]} in {B}"


def _as_written(
    group: Sequence[PlannedCell], own: Sequence[str], other: Result
) -> list[PlannedCell]:
    """The cells whose own factors are at the levels that the other campaign wrote, where there are
    such.
    """
    cells = list(group)
    for name in own:
        fitting = [cell for cell in cells if cell.factors.get(name) == _written(other, name)]
        cells = fitting or cells
    return cells


def _written(result: Result, factor: str) -> str | None:
    """The level that a campaign wrote for what it did not sweep; None where it wrote none."""
    asked = result.asked or {}
    return next(
        (asked[key] for part in ("transfer", "settings") if (key := f"{part}.{factor}") in asked),
        None,
    )


def _assumed(factor: str, against: Result, name: str) -> str:
    level = _written(against, factor)
    return (
        f"{name} was run with {level}"
        if level
        else f"{name} does not say its level, so that each is compared with its one cell"
    )


def pairs_of(a: Result, b: Result) -> tuple[list[tuple[str, str]], list[str]]:
    """The pairs of hosts that are compared: those of one name, or the only ones there are."""
    of_a, of_b = (list(result.plan.pairs) for result in (a, b))
    common = [(pair, pair) for pair in of_a if pair in of_b]
    if not common and len(of_a) == len(of_b) == 1:
        note = f"the pair {of_a[0]} of {A} is compared with {of_b[0]} of {B}"
        return [(of_a[0], of_b[0])], [note]
    alone = {A: [p for p in of_a if p not in of_b], B: [p for p in of_b if p not in of_a]}
    return common, [
        f"only in {name}: the pairs {listed(pairs, NAMED)}"
        for name, pairs in alone.items()
        if pairs
    ]
