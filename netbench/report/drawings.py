"""From a section's Plot block to a drawing: gathers what plots.py draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import TYPE_CHECKING

import numpy as np

from netbench.read.cells import CellResult, rows_by_cell
from netbench.read.layers import ORDER
from netbench.read.metrics import Metric
from netbench.read.pivot import pivots
from netbench.read.profiles import units
from netbench.report.blocks import Plot
from netbench.report.numbers import count, number
from netbench.report.palette import LAYERS
from netbench.report.plotted_rows import Rows
from netbench.report.profile_words import distinct_levels
from netbench.report.source import Source
from netbench.stats.intervals import Numbers

if TYPE_CHECKING:
    from netbench.report.plots import Axes

CellUrl = Callable[[CellResult], str | None]


def rows_of(source: Source, metric: str) -> Rows:
    """The cells that have the metric, in the table's order, with their runs."""
    ok = source.result.ok
    groups = rows_by_cell(ok)
    values = ok[metric].to_numpy(dtype=float)
    cells = [c for c in source.cells if metric in c.intervals]
    numbers = ok["run"].to_numpy()
    rows = [groups[c.cell, c.pair] for c in cells]
    rows = [each[~np.isnan(values[each])] for each in rows]
    labels = [" · ".join(source.key(c)) for c in cells]
    return Rows(labels, cells, [values[r] for r in rows], [numbers[r] for r in rows])


@dataclass(frozen=True)
class Drawing:
    """A drawing with what it holds in words: `dots`, of which `runs` are the runs, in their order,
    with their values in words.
    """

    axes: Axes
    dots: int
    about: str
    runs: Sequence[tuple[int, str]] = ()


def draw(source: Source, plot: Plot, cell_url: CellUrl = lambda cell: None) -> Drawing:
    """A drawing. cell_url: where a cell is, on a page. Errors: KeyError for a kind that plots.py
    does not know.
    """
    from netbench.report import plots

    if plot.kind not in _KINDS:
        raise KeyError(plot.kind)
    drawing = _KINDS[plot.kind](source, plot, cell_url)
    return replace(drawing, axes=plots.titled(drawing.axes, plot.label))


def _means(source: Source, plot: Plot, _: CellUrl) -> Drawing:
    from netbench.report import plots

    rows, metric = rows_of(source, plot.metric), source.result.describe(plot.metric)
    dots = sum(map(len, rows.values))
    about = f"{count(dots, 'run')} of {count(len(rows.cells), 'cell')}, a row each."
    runs = _named(np.concatenate([*rows.runs, []]), np.concatenate([*rows.values, []]), metric)
    return Drawing(plots.means(rows, metric), dots, about, runs)


def _order(source: Source, plot: Plot, _: CellUrl) -> Drawing:
    from netbench.report import plots

    runs, metric = source.result.ok, source.result.describe(plot.metric)
    used = runs.dropna(subset=[plot.metric])
    about = f"{count(len(used), 'run')} from the first on the left to the last on the right."
    named = _named(used["run"].to_numpy(), used[plot.metric].to_numpy(), metric)
    return Drawing(plots.order(runs, metric), len(runs), about, named)


def _named(runs: Numbers, values: Numbers, metric: Metric) -> list[tuple[int, str]]:
    """Runs with their values in words; none of more than a drawing names."""
    from netbench.report import plots

    if len(runs) > plots.VECTOR_DOTS:
        return []
    return [
        (int(run), f"{number(value)} {metric.unit}")
        for run, value in zip(runs, values, strict=True)
    ]


def _ratios(source: Source, plot: Plot, _: CellUrl) -> Drawing:
    from netbench.report import plots

    family = source.comparisons[plot.metric]
    family = [*family, *(replace(c, level="control") for c in source.controls(family))]
    several = len(source.result.plan.pairs) > 1
    labels = [
        " · ".join([*([c.pair] if several else []), *c.context.values(), c.level]) for c in family
    ]
    axes = plots.ratios(family, labels, source.result.describe(plot.metric))
    about = f"{count(len(family), 'comparison')}, a row each, in the order of the table."
    return Drawing(axes, len(family), about)


def _layers(source: Source, plot: Plot, _: CellUrl) -> Drawing:
    from netbench.report import plots

    cells = source.profiles.cells
    shown = [name for name in ORDER if any(any(c.layers.get(name, ())) for c in cells)]
    drawn = {name: [mean(c.layers.get(name, [0.0])) for c in cells] for name in shown}
    colours = {name: LAYERS[name] for name in shown}
    names = distinct_levels(source, cells)
    axes = plots.layers(names, drawn, colours, f"{units(cells)} per GiB")
    return Drawing(axes, len(cells), f"A bar for each of {count(len(cells), 'profile')}.")


def _matrix(source: Source, plot: Plot, cell_url: CellUrl) -> Drawing:
    from netbench.report import plots

    pivot = pivots(source.result, source.cells)[plot.number]
    urls = {place: url for place, cell in pivot.cells.items() if (url := cell_url(cell))}
    axes = plots.matrix(pivot, source.result.describe(plot.metric), urls=urls)
    about = f"{len(pivot.rows)} by {len(pivot.columns)} fields with the means of the table."
    return Drawing(axes, len(pivot.cells), about)


def _interaction(source: Source, plot: Plot, _: CellUrl) -> Drawing:
    from netbench.report import plots
    from netbench.report.sections.effects import axes_of

    each = source.effects[plot.metric][plot.number]
    across, lines = axes_of(each)
    means = each.means(across, lines)
    axes = plots.interaction(means, (across, lines), source.result.describe(plot.metric))
    about = f"The means of {count(len(means), 'pair')} of levels: a line for each of {lines}."
    return Drawing(axes, 0, about)


def _fleet(source: Source, plot: Plot, _: CellUrl) -> Drawing:
    from netbench.fleet.plot import spread

    each = source.fleets[plot.metric][plot.number]
    shifts = len(each.fit.shifts)
    return Drawing(spread(each), shifts, f"{count(shifts, 'mark')}: senders, receivers, pairs.")


_KINDS = {
    "means": _means,
    "order": _order,
    "ratios": _ratios,
    "layers": _layers,
    "matrix": _matrix,
    "interaction": _interaction,
    "fleet": _fleet,
}
