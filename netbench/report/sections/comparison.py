"""The comparison that the campaign asked for: a table a metric, one row a level and context."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from netbench.read.control import holds
from netbench.read.metrics import describe
from netbench.report.answers import repeats_cpu
from netbench.report.blocks import ROW, Block, Column, Plot, Section, Table, Value
from netbench.report.findings import place_of
from netbench.report.numbers import share
from netbench.report.source import Source
from netbench.report.titles import title
from netbench.stats.comparison import FLAGS, NO_VERDICT, RESULT, Comparison, numbers
from netbench.stats.words import bounds, percent


def comparison(source: Source) -> Section | None:
    """None without `compare`."""
    asked = source.result.compare
    if asked is None:
        return None
    several = len(source.result.plan.pairs) > 1
    wanted = source.result.repeat.metrics
    blocks: list[Block] = []
    for metric, family in source.comparisons.items():
        if repeats_cpu(metric, source.comparisons, wanted, source.offered):
            continue
        what = title(metric, source.result)
        blocks.append(table(what, family, several, source.controls(family)))
        caption = f"{what}: change against {asked.baseline}, with interval"
        blocks.append(Plot("ratios", metric, caption))
    return (
        Section(
            "comparison",
            f"Comparison of {asked.factor} with {asked.baseline}",
            tuple(noted_once(blocks)),
        )
        if blocks
        else None
    )


def noted_once(blocks: Sequence[Block]) -> list[Block]:
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
    first = family[0]
    names = dict.fromkeys(name for c in family for name in c.context)
    words = {name: {c.context.get(name, "") for c in family} for name in names}
    others = [name for name, levels in words.items() if len(levels) > 1]
    common = [f"{name}={level}" for name, (level, *more) in words.items() if level and not more]
    what = f"{what} ({' '.join(common)})" if common else what
    paired, levels = first.against is None, first.factor != RESULT
    keys = [*(["pair"] if several else []), *others, *([first.factor] if levels else [])]
    columns = [
        *(Column(k, kind="key") for k in keys or ["cell"]),
        Column("change", "%"),
        Column("interval"),
        Column("p"),
        Column("n" if paired else f"n {first.baseline}, {first.level}"),
        Column("verdict"),
    ]
    rows = [_row(c, others, several) for c in family]
    rows += [_control_row(c, others, several) for c in controls]
    flagged = frozenset((i, len(columns) - 1) for i, c in enumerate(family) if c.flags)
    notes = [*_notes(family), *(_CONTROL_NOTE for _ in controls[:1]), *_flags(family)]
    places = {(i, ROW): place_of(c, several) for i, c in enumerate((*family, *controls))}
    return Table(
        what, tuple(columns), tuple(rows), tuple(notes), marked_values=flagged, places=places
    )


_CONTROL_NOTE = "control: the baseline a second time, under another name; its ratio is to hold 1."


def _flags(family: Sequence[Comparison]) -> list[str]:
    """What the marks of a family say."""
    flags = dict.fromkeys(flag for c in family for flag in c.flags)
    return [f"† {'; '.join(FLAGS[flag] for flag in flags)}."] if flags else []


def _control_row(c: Comparison, others: Sequence[str], several: bool) -> tuple[Value, ...]:
    """A control as a row of its comparison's table."""
    row = _row(replace(c, level="control", needed=None), others, several)
    verdict = "" if math.isnan(c.low) else "holds 1" if holds(c) else "differs from itself"
    return (*row[:-1], verdict)


def _row(c: Comparison, others: Sequence[str], several: bool) -> tuple[Value, ...]:
    paired, levels = c.against is None, c.factor != RESULT
    keys = (
        ([c.pair] if several else [])
        + [c.context.get(name, "") for name in others]
        + ([c.level] if levels else [])
    )
    change = None if math.isnan(c.ratio) else f"{percent(c.ratio):+.1f}"
    n = c.n if paired else f"{c.against}, {c.n}"
    verdict = f"{c.verdict}, n={numbers(c.needed)}?" if c.needed else c.verdict
    return (
        *(keys or ["the one there is"]),
        change,
        c.why or bounds(c.low, c.high),
        _probability(c.p),
        n,
        verdict,
    )


def _probability(p: float) -> str | None:
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
    many = f", verdicts corrected for {len(family)} comparisons (Holm)" if len(family) > 1 else ""
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
    if any(x.needed for x in family):
        notes.append(
            f"n=N to M?: with N to M {units}s the interval would be as narrow as asked, were the"
            " spread as seen."
        )
    return notes
