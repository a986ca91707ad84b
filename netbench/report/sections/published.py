"""What was published of the same experiment, beside today's cells: figures, then ratios."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

from netbench.analysis.comparison import Comparison
from netbench.analysis.published import Beside, Message, Ratio, beside, messages, pairs, ratio_of
from netbench.analysis.shown_levels import shown
from netbench.analysis.words import bounds, percent
from netbench.report.blocks import Block, Column, Prose, Section, Table, Value
from netbench.report.hardware import hardware
from netbench.report.source import Source
from netbench.report.titles import title


def published(source: Source) -> Section | None:
    """None where nothing was published of the campaign, or of none of its cells."""
    blocks: list[Block] = []
    years: dict[str, None] = {}
    for message in messages(source.result.name):
        cells = beside(message, source.result)
        metrics = _metrics(source, message)
        tables = [
            table
            for metric in metrics
            for table in (
                _figures(source, message, cells, metric),
                _ratios(source, message, cells, metric),
            )
            if table is not None
        ]
        if tables:
            years[message.year] = None
            blocks += [Prose(tuple(_about(source, message))), *tables]
    if not blocks:
        return None
    return Section(
        "published", f"The figures of {' and '.join(years)} beside today's", tuple(blocks)
    )


def _metrics(source: Source, message: Message) -> list[str]:
    """Those of the message that were measured: of these what the campaign asks for, if there is
    any.
    """
    asked = source.result.repeat.metrics
    known = [name for name in message.metrics if name in source.result.metrics]
    return [name for name in known if name.partition(".")[0] in asked] or known


def _about(source: Source, message: Message) -> Iterator[str]:
    """Whose figures they are, and what differs."""
    yield f"{message.author}, {message.date}, “{message.subject}” ({message.reference})."
    yield f"Then: {'; '.join(message.setup)}. Today: {hardware(source.result)}."
    yield from message.notes
    if message.said:
        yield f"His words: {' '.join(f'“{words}”' for words in message.said)}"


def _variants(message: Message, cells: Sequence[Beside], metric: str) -> list[str]:
    """The variants that have a value."""
    names = dict.fromkeys((*message.variants, message.year))
    return [name for name in names if any((name, metric) in cell.values for cell in cells)]


def _figures(
    source: Source, message: Message, cells: Sequence[Beside], metric: str
) -> Table | None:
    """The figures as printed, and today's means; None without any."""
    variants = _variants(message, cells, metric)
    mine = [each for each in cells if any((name, metric) in each.values for name in variants)]
    if not mine:
        return None
    several = len(source.result.plan.pairs) > 1
    found = {(cell.cell, cell.pair): cell for cell in source.cells}
    names = _keys([each.levels for each in mine])
    unit = message.metrics[metric]
    columns = (
        *([Column("pair", kind="key")] if several else []),
        *(Column(name, kind="key") for name in names),
        *(Column(_column(message, name), unit) for name in variants),
        Column("today", source.result.describe(metric).unit),
    )
    rows: list[tuple[Value, ...]] = []
    for pair in source.result.plan.pairs:
        for each in mine:
            cell = found[each.cell, pair]
            today = cell.intervals.get(metric, None if cell.n else cell.status)
            rows.append(
                (
                    *([pair] if several else []),
                    *(shown(each.levels.get(name, "")) for name in names),
                    *(each.values.get((name, metric), "") for name in variants),
                    today,
                )
            )
    return Table(title(metric, source.result), columns, tuple(rows))


def _column(message: Message, variant: str) -> str:
    """The name of a variant's column; with the year, where the name is not that already."""
    return variant if variant == message.year else f"{message.year}: {variant}"


def _keys(levels: Sequence[Mapping[str, str]]) -> list[str]:
    """The factors that tell cells apart; of one cell all."""
    names = list(dict.fromkeys(name for each in levels for name in each))
    several = [name for name in names if len({each.get(name) for each in levels}) > 1]
    return several or names


def _ratios(source: Source, message: Message, cells: Sequence[Beside], metric: str) -> Table | None:
    """The ratios of the levels that were compared, then and today; None without any."""
    several = len(source.result.plan.pairs) > 1
    variants = _variants(message, cells, metric)
    found = [
        (ratio, one, base)
        for ratio in message.ratios
        for one, base in pairs(ratio, cells)
        if any(ratio_of(one, base, name, metric) for name in variants)
    ]
    if not found:
        return None

    @cache
    def family(factor: str, baseline: str) -> Sequence[Comparison]:
        return source.compare(factor, baseline, metric)

    others = _others(found)
    columns = (
        *([Column("pair", kind="key")] if several else []),
        Column("change", kind="key"),
        *(Column(name, kind="key") for name in others),
        *(Column(_column(message, name), "%") for name in variants),
        Column("today", "%"),
        Column("interval"),
    )
    rows: list[tuple[Value, ...]] = []
    for pair in source.result.plan.pairs:
        for ratio, one, base in found:
            then = (ratio_of(one, base, name, metric) for name in variants)
            rows.append(
                (
                    *([pair] if several else []),
                    f"{shown(ratio.level)} against {shown(ratio.against)}",
                    *(shown(one.levels.get(name, "")) for name in others),
                    *("" if r is None else _change(r) for r in then),
                    *_today(family, ratio, one, base, pair),
                )
            )
    return Table(f"{title(metric, source.result)}: changes", columns, tuple(rows))


def _others(found: Sequence[tuple[Ratio, Beside, Beside]]) -> list[str]:
    """The factors beside those compared that tell rows apart."""
    names = list(dict.fromkeys(name for _, one, _ in found for name in one.levels))
    told = [
        {name: level for name, level in one.levels.items() if name != ratio.factor}
        for ratio, one, _ in found
    ]
    return [name for name in names if len({each.get(name) for each in told} - {None}) > 1]


def _change(ratio: float) -> str:
    return f"{percent(ratio):+.1f}"


def _today(
    family: Callable[[str, str], Sequence[Comparison]],
    ratio: Ratio,
    one: Beside,
    base: Beside,
    pair: str,
) -> tuple[Value, Value]:
    """Today's change and its interval, as `compare --factor` tells them."""
    level, baseline = one.levels[ratio.factor], base.levels[ratio.factor]
    for c in family(ratio.factor, baseline):
        if (c.level, c.pair) == (level, pair) and _in(c, one):
            if math.isnan(c.ratio):
                return None, c.why
            return _change(c.ratio), c.why or bounds(c.low, c.high)
    return None, None


def _in(c: Comparison, one: Beside) -> bool:
    """Whether a comparison is of the other levels of a cell."""
    return all(one.levels.get(name, "") == level for name, level in c.context.items())
