"""The comparison that the campaign asked for: a table a metric, one row a level and context."""

from __future__ import annotations

import math
from collections.abc import Sequence

from netbench.analysis.compare import Comparison
from netbench.analysis.metrics import describe
from netbench.analysis.words import bounds, percent
from netbench.report.blocks import Block, Column, Plot, Section, Table, Value
from netbench.report.numbers import share
from netbench.report.source import Source


def comparison(source: Source) -> Section | None:
    """None without `compare`."""
    asked = source.loaded.compare
    if asked is None:
        return None
    blocks: list[Block] = []
    for metric, family in source.comparisons.items():
        if family:
            blocks.append(table(source, metric, family))
            blocks.append(Plot("ratios", metric, f"{describe(metric).title}: change against {asked.baseline}, with interval"))
    return Section("comparison", f"Comparison of {asked.factor} with {asked.baseline}", tuple(blocks)) if blocks else None


def table(source: Source, metric: str, family: Sequence[Comparison]) -> Table:
    """One metric's comparisons."""
    several = len(source.loaded.plan["pairs"]) > 1
    others = list(family[0].context)
    keys = [*(["pair"] if several else []), *others, family[0].factor]
    columns = [
        *(Column(k, kind="key") for k in keys),
        Column("change", "%"),
        Column("interval"),
        Column("p"),
        Column("n"),
        Column("verdict"),
    ]
    rows = tuple(_row(c, several) for c in family)
    return Table(describe(metric).title, tuple(columns), rows, tuple(_notes(family, source)))


def _row(c: Comparison, several: bool) -> tuple[Value, ...]:
    pair = (c.pair,) if several else ()
    change = None if math.isnan(c.ratio) else f"{percent(c.ratio):+.1f}"
    interval = c.why or bounds(c.low, c.high)
    p = None if math.isnan(c.p) else "<0.0001" if c.p < 0.0001 else f"{c.p:.4f}"
    verdict = f"{c.verdict}, n={c.needed}?" if c.needed else c.verdict
    return (*pair, *c.context.values(), c.level, change, interval, p, c.n, verdict)


def _notes(family: Sequence[Comparison], source: Source) -> list[str]:
    c = family[0]
    aim = {1: "more is better", -1: "less is better", 0: "neither is better"}[describe(c.metric).better]
    margin = f"margin {share(c.margin)}" if c.margin is not None else "no margin, so nothing can be equivalent"
    notes = [
        f"{aim}; {margin}; {share(source.loaded.repeat.confidence)} intervals of the ratio, paired by {c.unit}, corrected for "
        f"{len(family)} comparisons (Holm); p is uncorrected."
    ]
    if any(x.needed for x in family):
        notes.append(f"n=N?: about N {c.unit}s would settle it, were mean and spread as seen.")
    return notes
