"""Two results: which of their cells are the same, what their hosts differ in, and the ratio of each
cell's means.

The two ran at different times, so nothing pairs them: the logarithms of their runs (of their boots'
means, where both have several boots) are independent samples, compared by Welch's t (Welch 1947,
doi:10.1093/biomet/34.1-2.28). What changed between the two times, beside what was meant to, is part
of the difference and in no interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from netbench.analysis.boots import KERNEL
from netbench.analysis.compare import ZERO, Comparison, by_cell, corrected, tested
from netbench.analysis.intervals import Numbers, sequential_confidence
from netbench.analysis.pairs import Series
from netbench.analysis.result import Result
from netbench.facts import comparison
from netbench.facts.entry import known_facts
from netbench.model import Repeat

A, B = "A", "B"
PRIVATE = (
    "source",
    "sink",
    "tool",
)  # keys of transfer that may hold paths: that they differ is said, not how
NAMED = 6  # things that a note names; the rest are counted
Place = tuple[str, str]  # cell, pair


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


@dataclass(frozen=True)
class Difference:
    """A fact that must match, or a key of the campaign, and what it is in each result."""

    where: str  # hosts, or `campaign`
    what: str
    a: str
    b: str


@dataclass(frozen=True)
class _Cell:
    id: str
    factors: Mapping[str, str]

    def levels(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(self.factors.get(name, "") for name in names)


def match(a: Result, b: Result) -> Matching:
    """Cells of two results whose factors agree.

    A factor that one result alone swept must be at the level that the other campaign wrote for it;
    where it wrote none, each of its levels is compared with the other result's one cell.
    """
    pairs, notes = _pairs(a, b)
    common = [name for name in a.swept if name in b.swept]
    own = {A: [n for n in a.swept if n not in common], B: [n for n in b.swept if n not in common]}
    sides: dict[str, dict[tuple[str, ...], list[_Cell]]] = {}
    for name, mine, against in ((A, a, b), (B, b, a)):
        other = B if name == A else A
        notes += [
            f"{factor} was swept in {name} alone; {_assumed(factor, against, other)}"
            for factor in own[name]
        ]
        groups = sides[name] = {}
        for cell in _cells(mine):
            groups.setdefault(cell.levels(common), []).append(cell)
        for key, group in groups.items():
            groups[key] = _as_written(group, own[name], against)
            gone = [cell.id for cell in group if cell not in groups[key]]
            notes += (
                [f"left out of {name}: {_listed(gone)}: the other was run with another level"]
                if gone
                else []
            )
    found: list[Match] = []
    for key in (key for key in sides[A] if key in sides[B]):
        found += _joined(sides[A][key], sides[B][key], common, own, pairs, notes)
    for name, other in ((A, B), (B, A)):
        alone = [
            cell.id
            for key, group in sides[name].items()
            if key not in sides[other]
            for cell in group
        ]
        notes += [f"only in {name}: {_listed(alone)}"] if alone else []
    return Matching(tuple(found), tuple(notes))


def _joined(
    mine: Sequence[_Cell],
    theirs: Sequence[_Cell],
    common: Sequence[str],
    own: Mapping[str, Sequence[str]],
    pairs: Sequence[tuple[str, str]],
    notes: list[str],
) -> Iterator[Match]:
    """The matches of cells whose common levels agree."""
    if len(mine) > 1 and len(theirs) > 1:
        ids = {cell.id for cell in mine} & {cell.id for cell in theirs}
        gone = [cell.id for cell in (*mine, *theirs) if cell.id not in ids]
        notes += (
            [f"left out: {_listed(list(dict.fromkeys(gone)))}, of which several could be meant"]
            if gone
            else []
        )
        chosen = [(x, y) for x in mine for y in theirs if x.id == y.id and x.id in ids]
    else:
        chosen = [(x, y) for x in mine for y in theirs]
    for x, y in chosen:
        context = {name: x.factors.get(name, "") for name in common}
        context |= {f"{A}'s {n}": x.factors[n] for n in own[A] if n in x.factors}
        context |= {f"{B}'s {n}": y.factors[n] for n in own[B] if n in y.factors}
        for name in dict.fromkeys(
            n for n in (*x.factors, *y.factors) if n not in (*common, *own[A], *own[B])
        ):
            words = [cell.factors.get(name, "not given") for cell in (x, y)]
            notes += (
                [f"{x.id}: {name} is {words[0]} in {A}, {words[1]} in {B}"]
                if words[0] != words[1]
                else []
            )
        for pair, other in pairs:
            yield Match((x.id, pair), (y.id, other), context, pair)


def _cells(result: Result) -> list[_Cell]:
    return [
        _Cell(str(c["cell"]), {str(k): str(v) for k, v in c["factors"].items()})
        for c in result.cells
    ]


def _as_written(group: Sequence[_Cell], own: Sequence[str], other: Result) -> list[_Cell]:
    """The cells whose own factors are at the levels that the other campaign wrote, where there are
    such.
    """
    kept = list(group)
    for name in own:
        fitting = [cell for cell in kept if cell.factors.get(name) == _written(other, name)]
        kept = fitting or kept
    return kept


def _written(result: Result, factor: str) -> str | None:
    """The level that a campaign wrote for what it did not sweep; None where it wrote none."""
    asked = result.asked or {}
    return next(
        (asked[key] for part in ("transfer", "settings") if (key := f"{part}.{factor}") in asked),
        None,
    )


def _assumed(factor: str, against: Result, name: str) -> str:
    word = _written(against, factor)
    return (
        f"{name} was run with {word}"
        if word
        else f"{name} does not say its level, so that each is compared with its one cell"
    )


def _pairs(a: Result, b: Result) -> tuple[list[tuple[str, str]], list[str]]:
    """The pairs of hosts that are compared: those of one name, or the only ones there are."""
    mine, theirs = ([str(pair) for pair in result.plan["pairs"]] for result in (a, b))
    found = [(pair, pair) for pair in mine if pair in theirs]
    if not found and len(mine) == len(theirs) == 1:
        return [(mine[0], theirs[0])], [
            f"the pair {mine[0]} of {A} is compared with {theirs[0]} of {B}"
        ]
    alone = {A: [p for p in mine if p not in theirs], B: [p for p in theirs if p not in mine]}
    return found, [
        f"only in {name}: the pairs {_listed(pairs)}" for name, pairs in alone.items() if pairs
    ]


def _listed(names: Sequence[str]) -> str:
    return "; ".join(names[:NAMED]) + (
        f"; and {len(names) - NAMED} more" if len(names) > NAMED else ""
    )


def compared(
    a: Result, b: Result, matching: Matching, metric: str, margin: float | None = None
) -> list[Comparison]:
    """B against A in one metric, a comparison a match: one family. The metric must be in both."""
    series = [
        {(w[1], w[0]): s for w, s in by_cell(result.ok, ["pair", "cell"], metric)}
        for result in (a, b)
    ]
    repeat = max(
        (a.repeat, b.repeat),
        key=lambda r: (r.confidence, sequential_confidence(r.confidence, r.min, r.max)),
    )
    return corrected(
        [_independent(m, metric, series, repeat, margin) for m in matching.matches], repeat
    )


def _independent(
    m: Match,
    metric: str,
    series: Sequence[Mapping[Place, Series]],
    repeat: Repeat,
    margin: float | None,
) -> Comparison:
    """One comparison without its interval."""
    empty = Comparison(
        "result", B, A, m.context, m.pair, metric, 0, "run", confidence=repeat.confidence, against=0
    )
    empty = replace(empty, margin=margin)
    base, mine = series[0].get(m.a), series[1].get(m.b)
    if base is None or mine is None:
        return replace(empty, why=f"{A if base is None else B} has no run here")
    if (mine.values <= 0).any() or (base.values <= 0).any():
        return replace(empty, why=ZERO)
    boots = [len(set(s.boot.tolist())) for s in (base, mine)]
    there, here = (_logs(s, n > 1) for s, n in zip((base, mine), boots, strict=True))
    unit, sizes = ("boot", boots) if max(boots) > 1 else ("run", [len(there), len(here)])
    filled = replace(empty, n=sizes[1], against=sizes[0], unit=unit)
    d = float(here.mean() - there.mean())
    if min(boots) == 1 < max(boots):
        one, many = (A, B) if boots[0] == 1 else (B, A)
        why = (
            f"{one} has one boot and {many} {max(boots)}: how far boots of {one} lie apart is not"
            " known"
        )
        return replace(filled, ratio=math.exp(d), why=why)
    if min(len(here), len(there)) < 2:
        return replace(filled, ratio=math.exp(d), why=f"one {unit} has no interval")
    return _welch(filled, d, here, there)


def _welch(filled: Comparison, d: float, here: Numbers, there: Numbers) -> Comparison:
    variances = float(here.var(ddof=1)), float(there.var(ddof=1))
    parts = variances[0] / len(here), variances[1] / len(there)
    error = math.sqrt(sum(parts))
    below = parts[0] ** 2 / (len(here) - 1) + parts[1] ** 2 / (len(there) - 1)
    freedom = sum(parts) ** 2 / below if below else float(len(here) + len(there) - 2)
    return tested(replace(filled, sd=math.sqrt(sum(variances))), d, error, freedom)


def _logs(series: Series, by_boot: bool) -> Numbers:
    """The logarithms of runs, or their means by boot."""
    logs = np.log(series.values)
    if not by_boot:
        return logs
    _, at = np.unique(series.boot, return_inverse=True)
    return np.asarray(np.bincount(at, logs) / np.bincount(at))


def differences(a: Result, b: Result) -> list[Difference]:
    """What the two differ in: facts that must match, and what their campaigns say of the transfer
    and of settings.
    """
    found: dict[tuple[str, str, str], list[str]] = {}
    own = set(a.handled) & set(b.handled) - {
        "kernel"
    }  # what both set themselves is in what their campaigns say
    compared = comparison.must_match(own)
    for host, other in _hosts(a, b):
        one, two = _known(a, host), _known(b, other)
        label = host if host == other else f"{host} and {other}"
        for name in compared:
            if name in one and name in two and one[name] != two[name]:
                found.setdefault((name, one[name], two[name]), []).append(label)
    told = [
        Difference(", ".join(hosts), name, *comparison.shortened(x, y))
        for (name, x, y), hosts in found.items()
    ]
    return [*told, *_words(a, b)]


def _hosts(a: Result, b: Result) -> list[tuple[str, str]]:
    """Hosts of one name, or those that play one part in the pairs that are compared."""
    pairs, _ = _pairs(a, b)
    ends = [
        (x, y)
        for pair, other in pairs
        for x, y in zip(pair.split(">"), other.split(">"), strict=True)
    ]
    return list(dict.fromkeys(ends))


def _known(result: Result, host: str) -> dict[str, str]:
    """Each fact over all entries of a host: one value, or all that there were."""
    values: dict[str, dict[str, None]] = {}
    for entry in result.hosts.get(host, ()):
        for name, value in known_facts(entry).items():
            values.setdefault(name, {})[value] = None
    return {name: " or ".join(sorted(each)) for name, each in values.items()}


def _words(a: Result, b: Result) -> Iterator[Difference]:
    """Keys of transfer and settings that the campaigns write otherwise, and that neither swept."""
    if a.asked is None or b.asked is None:
        return
    for key in dict.fromkeys((*a.asked, *b.asked)):
        one, two = a.asked.get(key), b.asked.get(key)
        name = key.partition(".")[2]
        if one != two and name not in (*a.factors, *b.factors, KERNEL):
            hidden = name in PRIVATE
            words = (
                ("differs", "differs")
                if hidden
                else tuple("not written" if w is None else w for w in (one, two))
            )
            yield Difference("campaign", key, *words)
