"""Where the cycles go: the functions that cost most in each cell, what changed against the
baseline, and both by layer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from netbench.base.units import count
from netbench.read.layers import MASKED, ORDER, UNMAPPED
from netbench.read.matching import Match
from netbench.read.profile_difference import ProfileDifference, difference, geometric_mean
from netbench.read.profiles import CellProfile, common_names, units
from netbench.report.blocks import Block, Column, Plot, Prose, Section, Table, Value, keys
from netbench.report.numbers import share, signed
from netbench.report.source import Source
from netbench.result.profile_files import KERNEL_MARK
from netbench.stats.intervals import mean_interval
from netbench.stats.words import bounds

TOP = 14
"""Functions in a table of changes, as Morton's mails have them."""
ROWS = 24
"""Functions in the table of all cells."""
COLUMNS, WITH_INTERVALS, NAME, HEADS = 8, 4, 30, 48
"""Cells that have a column in one table, and where each has an interval; characters of a function's
name, and of all columns: what 80 characters hold.
"""
WIDE, MOST = 10**4, 10**5
"""Of a total in a table: from where on a column less fits, and more is told in powers of ten."""
SPREAD = "sd: the standard deviation of the profile runs of a cell."


def profile(source: Source) -> Section | None:
    """None where the campaign profiled nothing."""
    profiles = source.profiles
    if not profiles.found:
        return None
    faults = [
        *profiles.faults,
        *(f"{count(n, 'profile run')} gave none: {why}" for why, n in profiles.failed.items()),
    ]
    blocks: list[Block] = [Prose(tuple(faults), bullets=True)] if faults else []
    cells = profiles.cells
    if cells:
        blocks.append(Prose((_how(cells),)))
        heads = distinct_words(source, cells)
        numbered = sum(max(map(len, head.split())) + 2 for head in heads) > HEADS
        if numbered:
            blocks.append(Prose(tuple(f"{n}: {head}" for n, head in enumerate(heads, 1)), True))
            heads = [str(n) for n in range(1, len(heads) + 1)]
        tables = list(_columns(cells, heads))
        several = any(len(cell.runs) > 1 for cell in cells)
        layers = _columns(cells, heads, WITH_INTERVALS if several else COLUMNS)
        confidence = source.result.repeat.confidence
        blocks += [_by_layer(columns, confidence) for columns in layers]
        blocks.append(Plot("layers", "profile", f"{_unit(cells)} by layer"))
        if asked := source.result.compare:
            blocks += changes(source, asked.factor, asked.baseline)
        blocks += [_by_function(columns) for columns in tables]
        stacks = "The stacks, for https://www.speedscope.app (read in your browser)"
        blocks.append(Plot("flame", "", stacks))  # a link to the file beside the HTML report
    return Section("profile", "Where the cycles go", tuple(blocks))


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


@dataclass(frozen=True)
class Columns:
    """Cells that have a column each in one table: they count the same, and are as many as fit."""

    cells: Sequence[CellProfile]
    heads: Sequence[str]

    @property
    def exponent(self) -> int:
        """Costs are told in 10^exponent: cycles are many."""
        most = max((mean(cell.totals) for cell in self.cells), default=0.0)
        return next(e for e in range(0, 99, 3) if most < MOST * 10**e)

    @property
    def unit(self) -> str:
        scale = f"10^{self.exponent} " if self.exponent else ""
        return f"{scale}{_unit(self.cells)}"

    def row(self, name: str, costs: Iterable[float | None]) -> tuple[Value, ...]:
        """A row of the table: a cost of each cell."""
        told = (None if c is None else f"{c / 10**self.exponent:.0f}" for c in costs)
        return name, *told

    def table(self, title: str, key: str, rows: Iterable[tuple[Value, ...]], *notes: str) -> Table:
        """The rows, and the totals."""
        columns = (Column(key, kind="key"), *(Column(head) for head in self.heads))
        total = self.row("total", (mean(cell.totals) for cell in self.cells))
        side = self.cells[0].side
        whose = "" if side == "system" else f" on the {side}"
        return Table(f"{title}{whose}, {self.unit}", columns, (*rows, total), notes)


