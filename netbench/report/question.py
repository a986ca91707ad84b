"""What `compare` is asked: two levels of one result, two results, or two states measured in turns;
with its answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from netbench.base.errors import ReportError
from netbench.base.units import listed
from netbench.read import campaigns, matching, offered
from netbench.read.campaigns import find
from netbench.read.cells import metric_order
from netbench.read.gates import Gate
from netbench.read.grounds import grounded, with_processes
from netbench.read.matching import NAMED
from netbench.read.offered import METRIC
from netbench.report.compared import Compared
from netbench.report.sections.profile import changes, changes_of_results
from netbench.report.source import Source
from netbench.stats.comparison import Comparison


def of_factor(
    source: Source,
    factor: str | None,
    baseline: str | None = None,
    margin: float | None = None,
    metrics: Sequence[str] = (),
    gates: Sequence[Gate] = (),
) -> Compared:
    """The levels of a factor of one result.

    factor None: the one that the campaign compares; baseline None: likewise, or the first level.
    metrics: those of the tables where none is named, and those of the gates. Errors: ReportError
    for what is not there.
    """
    result = source.result
    asked, swept = result.compare, ", ".join(result.swept)
    if factor is None and asked is None:
        raise ReportError(
            f"{result.path}: its campaign has no `compare:`; name a factor with --factor"
            f" ({swept or 'nothing was swept'})"
        )
    chosen = factor or (asked.factor if asked else "")
    if chosen not in result.swept:
        raise ReportError(f"{result.path}: no factor {chosen!r}; there are {swept or 'none'}")
    levels = [str(level) for level in result.runs[chosen].cat.categories]
    if len(levels) < 2:
        raise ReportError(f"{result.path}: {chosen} has one level, {levels[0]}")
    own = asked if asked is not None and asked.factor == chosen else None
    base = baseline or (own.baseline if own else levels[0])
    if base not in levels:
        raise ReportError(
            f"{result.path}: {chosen} has no level {base!r}; its levels: {', '.join(levels)}"
        )
    within = own.margin if margin is None and own else margin
    named = _named(metrics, gates)

    def compare(name: str) -> list[Comparison]:
        return source.compare(chosen, base, name, within, free=name not in named)

    shown = {name: compare(name) for name in _metrics([source], metrics, gates)}
    families = with_processes(result, shown, compare)
    return Compared(
        f"{result.name}: {chosen} compared with {base}",
        {"": result},
        families,
        gates,
        asked=tuple(metrics),
        offered=source.offered,
        profiles=tuple(changes(source, chosen, base)),
        controls={name: source.controls(family) for name, family in families.items()},
    )


def of_two(
    a: Source,
    b: Source,
    margin: float | None = None,
    metrics: Sequence[str] = (),
    gates: Sequence[Gate] = (),
    history: Path | None = None,
    force: bool = False,
) -> Compared:
    """Two results, cell by cell. history: a folder with earlier results; force: gates are judged
    without. Errors: ReportError where they have no cell or not the metric in common.
    """
    cells = matching.match(a.result, b.result)
    if not cells.matches:
        raise _unmatched(f"{a.result.path} and {b.result.path}", cells)
    named = _named(metrics, gates)
    free = [
        m
        for m in cells.matches
        if not (offered.holds(a.result, a.at[m.a]) and offered.holds(b.result, b.at[m.b]))
    ]
    earlier = find(history, a.result, b.result) if history else None

    def compare(name: str) -> list[Comparison]:
        matches = free if name == METRIC and name not in named else cells.matches
        family = campaigns.independent(a.result, b.result, matches, name, margin, earlier)
        return [
            grounded(c, [(b.result, b.at[m.b])], [(a.result, a.at[m.a])])
            for c, m in zip(family, matches, strict=True)
        ]

    shown = {name: compare(name) for name in _metrics([a, b], metrics, gates)}
    rates = f"A: {a.offered or 'no rate.'} B: {b.offered or 'no rate.'}"
    return Compared(
        f"{b.result.name} (B) compared with {a.result.name} (A)",
        {matching.A: a.result, matching.B: b.result},
        with_processes(a.result, shown, compare),
        gates,
        (*cells.notes, *(earlier.notes if earlier else ())),
        matching.differences(a.result, b.result),
        tuple(metrics),
        a.offered if a.offered == b.offered else rates,
        tuple(changes_of_results(a, b, cells.matches)),
        earlier,
        force,
    )


def _unmatched(results: str, cells: matching.Matching) -> ReportError:
    why = "; ".join(cells.notes) or "their factors have no level in common"
    return ReportError(f"{results} have no cell in common: {why}")


def of_turns(
    sources: Sequence[Source],
    margin: float | None = None,
    metrics: Sequence[str] = (),
    gates: Sequence[Gate] = (),
) -> Compared:
    """Two states measured in turns, A B A B: campaigns of both, two at least of each. Errors:
    ReportError where they have no cell or not the metric in common.
    """
    by_path = {source.result.path: source for source in sources}
    taken = campaigns.turns(*([s.result for s in sources[at::2]] for at in (0, 1)))
    cells, places = campaigns.matched(taken)
    if not cells.matches:
        raise _unmatched(f"the {len(sources)} results", cells)
    named = _named(metrics, gates)
    ordered = [by_path[r.path] for r in taken.all]
    sides = {
        m.a: [(s.result, s.at[there[m.a]]) for s, there in zip(ordered, places, strict=True)]
        for m in cells.matches
    }
    free = [m for m in cells.matches if not all(offered.holds(*side) for side in sides[m.a])]

    def compare(name: str) -> list[Comparison]:
        matches = free if name == METRIC and name not in named else cells.matches
        family = campaigns.in_turns(taken, matches, places, name, margin)
        half = len(taken.a)
        return [
            grounded(c, sides[m.a][half:], sides[m.a][:half])
            for c, m in zip(family, matches, strict=True)
        ]

    shown = {name: compare(name) for name in _metrics(sources, metrics, gates)}
    a, b = taken.a[0], taken.b[0]
    numbered = {
        f"{state}{number if number > 1 else ''}": result  # A, B, A2, B2 and so on
        for number, pair in enumerate(zip(taken.a, taken.b, strict=True), 1)
        for state, result in zip(campaigns.STATES, pair, strict=True)
    }
    return Compared(
        f"{b.name} (B) compared with {a.name} (A), {len(taken.a)} campaigns of each",
        numbered,
        with_processes(a, shown, compare),
        gates,
        (*cells.notes, *_changed(taken)),
        matching.differences(a, b),
        tuple(metrics),
        " ".join(dict.fromkeys(s.offered for s in sources if s.offered)),
        turns=taken,
    )


def _changed(taken: campaigns.Turns) -> Iterator[str]:
    """What campaigns of one state differ in: it is part of the spread."""
    for state, (first, *others) in zip(campaigns.STATES, (taken.a, taken.b), strict=True):
        for other in others:
            names = list(dict.fromkeys(d.what for d in matching.differences(first, other)))
            if names:
                yield (
                    f"{other.path} differs from the first {state} in {listed(names, NAMED)}, though"
                    " they are to be one state"
                )


def _named(metrics: Sequence[str], gates: Sequence[Gate]) -> set[str]:
    """The metrics that were asked for by name."""
    return {*metrics, *(gate.metric for gate in gates)}


def _metrics(sources: Sequence[Source], asked: Sequence[str], gates: Sequence[Gate]) -> list[str]:
    """The metrics to compare, each in all results."""
    named = list(dict.fromkeys((*asked, *(gate.metric for gate in gates))))
    for source in sources:
        there = source.result.metrics
        for name in (name for name in named if name not in there):
            known = ", ".join(metric_order(there))
            raise ReportError(
                f"{source.result.path}: no metric {name!r} was measured; there are {known}"
            )
    shown = [
        name
        for name in sources[0].metrics
        if all(name in source.result.metrics for source in sources)
    ]
    wanted = list(dict.fromkeys((*(asked or shown), *named)))
    for name in wanted:
        if len(units := {source.result.describe(name).unit for source in sources}) > 1:
            raise ReportError(f"{name} is in {' and in '.join(sorted(units))}: nothing to compare")
    return wanted
