"""What `compare` is asked: levels of one result, or results of two states; with its answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from netbench.base.errors import ReportError
from netbench.base.units import listed
from netbench.read import campaigns, matching, offered
from netbench.read.cells import metric_order
from netbench.read.compare import Place
from netbench.read.gates import Gate
from netbench.read.grounds import Side, grounded, with_processes
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
    named = {*metrics, *(gate.metric for gate in gates)}

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


def of_results(
    sources: Sequence[Source],
    margin: float | None = None,
    metrics: Sequence[str] = (),
    gates: Sequence[Gate] = (),
    history: Path | None = None,
    force: bool = False,
) -> Compared:
    """Results of two states, A and B in turns, cell by cell: two, or two at least of each. Of two,
    history: a folder with earlier results; force: gates are judged without. Errors: ReportError
    where they have no cell or not the metric in common.
    """
    taken = campaigns.states(*([s.result for s in sources[at::2]] for at in (0, 1)))
    results, half = taken.all, len(taken.a)
    (a, *_), (b, *_) = taken.a, taken.b
    differing = matching.differences(a, b)
    keys = [d for d in differing if d.where == matching.CAMPAIGN]
    if a.name != b.name and keys and not force:
        told = listed(
            [f"{d.what} {d.a}" if d.a == d.b else f"{d.what} {d.a} and {d.b}" for d in keys], NAMED
        )
        raise ReportError(
            f"{a.name} (A) and {b.name} (B) measured different things ({told}); --force"
            " compares what they have in common"
        )
    if not taken.cells:
        paths = [str(source.result.path) for source in sources]
        which = " and ".join(paths) if half == 1 else f"the {len(paths)} results"
        why = "; ".join(taken.notes) or "their factors have no level in common"
        raise ReportError(f"{which} have no cell in common: {why}")
    by_path = {source.result.path: source for source in sources}
    ordered = [by_path[result.path] for result in results]
    named = {*metrics, *(gate.metric for gate in gates)}

    def sides(places: Sequence[Place]) -> list[Side]:
        return [(s.result, s.at[place]) for s, place in zip(ordered, places, strict=True)]

    free = replace(
        taken,
        cells=[c for c in taken.cells if not all(offered.holds(*side) for side in sides(c[1]))],
    )
    earlier = campaigns.find(history, a, b) if history else None

    def compare(name: str) -> list[Comparison]:
        mine = free if name == METRIC and name not in named else taken
        family = campaigns.compare_states(mine, name, margin, earlier)
        each = [sides(places) for _, places in mine.cells]
        return [grounded(c, of[half:], of[:half]) for c, of in zip(family, each, strict=True)]

    shown = {name: compare(name) for name in _metrics(sources, metrics, gates)}
    numbered = {
        f"{state}{number if number > 1 else ''}": result  # A, B, A2, B2 and so on
        for number, pair in enumerate(zip(taken.a, taken.b, strict=True), 1)
        for state, result in zip(campaigns.STATES, pair, strict=True)
    }
    rates = {name: by_path[result.path].offered for name, result in numbered.items()}
    told = " ".join(f"{name}: {rate or 'no rate.'}" for name, rate in rates.items())
    (first, *_), (other, *_) = (ordered[at:] for at in (0, half))
    matches = [m for m, _ in taken.cells]
    return Compared(
        f"{b.name} (B) compared with {a.name} (A)"
        + (f", {half} campaigns of each" if half > 1 else ""),
        numbered,
        with_processes(a, shown, compare),
        gates,
        (*taken.notes, *_changed(taken), *(earlier.notes if earlier else ())),
        differing,
        tuple(metrics),
        told if len({*rates.values()}) > 1 else ordered[0].offered,
        tuple(changes_of_results(first, other, matches)) if half == 1 else (),
        earlier,
        force,
        turns=taken if half > 1 else None,
    )


def _changed(taken: campaigns.States) -> Iterator[str]:
    """What campaigns of one state differ in: it is part of the spread."""
    for state, (first, *others) in zip(campaigns.STATES, (taken.a, taken.b), strict=True):
        for other in others:
            names = list(dict.fromkeys(d.what for d in matching.differences(first, other)))
            if names:
                yield (
                    f"{other.path} differs from the first {state} in {listed(names, NAMED)}, though"
                    " they are to be one state"
                )


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
