"""Where the cycles go: the functions that cost most in each cell, what changed against the
baseline, and both by layer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from netbench.analysis.intervals import Interval, mean_interval
from netbench.analysis.layers import ORDER, UNMAPPED, layer_of
from netbench.analysis.matching import Match
from netbench.analysis.profile_difference import ProfileDifference, difference
from netbench.analysis.profiles import CellProfile, units
from netbench.analysis.words import bounds
from netbench.profile_files import KERNEL_MARK
from netbench.report.blocks import Block, Column, Plot, Prose, Section, Table, Value
from netbench.report.flame_graphs import cell_words, flame_graphs
from netbench.report.numbers import share
from netbench.report.source import Source
from netbench.units import count

TOP = 14
"""Functions in a table, as Morton's mails have them."""
COLUMNS = 4
"""Cells that have a column each."""


def profile(source: Source) -> Section | None:
    """None where the campaign profiled nothing."""
    profiles = source.profiles
    if not profiles.found:
        return None
    blocks: list[Block] = [*_faults(source)]
    cells = profiles.cells
    if cells:
        blocks.append(Prose((_how(cells),)))
        blocks.append(_layers(source, cells))
        blocks.append(Plot("layers", "profile", f"{_unit(cells)} by layer"))
        if asked := source.result.compare:
            blocks += changes(source, asked.factor, asked.baseline)
        blocks += [_top(source, cell) for cell in cells]
        blocks += _graphs(source)
    return Section("profile", "Where the cycles go", tuple(blocks))


def _faults(source: Source) -> Iterator[Block]:
    profiles = source.profiles
    lines = [*profiles.faults]
    for reason, number in profiles.failed.items():
        lines.append(f"{count(number, 'profile run')} gave none: {reason}")
    if lines:
        yield Prose(tuple(lines), bullets=True)


def _unit(cells: Sequence[CellProfile]) -> str:
    return f"{units(cells)} per GiB"


def _how(cells: Sequence[CellProfile]) -> str:
    """How was sampled: one paragraph."""
    runs = [run for cell in cells for run in cell.runs]
    profiles = [run.profile for run in runs]
    frequencies = "/".join(str(f) for f in sorted({p.frequency for p in profiles}))
    samples, lost = sum(p.samples for p in profiles), sum(p.lost for p in profiles)
    clock = any(p.event == "cpu-clock" for p in profiles)
    ticks = (
        "This machine counts no cycles, so a tick of each CPU's clock is the sample: code that runs"
        " with interrupts off is charged to where they are switched on again. "
        if clock
        else ""
    )
    hidden = (
        " Functions of the kernel are hidden (kernel.kptr_restrict)."
        if any(not p.kernel_symbols for p in profiles)
        else ""
    )
    return (
        f"{count(len(runs), 'profile')} at {frequencies} Hz of each CPU, outside of the measured"
        f" runs: {count(samples, 'sample')}, {lost} lost. {ticks}Costs are {_unit(cells)} that the"
        " receiver got, of the transfer's processes, the kernel's threads and softirq work"
        f" anywhere. Left out: idle time ({_share([r.idle for r in runs])} of what was sampled) and"
        f" other programs ({_share([r.others for r in runs])}).{hidden}"
    )


def _share(shares: Sequence[float]) -> str:
    return f"{100 * sum(shares) / len(shares):.1f}%"


def _layers(source: Source, cells: Sequence[CellProfile]) -> Table:
    """A column a cell where these are few, else a row a cell."""
    confidence = source.result.repeat.confidence
    shown = [layer for layer in ORDER if any(cell.layers.get(layer) for cell in cells)]
    heads = [cell_words(source, cell) for cell in cells]
    columns: list[list[Value]] = [
        [
            *(_whole(cell.layers.get(layer, 0.0)) for layer in shown),
            mean_interval(cell.totals, confidence),
        ]
        for cell in cells
    ]
    unmapped = max(
        cell.layers.get(UNMAPPED, 0.0) / (sum(cell.totals) / len(cell.runs) or 1) for cell in cells
    )
    notes = (
        "By the function that ran; `other`: system calls, files, user code. Of functions that no"
        f" pattern names: {100 * unmapped:.1f}% at most.",
    )
    title, names = f"By layer, {_unit(cells)}", [*shown, "total"]
    if len(cells) <= COLUMNS:
        turned = tuple((name, *row) for name, *row in zip(names, *columns, strict=True))
        key = Column("layer", kind="key")
        return Table(title, (key, *(Column(head) for head in heads)), turned, notes)
    rows = tuple((head, *values) for head, values in zip(heads, columns, strict=True))
    key = Column("cell", kind="key")
    return Table(title, (key, *(Column(name) for name in names)), rows, notes)


