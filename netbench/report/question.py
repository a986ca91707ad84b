"""What `compare` is asked: levels of one result, or two results; with its answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from netbench.base.errors import ReportError
from netbench.base.units import listed
from netbench.read import campaigns, matching, offered
from netbench.read.cells import metric_order
from netbench.read.gates import Gate
from netbench.read.grounds import grounded, with_processes
from netbench.read.matching import A, B
from netbench.read.offered import METRIC
from netbench.report.compared import Compared
from netbench.report.sections.profile import changes
from netbench.report.sections.summary import gone_along
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
        tuple(gone_along(source, families)),
        asked=tuple(metrics),
        offered=source.offered,
        profiles=tuple(changes(source, chosen, base)),
        controls={name: source.controls(family) for name, family in families.items()},
    )


def of_results(
    one: Source,
    other: Source,
    margin: float | None = None,
    metrics: Sequence[str] = (),
    gates: Sequence[Gate] = (),
    history: Path | None = None,
    force: bool = False,
) -> Compared:
    """Two results, A and B, cell by cell. history: a folder with earlier results; force: gates are
    judged without. Errors: ReportError where they have no cell or not the metric in common.
    """
    a, b = one.result, other.result
    differing = matching.differences(a, b)
    keys = [d for d in differing if d.where == matching.CAMPAIGN and "kernels." not in d.what]
    if a.name != b.name and keys and not force:
        told = listed(
            [f"{d.what} {d.a}" if d.a == d.b else f"{d.what} {d.a} and {d.b}" for d in keys],
            matching.NAMED,
        )
        raise ReportError(
            f"{a.name} (A) and {b.name} (B) measured different things ({told}); --force"
            " compares what they have in common"
        )
    matched = matching.match(a, b)
    if not matched.matches:
        why = "; ".join(matched.notes) or "their factors have no level in common"
        raise ReportError(f"{a.path} and {b.path} have no cell in common: {why}")
    named = {*metrics, *(gate.metric for gate in gates)}
    free = [
        m
        for m in matched.matches
        if not (offered.holds(a, one.at[m.a]) and offered.holds(b, other.at[m.b]))
    ]
    earlier = campaigns.find(history, a, b) if history else None

    def compare(name: str) -> list[Comparison]:
        those = free if name == METRIC and name not in named else matched.matches
        matches = campaigns.could_have(a, b, those, name)
        family = campaigns.compare_results(a, b, matches, name, margin, earlier)
        return [
            grounded(c, (b, other.at[m.b]), (a, one.at[m.a]))
            for c, m in zip(family, matches, strict=True)
        ]

    shown = {name: compare(name) for name in _metrics([one, other], metrics, gates)}
    told = " ".join(f"{n}: {s.offered or 'no rate.'}" for n, s in ((A, one), (B, other)))
    return Compared(
        f"{b.name} (B) compared with {a.name} (A)",
        {A: a, B: b},
        with_processes(a, shown, compare),
        gates,
        (*matched.notes, *(earlier.notes if earlier else ())),
        differing,
        tuple(metrics),
        told if one.offered != other.offered else one.offered,
        history=earlier,
        forced=force,
    )


def _metrics(sources: Sequence[Source], asked: Sequence[str], gates: Sequence[Gate]) -> list[str]:
    """The metrics to compare, each in all results."""
    named = list(dict.fromkeys((*asked, *(gate.metric for gate in gates))))
    for source in sources:
        there = source.result.metrics
        for name in (name for name in named if name not in there):
            known = ", ".join(metric_order(there)) or "none"
            raise ReportError(
                f"{source.result.path}: no metric {name!r} was measured; there are {known}"
            )
    shown = [
        name
        for name in sources[0].metrics
        if all(name in source.result.metrics for source in sources)
    ]
    names = list(dict.fromkeys((*(asked or shown), *named)))
    for name in names:
        if len(units := {source.result.describe(name).unit for source in sources}) > 1:
            raise ReportError(f"{name} is in {' and in '.join(sorted(units))}: nothing to compare")
    return names