def _columns(
    cells: Sequence[CellProfile], heads: Sequence[str], most: int = COLUMNS
) -> Iterator[Columns]:
    """Sides and units apart, at most so many cells in each."""
    headed = list(zip(cells, heads, strict=True))
    for side, unit in dict.fromkeys((cell.side, cell.unit) for cell in cells):
        mine = [one for one in headed if (one[0].side, one[0].unit) == (side, unit)]
        fitting = most if max(mean(cell.totals) for cell, _ in mine) < WIDE else most - 1
        for at in range(0, len(mine), fitting):
            some = mine[at : at + fitting]
            yield Columns([cell for cell, _ in some], [head for _, head in some])


def _by_layer(columns: Columns, confidence: float) -> Table:
    cells, scale = columns.cells, 10**columns.exponent
    unmapped = max(mean(c.layers.get(UNMAPPED, [0.0])) / (mean(c.totals) or 1) for c in cells)
    shown = [layer for layer in ORDER if any(any(cell.layers.get(layer, ())) for cell in cells)]
    rows: list[tuple[Value, ...]] = []
    for name in shown:
        costs = [c.layers.get(name, [0.0] * len(c.runs)) for c in cells]
        rows.append((name, *(_with_interval(each, scale, confidence) for each in costs)))
    spread = (stdev(c.totals) if len(c.totals) > 1 else None for c in cells)
    rows.append(columns.row("sd of total", spread))
    masked = (
        f" `{MASKED}`: what ran with interrupts off, which a clock cannot sample."
        if MASKED in shown
        else ""
    )
    return columns.table(
        "By layer",
        "layer",
        rows,
        "By the function that ran; `other`: system calls, files, user code. Of functions that no"
        f" pattern names: {100 * unmapped:.1f}% at most.{masked} {SPREAD} ±: {share(confidence)}"
        " interval over the profile runs.",
    )


def _with_interval(costs: Sequence[float], scale: int, confidence: float) -> str:
    """The mean of a cell's runs, with its interval where there are several."""
    interval = mean_interval([cost / scale for cost in costs], confidence)
    half = f" ±{interval.half_width:.0f}" if interval.known else ""
    return f"{interval.mean:.0f}{half}"


def _by_function(columns: Columns) -> Table:
    """The functions that cost most in any of the cells, by their sum over all."""
    names = common_names(columns.cells)
    means = [{names[n]: mean(v) for n, v in cell.functions.items()} for cell in columns.cells]
    largest: dict[str, float] = {}
    sums: dict[str, float] = {}
    for each in means:
        whole = sum(each.values()) or 1.0
        for name, cost in each.items():
            largest[name] = max(largest.get(name, 0.0), cost / whole)
            sums[name] = sums.get(name, 0.0) + cost
    chosen = sorted(largest, key=lambda name: (-largest[name], name))[:ROWS]
    chosen.sort(key=lambda name: (-sums[name], name))
    rows = [
        columns.row(_clipped(function_words(name)), (each.get(name, 0.0) for each in means))
        for name in chosen
    ]
    if left := len(largest) - len(chosen):
        rest = (sum(each.values()) - sum(each.get(n, 0.0) for n in chosen) for each in means)
        rows.append(columns.row(f"{left} more functions", rest))
    return columns.table("The functions that cost most", "function", rows)


def _clipped(name: str) -> str:
    return name if len(name) <= NAME else f"{name[: NAME - 1]}…"


def changes(source: Source, factor: str, baseline: str) -> Iterator[Table]:
    """A table for each level of a factor in each context: what changed against the baseline."""
    for change in source.profile_changes(factor, baseline):
        levels = change.before.factors[factor], change.after.factors[factor]
        title = change_words(source, change)
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
    before, after = (mean(profile.totals) for profile in (change.before, change.after))
    costs = [
        (function_words(one.name), one.before, one.after, signed(one.change))
        for one in change.functions[:TOP]
    ]
    costs.append(("total", before, after, f"{after - before:+.0f}"))
    unit = f"{change.after.unit}/GiB"
    columns = (*keys("function"), *(Column(name, unit) for name in (*names, "change")))
    rows = tuple((name, f"{a:.0f}", f"{b:.0f}", told) for name, a, b, told in costs)
    return Table(title, columns, rows, (ratio_sentence(change, confidence),))


