"""Where the cycles go: the functions that cost most in each cell, what changed against the
baseline, and both by layer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import mean, stdev

from netbench.base.units import count
from netbench.read.matching import Match
from netbench.read.profiles import (
    MASKED,
    ORDER,
    UNMAPPED,
    CellProfile,
    ProfileDifference,
    difference,
    geometric_mean,
    units,
)
from netbench.report.blocks import Block, Column, Plot, Prose, Section, Table, keyed, tabled
from netbench.report.numbers import share, signed
from netbench.report.source import Source
from netbench.result.profile_files import KERNEL_MARK
from netbench.stats import special
from netbench.stats.intervals import mean_interval
from netbench.stats.words import bounds

TOP = 14
"""Functions in a table of changes, as Morton's mails have them."""
ROWS = 24
"""Functions in the table of all cells."""
MOST = 10**5
"""Of a total in a table: more is told in powers of ten."""
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
    if cells := profiles.cells:
        groups = [
            [cell for cell in cells if (cell.side, cell.unit) == of]
            for of in dict.fromkeys((cell.side, cell.unit) for cell in cells)
        ]
        blocks.append(Prose((_how(cells),)))
        blocks += [_by_layer(source, group) for group in groups]
        if asked := source.result.compare:
            blocks += changes(source, asked.factor, asked.baseline)
        blocks += [_by_function(source, group) for group in groups]
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


Costs = Sequence[Sequence[float]]
"""Of each cell those of its runs."""


def _costs(
    source: Source,
    title: str,
    key: str,
    cells: Sequence[CellProfile],
    rows: Iterable[tuple[str, Costs]],
    *notes: str,
) -> Table:
    """A column a cell with its means, and the totals; cells of one side that count the same."""
    heads = [Column(words) for words in distinct_words(source, cells)]
    totals = [cell.totals for cell in cells]
    most = max(map(mean, totals))
    exponent = next(e for e in range(0, 99, 3) if most < MOST * 10**e)
    confidence = source.result.repeat.confidence

    def told(name: str, costs: Sequence[float]) -> str | None:
        if not costs:
            return None
        interval = mean_interval([cost / 10**exponent for cost in costs], confidence)
        half = f" ±{interval.half_width:.0f}" if name in ORDER and interval.known else ""
        return f"{interval.mean:.0f}{half}"

    side = "" if cells[0].side == SYSTEM else f" on the {cells[0].side}"
    unit = (f"10^{exponent} " if exponent else "") + _unit(cells)
    table = [
        {
            **keyed(key, name),
            **{head: told(name, each) for head, each in zip(heads, costs, strict=True)},
        }
        for name, costs in (*rows, ("total", totals))
    ]
    return tabled(f"{title}{side}, {unit}", table, *notes)


def _by_layer(source: Source, cells: Sequence[CellProfile]) -> Table:
    unmapped = max(mean(c.layers.get(UNMAPPED, [0.0])) / (mean(c.totals) or 1) for c in cells)
    shown = [layer for layer in ORDER if any(any(cell.layers.get(layer, ())) for cell in cells)]
    rows: list[tuple[str, Costs]] = [
        (name, [cell.layers.get(name, [0.0] * len(cell.runs)) for cell in cells]) for name in shown
    ]
    spread = [[stdev(c.totals)] if len(c.totals) > 1 else [] for c in cells]
    masked = (
        f" `{MASKED}`: what ran with interrupts off, which a clock cannot sample."
        if MASKED in shown
        else ""
    )
    note = (
        "By the function that ran; `other`: system calls, files, user code. Of functions that no"
        f" pattern names: {100 * unmapped:.1f}% at most.{masked} {SPREAD} ±:"
        f" {share(source.result.repeat.confidence)} interval over the profile runs."
    )
    return _costs(source, "By layer", "layer", cells, [*rows, ("sd of total", spread)], note)


def _by_function(source: Source, cells: Sequence[CellProfile]) -> Table:
    """The functions that cost most in any of the cells, by their sum over all."""
    means = [{name: mean(v) for name, v in cell.functions.items()} for cell in cells]
    largest: dict[str, float] = {}
    sums = Counter[str]()
    for each in means:
        whole = sum(each.values()) or 1.0
        for name, cost in each.items():
            largest[name] = max(largest.get(name, 0.0), cost / whole)
            sums[name] += cost  # type: ignore[assignment]
    chosen = sorted(largest, key=lambda name: (-largest[name], name))[:ROWS]
    chosen.sort(key=lambda name: (-sums[name], name))
    rows: list[tuple[str, Costs]] = [
        (function_words(name), [[each.get(name, 0.0)] for each in means]) for name in chosen
    ]
    if left := len(largest) - len(chosen):
        rest = [[sum(each.values()) - sum(each.get(n, 0.0) for n in chosen)] for each in means]
        rows.append((f"{left} more functions", rest))
    return _costs(source, "The functions that cost most", "function", cells, rows)


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
    a, b, change_head = (Column(head, f"{change.after.unit}/GiB") for head in (*names, "change"))
    rows = [
        {**keyed("function", name), a: f"{x:.0f}", b: f"{y:.0f}", change_head: told}
        for name, x, y, told in costs
    ]
    return tabled(title, rows, ratio_sentence(change, confidence))


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
    """`3222/2874 = 1.12 by geometric means, 95% interval 8.0 to 16.4% more.` Of single profile runs
    what counting alone leaves open: samples are counts (Poisson), whose logarithm varies by 1/n.
    """
    before, after = (geometric_mean(p.totals) for p in (change.before, change.after))
    several = len(change.before.totals) + len(change.after.totals) > 2
    told = f"{after:.0f}/{before:.0f} = {change.ratio:.2f}{' by geometric means' * several}"
    if not math.isnan(change.low):
        return f"{told}, {share(confidence)} interval {bounds(change.low, change.high)}."
    of, base = (sum(sum(r.stacks.values()) for r in p.runs) for p in (change.after, change.before))
    half = float(special.ndtri((1 + confidence) / 2)) * math.sqrt(1 / max(of, 1) + 1 / max(base, 1))
    least, most = (change.ratio * math.exp(end) for end in (-half, half))
    return (
        f"{told}, of {of} and {base} samples: counting them alone is good for {bounds(least, most)}"
        f" ({share(confidence)}), and how far profile runs differ is not known of one each."
    )


def change_sentence(source: Source, change: ProfileDifference) -> str:
    """The ratio of the totals, and the largest changes whose intervals leave out 0."""
    known = [f for f in change.functions if f.change.low > 0 or f.change.high < 0]
    most = [f"{function_words(f.name)} {signed(f.change)}" for f in known[:NAMED]]
    told = f"; most by {', '.join(most)}" if most else ""
    ratio = ratio_sentence(change, source.result.repeat.confidence).removesuffix(".")
    return f"{change_words(source, change)}: {change.after.unit} per GiB {ratio}{told}."