def _whole(value: float) -> Value:
    """A mean without interval: digits beyond these would say nothing."""
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def _top(source: Source, cell: CellProfile) -> Table:
    total = sum(cell.totals) / len(cell.totals) or 1.0
    means = {name: sum(v) / len(v) for name, v in cell.functions.items()}
    names = sorted(means, key=lambda name: (-means[name], name))[:TOP]
    confidence = source.result.repeat.confidence
    rows: list[tuple[Value, ...]] = [
        (
            short(name),
            layer_of(name),
            mean_interval(cell.functions[name], confidence),
            f"{100 * means[name] / total:.1f}",
        )
        for name in names
    ]
    rows.append(("total", "", mean_interval(cell.totals, confidence), "100.0"))
    columns = (
        Column("function", kind="key"),
        Column("layer", kind="key"),
        Column(f"{cell.unit} per GiB"),
        Column("share", "%"),
    )
    left = len(means) - len(names)
    notes = (f"and {left} more functions",) if left > 0 else ()
    return Table(
        f"The functions that cost most: {cell_words(source, cell)}", columns, tuple(rows), notes
    )


def short(frame: str) -> str:
    """A frame for a table: a function of the kernel is the usual one, user code says so."""
    if frame.endswith(KERNEL_MARK):
        return frame.removesuffix(KERNEL_MARK)
    return f"{frame} (user)"


def changes(source: Source, factor: str, baseline: str) -> Iterator[Table]:
    """A table for each level of a factor in each context: what changed against the baseline."""
    for change in source.profile_changes(factor, baseline):
        after, before = cell_words(source, change.after), cell_words(source, change.before)
        levels = change.before.factors[factor], change.after.factors[factor]
        title = f"{after} against {before}"
        yield difference_table(change, title, levels, source.result.repeat.confidence)


def changes_of_results(a: Source, b: Source, matches: Sequence[Match]) -> Iterator[Table]:
    """A table for each cell that was profiled in two results: what changed from A to B."""
    confidence = max(source.result.repeat.confidence for source in (a, b))
    for match in matches:
        for after in b.profiles.cells:
            for before in a.profiles.cells:
                same = (before.side, before.unit) == (after.side, after.unit)
                places = (before.cell, before.pair), (after.cell, after.pair)
                if same and places == (match.a, match.b):
                    title = f"{cell_words(b, after)}: B against A"
                    change = difference(before, after, confidence)
                    yield difference_table(change, title, ("A", "B"), confidence)


def difference_table(
    change: ProfileDifference, title: str, names: tuple[str, str], confidence: float
) -> Table:
    """Which functions grew or shrank from one profile to another, and the ratio of the totals.
    `names` of the two, the one that the other is compared with first.
    """
    unit = f"{change.after.unit}/GiB"
    rows: list[tuple[Value, ...]] = [
        (short(one.name), _whole(one.before), _whole(one.after), _signed(one.change))
        for one in change.functions[:TOP]
    ]
    before, after = (sum(p.totals) / len(p.totals) for p in (change.before, change.after))
    rows.append(("total", _whole(before), _whole(after), f"{after - before:+.0f}"))
    columns = (
        Column("function", kind="key"),
        Column(names[0], unit),
        Column(names[1], unit),
        Column("change", unit),
    )
    return Table(
        title,
        columns,
        tuple(rows),
        (ratio_sentence(change, before, after, confidence),),
    )


def ratio_sentence(
    change: ProfileDifference, before: float, after: float, confidence: float
) -> str:
    """`3222/2874 = 1.12: 12.1% more, 95% interval 8.0 to 16.4% more`."""
    told = f"{after:.0f}/{before:.0f} = {change.ratio:.2f}"
    if math.isnan(change.low):
        return f"{told}; one profile run a cell tells no interval."
    return f"{told}, {share(confidence)} interval {bounds(change.low, change.high)}."


def _signed(change: Interval) -> str:
    if not change.known:
        return f"{change.mean:+.0f}"
    return f"{change.mean:+.0f} ±{change.half_width:.0f}"


def _graphs(source: Source) -> Iterator[Block]:
    """Links to drawings beside the HTML report."""
    for graph in flame_graphs(source):
        yield Plot("flame", graph.file, graph.title)
