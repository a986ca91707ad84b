"""The table of cells: throughput, CPU and service demand, each with its half-width."""

from __future__ import annotations

from netbench.read.cells import CellResult
from netbench.report.blocks import Block, Column, Plot, Section, Table, Value
from netbench.report.numbers import count, share
from netbench.report.source import Source
from netbench.report.titles import is_of_process
from netbench.stats.boots import BOOTED
from netbench.stats.modes import SLOW, missed

MODES_NAMED = 8  # cells


def cells(source: Source) -> Section:
    """One row a cell and pair."""
    metrics = source.metrics
    columns = [Column(name, kind="key") for name in source.keys]
    columns += [
        Column(source.result.describe(name).title, source.result.describe(name).unit)
        for name in metrics
    ]
    ratios = source.result.compare is not None
    columns += [Column("n"), Column("status"), *([Column("mean")] if ratios else [])]
    rows: list[tuple[Value, ...]] = []
    mixed = len({c.unit for c in source.cells if c.n}) > 1
    for c in source.cells:
        rows.append(
            (
                *source.key(c),
                *(c.intervals.get(name) for name in metrics),
                _units(c, mixed),
                c.status,
                *([c.mean] if ratios else []),
            )
        )
    marked = frozenset(i for i, c in enumerate(source.cells) if c.marked)
    table = Table("", tuple(columns), tuple(rows), tuple(_notes(source, bool(marked))), marked)
    plots = [
        Plot(
            "means",
            name,
            f"{source.result.describe(name).title}: every run (dots), mean and interval",
        )
        for name in _drawn(source)
    ]
    parted = "; dotted lines part boots" if len(source.result.kernels) > 1 else ""
    plots += [
        Plot(
            "order",
            name,
            f"{source.result.describe(name).title}: runs in order of execution, against their"
            f" cell's mean{parted}",
        )
        for name in _drawn(source)[:1]
    ]
    blocks: list[Block] = [table, *plots]
    return Section("cells", "Cells", tuple(blocks))


def _units(c: CellResult, mixed: bool) -> Value:
    """How many runs, boots or builds an interval is over; mixed: not the same in all cells, so that
    it is said which.
    """
    n = next(iter(c.intervals.values())).n if c.unit in BOOTED and c.intervals else c.n
    return count(n, c.unit) if mixed else n


def _drawn(source: Source) -> list[str]:
    asked = (*source.result.repeat.metrics, *source.result.units)
    return [name for name in source.metrics if name in asked or not name.endswith("_cpu")]


def _notes(source: Source, marked: bool) -> list[str]:
    units = sorted({c.unit for c in source.cells if c.n} or {"run"})
    interval = share(source.result.repeat.confidence)
    notes = [
        f"± is the half-width of the {interval} interval of the mean; n counts"
        f" {'s or '.join(units)}s that are ok."
    ]
    if "boot" in units:
        notes.append(
            "Runs of one boot are not independent draws of what a kernel does: each boot counts as"
            " the mean of its runs."
        )
    if "build" in units:
        notes.append(
            "Boots of one build share the layout of its code: each build counts as the mean of its"
            " boots."
        )
    meters = _meters(source)
    if meters:
        notes.append(
            f"{meters}: 1.0 is one whole CPU. Demand is CPU time for 1024 bytes of payload."
        )
    if any(is_of_process(name, source.result) for name in source.metrics):
        notes.append(
            "CPU of one side is that of its process alone, without softirq: the sides share a"
            " kernel. System CPU is the whole cost."
        )
    if source.result.compare:
        notes.append(
            "status is that of the ratio to the baseline, which is free of what blocks have in"
            " common; mean that of the mean: converged (as precise as asked), max (wider), or"
            " unstable (it drifts, follows the block before or has two modes: it is less certain"
            " than ± says)."
        )
    notes += [
        f"{', '.join(source.key(c))}: of the two modes of"
        f" {source.result.describe(name).title}, {modes}."
        for c in source.cells
        for name, modes in c.modes.items()
    ][:MODES_NAMED]
    if len(source.result.cells) == 1 and not any(c.modes for c in source.cells):
        notes += [
            f"One cell of {count(c.n, 'run')} misses a mode that takes {SLOW:.0%} of the runs in"
            f" {missed(c.n):.1%} of the cases."
            for c in source.cells[:1]
            if c.n
        ]
    if marked:
        notes.append("† the mechanism did not engage in some runs: see cautions.")
    return notes


def _meters(source: Source) -> str:
    """`CPU by procstat`, or where several gave it `system CPU by procstat, sender CPU by
    rusage`.
    """
    names_of: dict[str, list[str]] = {}
    for name in (name for name in source.metrics if name.endswith("_cpu")):
        order = source.result.meters[name]
        there = (m for m in order if f"{name}.{m}" in source.result.metrics)
        names_of.setdefault(next(there, ""), []).append(source.result.describe(name).title)
    names_of.pop("", None)
    if len(names_of) == 1:
        return f"CPU by {next(iter(names_of))}"
    return ", ".join(f"{' and '.join(names)} by {meter}" for meter, names in names_of.items())
