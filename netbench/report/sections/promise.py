"""What was promised, and what held: one paragraph, for who knows no statistics."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from netbench.base.units import listed
from netbench.model import Compare
from netbench.read.control import CHANGES
from netbench.report.blocks import Prose, Section
from netbench.report.numbers import count, share
from netbench.report.source import Source
from netbench.report.titles import title
from netbench.stats.comparison import Comparison
from netbench.stats.stopping import reached
from netbench.stats.words import signed

AGAINST = ("unstable", "facts", "failed", "drift", "dependence", "outlier", "boots", "modes")
"""Cautions that say that runs were not alike, or not independent of each other."""


def promise(source: Source) -> Section | None:
    """None where no run is ok."""
    if not len(source.result.ok):
        return None
    compare = source.result.compare if source.comparisons else None
    told = [_promised(source, compare), *_held(source, compare), *_against(source)]
    if compare:
        told.append(_checked(source, compare))
    return Section("promise", "What was promised, and what held", (Prose((" ".join(told),)),))


def _promised(source: Source, compare: Compare | None) -> str:
    repeat = source.result.repeat
    wrong = share(1 - repeat.confidence)
    if compare:
        first = (
            f"where {compare.factor} makes no difference, at most {wrong} of such campaigns call a"
            f" level better or worse than {compare.baseline}, whatever the number of levels (this"
            " is said of each metric by itself)"
        )
    else:
        first = (
            "each mean has a range (±), and at most"
            f" {wrong} of such ranges miss what many more runs would give on average"
        )
    what = "each change" if compare else "each cell"
    if repeat.max <= repeat.min:
        runs = count(repeat.min, "run")
        return f"Promised: {first}; each cell has {runs}, however precise they are."
    return (
        f"Promised: {first}; {what} is known to ±{share(repeat.precision)} in"
        f" {_metrics(source)}, or stopped after {count(repeat.max, 'run')}."
    )


def _metrics(source: Source) -> str:
    names = [name for name in source.result.repeat.metrics if name in source.result.metrics]
    return listed([title(name, source.result) for name in names], 3) or "nothing that was measured"


def _held(source: Source, compare: Compare | None) -> Iterator[str]:
    """How many changes, or cells, are as precise as asked."""
    repeat = source.result.repeat
    families = _asked(source)
    if compare:
        widths = [_width(c) for c in families if not math.isnan(c.low)]
        precise, every, noun = sum(w <= repeat.precision for w in widths), len(families), "change"
    else:
        known = [
            (m, c.intervals[m]) for c in source.cells for m in repeat.metrics if m in c.intervals
        ]
        widths = [i.precision for _, i in known if i.known]
        precise = sum(reached(m, i, repeat) for m, i in known)
        every, noun = len(source.cells) * len(repeat.metrics), "mean"
    if not widths:
        yield f"Held: of {count(every, noun)} none is known to any precision."
        return
    least, most = (f"±{share(width)}" for width in (min(widths), max(widths)))
    if repeat.max <= repeat.min:
        yield f"Held: {count(len(widths), noun)} known to {least} at best and {most} at worst."
    else:
        so = "all" if precise == every else precise or "none"
        asked = share(repeat.precision)
        yield f"Held: {so} of {count(every, noun)} known to ±{asked}, the least precise to {most}."
    if compare:
        verdicts = [c for c in families if c.verdict in CHANGES]
        doubtful = sum(bool(c.flags) for c in verdicts)
        if doubtful:
            yield (
                f"{doubtful} of {count(len(verdicts), 'verdict')} better or worse"
                f" {'is' if doubtful == 1 else 'are'} in doubt, marked †."
            )


def _asked(source: Source) -> list[Comparison]:
    """The comparisons in the metrics of `repeat`."""
    names = [name for name in source.result.repeat.metrics if name in source.comparisons]
    return [c for name in names for c in source.comparisons[name]]


def _width(c: Comparison) -> float:
    """The half-width of a ratio's interval."""
    return math.sqrt(c.high / c.low) - 1 if c.low > 0 else math.inf


def _against(source: Source) -> Iterator[str]:
    kinds = dict.fromkeys(c.kind for c in source.cautions if c.kind in AGAINST)
    if kinds:
        yield (
            "That is for runs that are alike and do not depend on each other; the cautions below"
            f" say otherwise ({', '.join(kinds)})."
        )


def _checked(source: Source, compare: Compare) -> str:
    """What the control says of the promise."""
    controls: Sequence[Comparison] = [
        c
        for name in source.result.repeat.metrics
        for c in source.controls(source.comparisons.get(name, ()))
        if c.low > 0
    ]
    if not controls:
        return (
            "No control checked it: `compare: {control: true}` measures"
            f" {compare.baseline} a second time."
        )
    most = max(controls, key=lambda c: abs(math.log(c.ratio)))
    bounds = f"{signed(most.low)} to {signed(most.high)}%"
    by = f"{signed(most.ratio)}% ({bounds}) in {title(most.metric, source.result)}"
    if any(caution.kind == "control" for caution in source.cautions):
        return (
            f"The control says that it did not hold: {compare.baseline}, measured a second time,"
            f" differs from itself by {by}, more than chance explains. Believe no difference of"
            " that size."
        )
    return (
        f"The control agrees: {compare.baseline}, measured a second time, differs from itself by"
        f" {by}, no more than chance explains."
    )
