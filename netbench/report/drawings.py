"""From a section's Plot block to a drawing: gathers what plots.py draws."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from netbench.analysis.cells import rows_by_cell
from netbench.analysis.layers import ORDER
from netbench.analysis.pivot import pivots
from netbench.analysis.profiles import units
from netbench.report.blocks import Plot
from netbench.report.flame_graph import layer_colour
from netbench.report.profile_words import distinct_levels
from netbench.report.source import Source

if TYPE_CHECKING:
    from netbench.report.plots import Axes, Rows


def rows_of(source: Source, metric: str) -> Rows:
    """The cells that have the metric, in the table's order, with their runs."""
    from netbench.report.plots import Rows

    ok = source.result.ok
    groups = rows_by_cell(ok)
    values = ok[metric].to_numpy(dtype=float)
    cells = [c for c in source.cells if metric in c.intervals]
    runs = [values[groups[c.cell, c.pair]] for c in cells]
    return Rows([" · ".join(source.key(c)) for c in cells], cells, [v[~np.isnan(v)] for v in runs])


def draw(source: Source, plot: Plot) -> tuple[Axes, int]:
    """The drawing and how many dots it holds. Errors: KeyError for a kind that plots.py does not
    know.
    """
    from netbench.report import plots

    axes, dots = _drawn(source, plot)
    return plots.titled(axes, plot.label), dots


def _drawn(source: Source, plot: Plot) -> tuple[Axes, int]:
    from netbench.report import plots

    if plot.kind == "means":
        rows = rows_of(source, plot.metric)
        return plots.means(rows, source.result.describe(plot.metric)), sum(
            len(v) for v in rows.values
        )
    if plot.kind == "order":
        runs = source.result.ok
        return plots.order(runs, source.result.describe(plot.metric)), len(runs)
    if plot.kind == "ratios":
        family = source.comparisons[plot.metric]
        family = [*family, *(replace(c, level="control") for c in source.controls(family))]
        several = len(source.result.plan.pairs) > 1
        labels = [
            " · ".join([*([c.pair] if several else []), *c.context.values(), c.level])
            for c in family
        ]
        return plots.ratios(family, labels, source.result.describe(plot.metric)), len(family)
    if plot.kind == "layers":
        cells = source.profiles.cells
        shown = [name for name in ORDER if any(c.layers.get(name) for c in cells)]
        drawn = {name: [c.layers.get(name, 0.0) for c in cells] for name in shown}
        colours = {name: layer_colour(name) for name in shown}
        names = distinct_levels(source, cells)
        return plots.layers(names, drawn, colours, f"{units(cells)} per GiB"), len(cells)
    if plot.kind == "matrix":
        pivot = pivots(source.result, source.cells)[plot.number]
        return plots.matrix(pivot, source.result.describe(plot.metric)), len(pivot.cells)
    raise KeyError(plot.kind)
