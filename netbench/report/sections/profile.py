"""Where the cycles go: what changed by layer and function, and what costs most in a cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean

from netbench.base.units import count
from netbench.read.profiles import ORDER, CellProfile, ProfileDifference
from netbench.report.blocks import Block, Column, Plot, Prose, Section, Table, keyed, tabled
from netbench.report.numbers import signed
from netbench.report.source import Source
from netbench.result.profile_files import KERNEL_MARK
from netbench.stats.intervals import mean_interval

TOP = 10
"""Functions of a table."""
NAMED = 3
"""Functions that a sentence names."""
SYSTEM = "system"


def profile(source: Source) -> Section | None:
    """None where the campaign profiled nothing."""
    cells, faults = source.profiles.cells, tuple(source.profiles.faults)
    asked = source.result.compare
    blocks: list[Block] = [Prose(faults, bullets=True)] if faults else []
    if cells:
        blocks.append(Prose((_how(cells),)))
        blocks += changes(source, asked.factor, asked.baseline) if asked else ()
        blocks += (_costs(source, cell) for cell in cells)
        stacks = "The stacks, for https://www.speedscope.app (read in your browser)"
        blocks.append(Plot("flame", "", stacks))  # a link to the file beside the HTML report
    return Section("profile", "Where the cycles go", tuple(blocks)) if blocks else None


def _how(cells: Sequence[CellProfile]) -> str:
    """How was sampled: one paragraph."""
    runs = [run for cell in cells for run in cell.runs]
    profiles = [run.profile for run in runs]
    frequencies = "/".join(str(f) for f in sorted({p.frequency for p in profiles}))
    samples, lost = sum(p.samples for p in profiles), sum(p.lost for p in profiles)
    idle, others = mean(run.idle for run in runs), mean(run.others for run in runs)
    ticks = (
        " This machine counts no cycles, so a tick of each CPU's clock is the sample: code that"
        " runs with interrupts off is charged to where they are switched on again."
    )
    hidden = (
        " Functions of the kernel are hidden (kernel.kptr_restrict, or CAP_SYSLOG lacks): idle"
        " time, the kernel's threads and softirq work elsewhere count as of other programs."
    )
    return (
        f"{count(len(runs), 'profile')} at {frequencies} Hz of each CPU, outside of the measured"
        f" runs: {count(samples, 'sample')}, {lost} lost."
        f"{ticks * any(p.event == 'cpu-clock' for p in profiles)} Costs are per GiB that the"
        " receiver got, of the transfer's processes, the kernel's threads and softirq work"
        f" anywhere. Left out: idle time ({idle:.1%} of what was sampled) and other programs"
        f" ({others:.1%}). ± is over profile runs, and of single ones what counting samples leaves"
        f" open.{hidden * (not all(p.kernel_symbols for p in profiles))}"
    )


def _costs(source: Source, cell: CellProfile) -> Table:
    """The layers of a cell, and the functions that cost most in it."""
    costly = sorted(cell.functions, key=lambda name: (-mean(cell.functions[name]), name))[:TOP]
    cost_rows: list[tuple[str, str, Sequence[float]]] = [
        *((layer, "", costs) for layer, costs in cell.layers.items()),
        *((cell.layer_of(each), function_words(each), cell.functions[each]) for each in costly),
        ("total", "", cell.totals),
    ]
    cost, confidence = Column("cost", f"{cell.unit}/GiB"), source.result.repeat.confidence
    rows = [
        {
            **keyed("layer function", layer, function),
            cost: signed(mean_interval(costs, confidence)).removeprefix("+"),
        }
        for layer, function, costs in cost_rows
    ]
    return tabled(cell_words(source, cell), rows)


def changes(source: Source, factor: str, baseline: str) -> Iterator[Table]:
    """The tables of each level of a factor in each context: what changed against the baseline."""
    for change in source.profile_changes(factor, baseline):
        levels = change.before.factors[factor], change.after.factors[factor]
        yield from _tables(change, change_words(source, change), levels)


def _tables(change: ProfileDifference, title: str, names: tuple[str, str]) -> Iterator[Table]:
    """Which layers and functions grew or shrank from one profile to another. `names` of the two,
    the one that the other is compared with first.
    """
    a, b, by = (Column(head, f"{change.after.unit}/GiB") for head in (*names, "change"))
    for what, parts in (("layer", change.layers), ("function", change.functions[:TOP])):
        rows = [
            {
                **keyed(what, function_words(each.name)),
                a: f"{each.before:.0f}",
                b: f"{each.after:.0f}",
                by: signed(each.change),
            }
            for each in (*parts, change.total)
        ]
        yield tabled(f"{title}, by {what}", rows)


def cell_words(source: Source, cell: CellProfile) -> str:
    """A profile's cell in words: `send=sendfile pin=apart`, with the side where both have one."""
    known = {"pair": cell.pair, "cell": cell.cell}
    words = [
        known.get(name) or f"{name}={cell.factors[name]}"
        for name in source.keys
        if name in known or cell.factors.get(name)
    ]
    return " ".join(words + [f"({cell.side})"] * (cell.side != SYSTEM))


def change_words(source: Source, change: ProfileDifference) -> str:
    """`send=sendfile pin=apart against send=readwrite`."""
    before, after = change.before.factors, change.after.factors
    apart = [name for name in source.result.swept if before.get(name) != after.get(name)]
    baseline = " ".join(f"{name}={before[name]}" for name in apart)
    return f"{cell_words(source, change.after)} against {baseline}"


def function_words(frame: str) -> str:
    """A frame for a table: a function of the kernel is the usual one, user code says so."""
    if frame.endswith(KERNEL_MARK) or frame in (*ORDER, "total"):
        return frame.removesuffix(KERNEL_MARK)
    return f"{frame} (user)"


def change_sentence(source: Source, change: ProfileDifference) -> str:
    """The totals as kernel developers print them, `3222/2874 = 1.12`, and the largest changes whose
    intervals leave out 0.
    """
    total, unit = change.total, change.after.unit
    ratio = f" = {total.after / total.before:.2f}" if total.before else ""
    known = [
        f for f in change.functions if f.change.n > 1 and abs(f.change.mean) > f.change.half_width
    ]
    most = [f"{function_words(f.name)} {signed(f.change)}" for f in known[:NAMED]]
    return (
        f"{change_words(source, change)}: {total.after:.0f}/{total.before:.0f}{ratio} {unit} per"
        f" GiB, {signed(total.change)}{'; most by ' * bool(most)}{', '.join(most)}."
    )
