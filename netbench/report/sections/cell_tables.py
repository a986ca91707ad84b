"""The tables of cells: one row each, and methods against each other."""

from __future__ import annotations

from collections.abc import Collection

from netbench.base.errors import StoreError
from netbench.read.cells import CellResult
from netbench.read.load_curves import KNEE
from netbench.read.pivot import Pivot, pivots
from netbench.report.blocks import Block, Column, Plot, Prose, Section, Table, Value, keyed, tabled
from netbench.report.numbers import count, share
from netbench.report.phrases import title
from netbench.report.source import Source
from netbench.stats.by_boot import BOOTED


def cells(source: Source) -> Section:
    """One row a cell and pair."""
    shown = dict.fromkeys((*source.metrics, *source.answers))
    described = [source.result.describe(name) for name in shown]
    mixed = len({c.unit for c in source.cells if c.n}) > 1
    rows = [
        {
            **source.keyed(c),
            **{f"{m.title} [{m.unit}]": c.intervals.get(m.name) for m in described},
            "n": _units(c, mixed),
            "status": c.status,
            **({"mean": c.mean} if source.result.compare else {}),
        }
        for c in source.cells
    ]
    marked = [i for i, c in enumerate(source.cells) if c.marked]
    blocks: list[Block] = [tabled("", rows, *_notes(source, bool(marked)), marked=marked)]
    if source.load_curves:
        what = "Latency by the load that is offered: p50 (dashed) and p99, means over runs"
        blocks.append(Plot("load", "p99", f"{what}, intervals as bands; ring: the knee, {KNEE}"))
    if "p50" in source.result.metrics and any("p90" in c.intervals for c in source.cells):
        curves = "Latency by the share of requests: means over runs, intervals as bands"
        blocks.append(Plot("quantiles", "p50", curves))
    try:
        if source.by_second:
            what = "p99 of what was answered in each second of the window: means over runs"
            blocks.append(Plot("seconds", "p99", f"{what}, intervals as bands"))
    except StoreError as error:  # samples are not needed for what else is told
        blocks.append(Prose((f"No p99 of each second: {error}.",)))
    drawn = [source.result.describe(name) for name in _telling(source, source.result.units)]
    for metric in drawn:
        caption = f"{metric.title}: every run (dots), mean and interval"
        blocks.append(Plot("means", metric.name, caption))
    parted = "; dotted lines part boots" if len(source.result.kernels) > 1 else ""
    for metric in drawn[:1]:
        what = "runs in order of execution, against their cell's mean"
        blocks.append(Plot("order", metric.name, f"{metric.title}: {what}{parted}"))
    return Section("cells", "Cells", tuple(blocks))


def _telling(source: Source, more: Collection[str] = ()) -> list[str]:
    """Throughput, demand, and what was asked for: CPU busy says little where throughput differs."""
    asked = (*source.result.repeat.metrics, *more)
    return [name for name in source.metrics if name in asked or not name.endswith("_cpu")]


def _units(c: CellResult, mixed: bool) -> Value:
    """How many runs, boots or builds an interval is over; mixed: cells differ, so it is said."""
    n = next(iter(c.intervals.values())).n if c.unit in BOOTED and c.intervals else c.n
    return count(n, c.unit) if mixed else n


def _notes(source: Source, marked: bool) -> list[str]:
    units = sorted({c.unit for c in source.cells if c.n} or {"run"})
    interval = share(source.result.repeat.confidence)
    notes = [
        f"± is the half-width of the {interval} interval of the mean; n counts"
        f" {'s or '.join(units)}s that are ok."
    ]
    meters = _meters(source)
    if meters:
        asks = any("request_demand" in metric for metric in source.metrics)
        each = "a request" if asks else "1024 bytes of payload"
        notes.append(f"{meters}: 1.0 is one whole CPU. Demand is CPU time for {each}.")
    if source.result.compare:
        notes.append(
            "status is that of the ratio to the baseline, which is free of what blocks have in"
            " common; mean that of the mean: converged (as precise as asked), max (wider), or"
            " unstable (it drifts or follows the block before: it may be less certain than ± says)."
        )
    if marked:
        notes.append("† the mechanism did not engage in some runs: see cautions.")
    return notes


def _meters(source: Source) -> str:
    """`CPU by procstat`, or where several gave it `system CPU by procstat, sender CPU ...`."""
    names_of: dict[str, list[str]] = {}
    for name in (name for name in source.metrics if name.endswith("_cpu")):
        order = source.result.meters.get(name, ())
        there = (m for m in order if f"{name}.{m}" in source.result.metrics)
        names_of.setdefault(next(there, ""), []).append(source.result.describe(name).title)
    names_of.pop("", None)
    if len(names_of) == 1:
        return f"CPU by {next(iter(names_of))}"
    return ", ".join(f"{' and '.join(names)} by {meter}" for meter, names in names_of.items())


def matrix(source: Source) -> Section | None:
    """A table for each metric, pair and context, where a campaign sweeps two methods."""
    tables = pivots(source.result, source.cells)
    blocks: list[Block] = []
    for metric in _telling(source):
        for pivot in tables:
            if any(metric in cell.intervals for cell in pivot.cells.values()):
                blocks.append(_pivoted(source, pivot, metric, is_first=not blocks))
    return Section("matrix", "Methods against each other", tuple(blocks)) if blocks else None


def _pivoted(source: Source, pivot: Pivot, metric: str, is_first: bool) -> Table:
    """`is_first`: it says how to read it and those that follow."""
    rows = [
        {
            **keyed([f"{pivot.down} \\ {pivot.across}"], down),
            **{Column(to): _value(pivot.cells.get((down, to)), metric) for to in pivot.columns},
        }
        for down in pivot.rows
    ]
    marked = [
        (pivot.rows.index(down), Column(to))
        for (down, to), cell in pivot.cells.items()
        if cell.marked
    ]
    notes = []
    if is_first:
        notes.append(
            f"{pivot.down} down, {pivot.across} across; ± is the half-width of the"
            f" {share(source.result.repeat.confidence)} interval of the mean."
        )
    if marked:
        notes.append("† the mechanism did not engage in some runs: see proof and cautions.")
    unit = source.result.describe(metric).unit
    named = title(metric, source.result) + (f" [{unit}]" if unit else "")
    what = ", ".join([named, *pivot.where(source.several)])
    return tabled(what, rows, *notes, marked_values=marked)


def _value(cell: CellResult | None, metric: str) -> Value:
    """A cell's interval, or why it has none."""
    if cell is None:
        return ""  # the plan has no such cell
    return cell.intervals.get(metric, None if cell.n else cell.status)
