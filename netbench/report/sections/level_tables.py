"""The comparisons that a campaign asks for, and those of its other factors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from netbench.read.control import holds
from netbench.read.metrics import describe
from netbench.report.blocks import Block, Plot, Prose, Section, Table, Value, keyed, tabled
from netbench.report.numbers import share
from netbench.report.phrases import title
from netbench.report.source import Source
from netbench.stats.comparison import FLAGS, NO_VERDICT, RESULT, Comparison
from netbench.stats.words import bounds, percent


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
    shown: list[Block] = []
    below: tuple[str, ...] = ()
    for block in reversed(blocks):
        if not isinstance(block, Table):
            shown.append(block)
            continue
        shown.append(block._replace(notes=()) if block.notes == below else block)
        below = block.notes
    return shown[::-1]


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
    paired = f"paired by {units}" if units else "of no paired runs"
    how = paired if c.against is None else f"of independent {units}s (Welch)"
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
    whys = dict.fromkeys(x.unsettled for x in family if x.refused)
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