SYSTEM = "system"
NAMED = 3
"""Functions that a sentence names."""


def cell_words(source: Source, cell: CellProfile) -> str:
    """A profile's cell in words: `send=sendfile pin=apart`, with the side where both have one."""
    return _with_side(_words(cell, source.keys), cell)


def distinct_words(source: Source, cells: Sequence[CellProfile]) -> list[str]:
    """Cells in words, without what all have in common; with all of it where nothing is left."""
    keys = [name for name in source.keys if len({_words(cell, [name]) for cell in cells}) > 1]
    words = [_with_side(_words(cell, keys), cell) for cell in cells]
    return words if all(words) else [cell_words(source, cell) for cell in cells]


def distinct_levels(source: Source, cells: Sequence[CellProfile]) -> list[str]:
    """The same as short as a drawing needs it: `sendfile · on`, numbered as in tables of many."""
    words = distinct_words(source, cells)
    return [
        f"{n}  {' · '.join(part.partition('=')[2] or part for part in each.split())}"
        for n, each in enumerate(words, 1)
    ]


def change_words(source: Source, change: ProfileDifference) -> str:
    """`send=sendfile against send=readwrite (pin=apart, sender)`."""
    after, before, swept = change.after, change.before, source.result.swept
    keys = [name for name in source.keys if name == "pair" or name in swept]
    same = [name for name in keys if _words(after, [name]) == _words(before, [name])]
    named = [name for name in keys if name not in same]
    where = [_words(after, same), after.side if after.side != SYSTEM else ""]
    context = ", ".join(filter(None, where))
    told = f"{_words(after, named)} against {_words(before, named)}"
    return f"{told} ({context})" if context else told


def _words(cell: CellProfile, keys: Sequence[str]) -> str:
    words = {"pair": cell.pair, "cell": cell.cell, **cell.factors}
    parts = (
        words[name] if name in ("pair", "cell") else f"{name}={words[name]}"
        for name in keys
        if words.get(name)
    )
    return " ".join(parts)


def _with_side(words: str, cell: CellProfile) -> str:
    return words if cell.side == SYSTEM else f"{words} ({cell.side})".lstrip()


def function_words(frame: str) -> str:
    """A frame for a table: a function of the kernel is the usual one, user code says so."""
    if frame.endswith(KERNEL_MARK):
        return frame.removesuffix(KERNEL_MARK)
    return f"{frame} (user)"


def ratio_sentence(change: ProfileDifference, confidence: float) -> str:
    """`3222/2874 = 1.12 by geometric means, 95% interval 8.0 to 16.4% more.`"""
    before, after = (geometric_mean(p.totals) for p in (change.before, change.after))
    several = len(change.before.totals) + len(change.after.totals) > 2
    told = f"{after:.0f}/{before:.0f} = {change.ratio:.2f}{' by geometric means' * several}"
    if math.isnan(change.low):
        return f"{told}; one profile run a cell tells no interval."
    return f"{told}, {share(confidence)} interval {bounds(change.low, change.high)}."


def change_sentence(source: Source, change: ProfileDifference) -> str:
    """The ratio of the totals, and the largest changes whose intervals leave out 0."""
    known = [f for f in change.functions if f.change.low > 0 or f.change.high < 0]
    most = [f"{function_words(f.name)} {signed(f.change)}" for f in known[:NAMED]]
    told = f"; most by {', '.join(most)}" if most else ""
    ratio = ratio_sentence(change, source.result.repeat.confidence).removesuffix(".")
    return f"{change_words(source, change)}: {change.after.unit} per GiB {ratio}{told}."
