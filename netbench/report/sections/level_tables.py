"""The comparisons that a campaign asks for, those of its other factors, and what was promised."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from netbench.model import Compare
from netbench.read.control import holds
from netbench.read.metrics import describe
from netbench.report.blocks import Block, Plot, Prose, Section, Table, Value, keyed, tabled
from netbench.report.numbers import count, share
from netbench.report.phrases import title
from netbench.report.source import Source
from netbench.stats.closing import reached
from netbench.stats.comparison import CHANGES, FLAGS, NO_VERDICT, RESULT, Comparison
from netbench.stats.words import bounds, percent, signed


def comparison(source: Source) -> Section | None:
    """None without `compare`."""
    asked = source.result.compare
    blocks: list[Block] = []
    for metric, family in source.comparisons.items():
        if asked is None or source.repeats_cpu(metric):
            continue
        what = title(metric, source.result)
        blocks.append(table(what, family, source.several, source.controls(family)))
        caption = f"{what}: change against {asked.baseline}, with interval"
        blocks.append(Plot("ratios", metric, caption))
    if asked is None or not blocks:
        return None
    about = f"Comparison of {asked.factor} with {asked.baseline}"
    return Section("comparison", about, tuple(_noted_once(blocks)))


def _noted_once(blocks: Sequence[Block]) -> list[Block]:
    """The blocks; of tables in succession that have the same notes, the last one has them."""
    kept: list[Block] = []
    below: tuple[str, ...] = ()
    for block in reversed(blocks):
        if not isinstance(block, Table):
            kept.append(block)
            continue
        kept.append(replace(block, notes=()) if block.notes == below else block)
        below = block.notes
    return kept[::-1]


def table(
    what: str, family: Sequence[Comparison], several: bool, controls: Sequence[Comparison] = ()
) -> Table:
    """The comparisons of the metric that `what` names, and below them the controls; several: pairs
    of hosts, so that each row says its own. What all rows have in common is in the title.
    """
    names = dict.fromkeys(name for c in family for name in c.context)
    words = {name: {c.context.get(name, "") for c in family} for name in names}
    others = [name for name, levels in words.items() if len(levels) > 1]
    common = [f"{name}={level}" for name, (level, *more) in words.items() if level and not more]
    what = f"{what} ({' '.join(common)})" if common else what
    rows = [_row(c, others, several) for c in family]
    for c in controls:
        verdict = "" if math.isnan(c.low) else "holds 1" if holds(c) else "differs from itself"
        row = _row(replace(c, level="control"), others, several)
        rows.append({**row, "verdict": verdict})
    notes = [*_notes(family), *(_CONTROL_NOTE for _ in controls[:1])]
    if flags := dict.fromkeys(flag for c in family for flag in c.flags):
        notes.append(f"† {'; '.join(FLAGS[flag] for flag in flags)}.")
    marked = [(i, "verdict") for i, c in enumerate(family) if c.flags]
    return tabled(what, rows, *notes, marked_values=marked)


_CONTROL_NOTE = "control: the baseline a second time, under another name; its ratio is to hold 1."


def _row(c: Comparison, others: Sequence[str], several: bool) -> dict[Any, Value]:
    words = {"pair": c.pair} if several else {}
    words |= {name: c.context.get(name, "") for name in others}
    if c.factor != RESULT:
        words[c.factor] = c.level
    words = words or {"cell": "the one there is"}
    paired = c.against is None
    return {
        **keyed([*words], *words.values()),
        "change [%]": None if math.isnan(c.ratio) else f"{percent(c.ratio):+.1f}",
        "interval": c.why or bounds(c.low, c.high),
        "p": probability(c.p),
        "n" if paired else f"n {c.baseline}, {c.level}": c.n if paired else f"{c.against}, {c.n}",
        "verdict": c.verdict,
    }


def probability(p: float) -> str | None:
    """A p value for a table."""
    return None if math.isnan(p) else "<0.0001" if p < 0.0001 else f"{p:.4f}"


def _notes(family: Sequence[Comparison]) -> list[str]:
    c = family[0]
    better = describe(c.metric).better if c.better is None else c.better
    aim = {1: "more is better", -1: "less is better", 0: "neither is better"}[better]
    margin = (
        f"margin {share(c.margin)}"
        if c.margin is not None
        else "no margin, so nothing can be equivalent"
    )
    units = " or ".join(dict.fromkeys(x.unit for x in family if x.n))
    how = f"paired by {units}" if c.against is None else f"of independent {units}s (Welch)"
    earlier = [x.earlier for x in family if x.earlier and not x.lacks_history]
    if earlier:
        many = " to ".join(str(n) for n in dict.fromkeys((min(earlier), max(earlier))))
        how += f" with the spread of {many} earlier results"
    many = f", corrected for {len(family)} comparisons (Holm)" if len(family) > 1 else ""
    own = sorted({x.corrected for x in family if not math.isnan(x.low)})
    if own and own[-1] > max(x.confidence for x in family):
        ends = dict.fromkeys(share(x) for x in (own[0], own[-1]))
        many += f": each by itself at {' to '.join(ends)}"
    notes = [
        f"{aim}; {margin}; {share(max(x.confidence for x in family))} intervals of the ratio,"
        f" {how}{many}; p is uncorrected."
    ]
    notes += [
        f"{x.names[0]}: no verdict, since {x.unsettled}."
        for x in family
        if x.failures and not x.failures.stands
    ]
    whys = dict.fromkeys(x.unsettled for x in family if x.verdict == NO_VERDICT)
    notes += [f"{NO_VERDICT}: {why}." for why in whys]
    return notes


def factors(source: Source) -> Section | None:
    """A table for each other factor and metric that answers; None where nothing else is swept."""
    tables: list[Block] = [
        table(
            f"{factor} against {family[0].baseline}: {title(metric, source.result)}",
            family,
            source.several,
        )
        for factor, families in source.other_answers.items()
        for metric, family in families.items()
    ]
    if not tables:
        return None
    how = "Each factor is a question of its own: its intervals are corrected for its rows alone."
    return Section("factors", "The other factors", (*_noted_once(tables), Prose((how,))))


AGAINST = ("unstable", "facts", "failed", "drift", "dependence", "outlier", "boots")
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
    first = (
        f"each mean has a range (±), and at most {wrong} of such ranges miss what many more runs"
        " would give on average"
    )
    if compare:
        first = (
            f"where {compare.factor} makes no difference, at most {wrong} of such campaigns call a"
            f" level better or worse than {compare.baseline}, whatever the number of levels (this"
            " is said of each metric by itself)"
        )
    return f"Promised: {first}."


def _held(source: Source, compare: Compare | None) -> Iterator[str]:
    """How many changes, or cells, are as precise as asked."""
    repeat = source.result.repeat
    families = _of_repeat(source)
    if compare and repeat.max <= repeat.min:
        families = [c for family in source.answers.values() for c in family]
        widths = [math.sqrt(c.high / c.low) - 1 for c in families if c.low > 0]
        precise, every, noun = 0, len(families), "change"
    elif compare:
        levels = (c for c in source.cells if c.factors.get(compare.factor) != compare.baseline)
        widths = [width for c in levels for width in c.widths.values()]  # as a level closes
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
    verdicts = [c for c in families if c.verdict in CHANGES] if compare else []
    if doubtful := sum(bool(c.flags) for c in verdicts):
        yield (
            f"{doubtful} of {count(len(verdicts), 'verdict')} better or worse"
            f" {'is' if doubtful == 1 else 'are'} in doubt, marked †."
        )


def _of_repeat(source: Source) -> list[Comparison]:
    """The comparisons in the metrics of `repeat`."""
    names = [name for name in source.result.repeat.metrics if name in source.comparisons]
    return [c for name in names for c in source.comparisons[name]]


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
    differs = any(caution.kind == "control" for caution in source.cautions)
    how = "more than chance explains" if differs else "no more than chance explains"
    return (
        f"The control {'says that it did not hold' if differs else 'agrees'}: {compare.baseline},"
        f" measured a second time, differs from itself by {by}, {how}."
    )
