"""The table of cells: throughput, CPU and service demand, each with its half-width."""

from __future__ import annotations

from netbench.analysis.accounts import METER_ORDER
from netbench.analysis.cells import CellResult
from netbench.analysis.metrics import describe
from netbench.report.blocks import Block, Column, Plot, Section, Table, Value
from netbench.report.numbers import count, share
from netbench.report.source import Source


def cells(source: Source) -> Section:
    """One row a cell and pair."""
    metrics = source.metrics
    columns = [Column(name, kind="key") for name in source.keys]
    columns += [Column(describe(name).title, describe(name).unit) for name in metrics]
    columns += [Column("n"), Column("status")]
    rows: list[tuple[Value, ...]] = []
    mixed = len({c.unit for c in source.cells if c.n}) > 1
    for c in source.cells:
        rows.append(
            (
                *source.key(c),
                *(c.intervals.get(name) for name in metrics),
                _units(c, mixed),
                c.status,
            )
        )
    marked = frozenset(i for i, c in enumerate(source.cells) if c.marked)
    table = Table("", tuple(columns), tuple(rows), tuple(_notes(source, bool(marked))), marked)
    plots = [
        Plot("means", name, f"{describe(name).title}: every run (dots), mean and interval")
        for name in _drawn(metrics)
    ]
    parted = "; dotted lines part boots" if len(source.result.kernels) > 1 else ""
    plots += [
        Plot(
            "order",
            name,
            f"{describe(name).title}: runs in order of execution, against their cell's"
            f" mean{parted}",
        )
        for name in _drawn(metrics)[:1]
    ]
    blocks: list[Block] = [table, *plots]
    return Section("cells", "Cells", tuple(blocks))


def _units(c: CellResult, mixed: bool) -> Value:
    """How many runs or boots an interval is over; mixed: not the same in all cells, so that it is
    said which.
    """
    n = next(iter(c.intervals.values())).n if c.unit == "boot" and c.intervals else c.n
    return count(n, c.unit) if mixed else n


def _drawn(metrics: tuple[str, ...]) -> list[str]:
    return [name for name in metrics if not name.endswith("_cpu")]


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
    shown = [name for name in source.metrics if name.endswith("_cpu")]
    meters = {name: best for name in shown if (best := _meter(source, name))}
    if meters:
        used = " and ".join(dict.fromkeys(meters.values()))
        notes.append(
            f"CPU by {used}: 1.0 is one whole CPU. Demand is CPU time for 1024 bytes of payload."
        )
    if source.result.compare:
        notes.append(
            "converged: the ratio to the baseline is as precise as asked, whatever the width of the"
            " mean."
        )
    if marked:
        notes.append("† the mechanism did not engage in some runs: see cautions.")
    return notes


def _meter(source: Source, metric: str) -> str:
    """The best meter that gave a CPU metric."""
    return next(
        (meter for meter in METER_ORDER if f"{metric}.{meter}" in source.result.metrics), ""
    )
