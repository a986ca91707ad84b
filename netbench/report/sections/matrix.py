"""The matrix: which way out of a host goes best with which way into the other, as Schutt's table of
2006 had it (send methods down, receive methods across).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from netbench.read.cells import CellResult
from netbench.read.pivot import NO_TOOL, Pivot, pivots
from netbench.read.proofs import copied_shares
from netbench.report.blocks import Block, Column, Plot, Section, Table, Value
from netbench.report.numbers import share
from netbench.report.source import Source
from netbench.report.titles import title
from netbench.result.record import SIDES

NONE = ""  # the plan has no such cell


def matrix(source: Source) -> Section | None:
    """A table for each metric, pair and context of other factors; where a campaign sweeps two
    methods.
    """
    made = pivots(source.result, source.cells)
    if not made:
        return None
    blocks: list[Block] = []
    for metric in _metrics(source):
        for number, pivot in enumerate(made):
            if any(metric in cell.intervals for cell in pivot.cells.values()):
                blocks.append(_table(source, pivot, metric, told=bool(blocks)))
                blocks.append(Plot("matrix", metric, _caption(source, pivot, metric), "", number))
    blocks += [table for pivot in made for table in _copied(source, pivot)] if blocks else []
    blocks += _beside(source, made)
    return Section("matrix", "Methods against each other", tuple(blocks)) if blocks else None


def _metrics(source: Source) -> list[str]:
    """Throughput, demand, and what was asked for: CPU busy says little where throughput differs."""
    asked = source.result.repeat.metrics
    return [name for name in source.metrics if name in asked or not name.endswith("_cpu")]


def _several(source: Source) -> bool:
    return len(source.result.plan.pairs) > 1


def _what(source: Source, pivot: Pivot, metric: str) -> str:
    unit = source.result.describe(metric).unit
    named = f"{title(metric, source.result)} [{unit}]" if unit else title(metric, source.result)
    return ", ".join([named, *pivot.where(_several(source))])


def _caption(source: Source, pivot: Pivot, metric: str) -> str:
    return (
        f"{_what(source, pivot, metric)}: {pivot.down} down, {pivot.across} across; the darker, the"
        " more"
    )


def _table(source: Source, pivot: Pivot, metric: str, told: bool) -> Table:
    """`told`: a table before this one says how to read it."""
    columns = (
        Column(f"{pivot.down} \\ {pivot.across}", kind="key"),
        *(Column(level) for level in pivot.columns),
    )
    rows: list[tuple[Value, ...]] = []
    marked: set[tuple[int, int]] = set()
    for i, row in enumerate(pivot.rows):
        cells = [pivot.at(row, column) for column in pivot.columns]
        rows.append((row, *(_value(cell, metric) for cell in cells)))
        marked |= {(i, j) for j, cell in enumerate(cells, 1) if cell and cell.marked}
    return Table(
        _what(source, pivot, metric),
        columns,
        tuple(rows),
        _notes(source, pivot, told, bool(marked)),
        marked_values=frozenset(marked),
        places={
            (i, j): {"cell": cell.cell, "pair": cell.pair}
            for i, row in enumerate(pivot.rows)
            for j, column in enumerate(pivot.columns, 1)
            if (cell := pivot.at(row, column))
        },
    )


def _copied(source: Source, pivot: Pivot) -> Iterator[Table]:
    """What methods that spare a copy copied after all, side by side with what the others do not
    say.
    """
    shares = copied_shares(source.result.proofs, source.result.plan.rows)
    for side in SIDES:
        by_levels = {
            levels: shares[cell.cell, cell.pair, side]
            for levels, cell in pivot.cells.items()
            if (cell.cell, cell.pair, side) in shares
        }
        rows = [row for row in pivot.rows if any(row == down for down, _ in by_levels)]
        across = [level for level in pivot.columns if any(level == to for _, to in by_levels)]
        if by_levels:
            told = ", ".join(
                [f"copied after all by the {side} [%]", *pivot.where(_several(source))]
            )
            yield Table(
                told,
                (
                    Column(f"{pivot.down} \\ {pivot.across}", kind="key"),
                    *(Column(level) for level in across),
                ),
                tuple(
                    (row, *(_percent(by_levels.get((row, level))) for level in across))
                    for row in rows
                ),
                ("Methods that do not count copies have no row and no column.",),
            )


def _percent(fraction: float | None) -> Value:
    return None if fraction is None else f"{100 * fraction:.1f}"


def _value(cell: CellResult | None, metric: str) -> Value:
    """A cell's interval, or why it has none."""
    if cell is None:
        return NONE
    return cell.intervals.get(metric, None if cell.n else cell.status)


def _notes(source: Source, pivot: Pivot, told: bool, marked: bool) -> tuple[str, ...]:
    confidence = share(source.result.repeat.confidence)
    notes = (
        []
        if told
        else [
            f"{pivot.down} down, {pivot.across} across; ± is the half-width of the {confidence}"
            " interval of the mean."
        ]
    )
    if marked:
        notes.append("† the mechanism did not engage in some runs: see proof and cautions.")
    return tuple(notes)


def _beside(source: Source, made: Sequence[Pivot]) -> list[Block]:
    """What stands in no matrix, such as a baseline that only one row of `include` has. Tools use no
    method.
    """
    inside = {(c.cell, c.pair) for pivot in made for c in pivot.cells.values()}
    outside = [c for c in source.cells if (c.cell, c.pair) not in inside and c.intervals]
    if not outside:
        return []
    metrics = _metrics(source)
    moved = any(cell.factors.get("tool", NO_TOOL) == NO_TOOL for cell in outside)
    keys = [i for i, name in enumerate(source.keys) if moved or name not in ("send", "receive")]
    columns = (
        *(Column(source.keys[i], kind="key") for i in keys),
        *(Column(title(m, source.result), source.result.describe(m).unit) for m in metrics),
    )
    rows = tuple(
        (*(source.key(c)[i] for i in keys), *(c.intervals.get(m) for m in metrics)) for c in outside
    )
    marked = frozenset(i for i, c in enumerate(outside) if c.marked)
    return [Table("Beside the matrix", columns, rows, (), marked)]
