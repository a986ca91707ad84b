"""Drawings, the only importer of matplotlib. Every run is a dot; nothing is left out, however many
there are.

A report's figures are made without pyplot, so no global state is touched and nothing stays open;
only a notebook's use it.
"""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from html import escape
from types import MappingProxyType
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib import style
from matplotlib.axes import Axes as Axes  # others name the type through this file
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator, StrMethodFormatter

from netbench.read.cells import CellResult
from netbench.read.metrics import Metric
from netbench.read.pivot import Pivot
from netbench.read.shown_levels import shown
from netbench.report.numbers import words
from netbench.report.palette import AXIS, BAND, DOT, INK, MARKERS, ON_DARK, ON_PALE, PAPER, VERDICTS
from netbench.report.plotted_rows import Rows
from netbench.report.svg import POINTS, Point, part_of_page
from netbench.stats.comparison import Comparison
from netbench.stats.intervals import Interval
from netbench.stats.words import percent

LEGEND = 5  # names in a line above a plot
LABELLED = (
    48  # rows that a drawing can name; above, they are drawn closer and numbered as in the table
)
VECTOR_DOTS = 3000  # more dots make a picture of pixels, else the file would outgrow its reader
WIDTH, FLAT = 9.0, 2.8  # inches
STYLE: Any = {
    "font.size": 9,
    "font.family": ["DejaVu Sans", "sans-serif"],
    "axes.edgecolor": AXIS,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.fonttype": "none",
    "axes.axisbelow": True,
}


def default_style() -> AbstractContextManager[None]:
    """Within it drawings look as matplotlib's defaults say: importing matplotlib has read the
    `matplotlibrc` of the working directory, which may be anybody's, and runs TeX where that says
    so.
    """
    return style.context("default")


def new_axes(height: float) -> Axes:
    """Empty axes of the house style on a figure of their own; height in inches."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        return figure.add_subplot()


def shown_axes(height: float) -> Axes:
    """Empty axes on a pyplot figure, which a notebook shows by itself and a script with plt.show();
    height in inches.
    """
    from matplotlib import pyplot

    figure = pyplot.figure(
        figsize=(WIDTH, height), layout="constrained"
    )  # first: it may load a backend, which sets rcParams
    with mpl.rc_context(STYLE):
        return figure.add_subplot()


def means(rows: Rows, metric: Metric, axes: Axes | None = None) -> Axes:
    """One row a cell: its runs as dots, its mean and interval as a bar."""
    axes = axes or new_axes(height_of(len(rows.labels)))
    jitter = np.random.default_rng(0)
    dots = np.concatenate([*rows.values, np.empty(0)])
    at = np.repeat(np.arange(len(rows.values)), [len(v) for v in rows.values]) + jitter.uniform(
        -0.3, 0.3, len(dots)
    )
    axes.plot(dots, at, "o", ms=4.5, color=DOT, alpha=0.75, mew=0, zorder=2, gid=POINTS)
    intervals = [cell.intervals[metric.name] for cell in rows.cells]
    bars = np.nan_to_num([(i.mean - i.low, i.high - i.mean) for i in intervals]).T
    # one run has a mean and no bar
    few = len(intervals) <= LABELLED
    look: dict[str, Any] = (
        {"ms": 9, "elinewidth": 1.6, "capsize": 3} if few else {"ms": 3, "elinewidth": 0.8}
    )
    axes.errorbar(
        [i.mean for i in intervals],
        np.arange(len(intervals)),
        xerr=np.maximum(bars, 0),
        fmt="|",
        color=INK,
        ecolor=INK,
        zorder=3,
        **look,
    )
    _rows_axis(axes, rows.labels)
    axes.set_xlabel(f"{metric.title} [{metric.unit}]" if metric.unit else metric.title)
    return axes


def order(runs: pd.DataFrame, metric: Metric, axes: Axes | None = None) -> Axes:
    """Runs in order of execution, each against the mean of its cell in percent; blocks alternate in
    shade, boots are parted by lines.

    runs: ok runs with run, cell, pair, block, boot and the metric.
    """
    axes = axes or new_axes(FLAT)
    used = runs.dropna(subset=[metric.name])
    means_ = used.groupby(["cell", "pair"], observed=True)[metric.name].transform("mean")
    off = (used[metric.name] / means_ - 1) * 100
    number = used["run"].to_numpy()
    bounds = used.groupby("block")["run"].agg(["min", "max"])
    if len(bounds) <= 60:
        for block, first, last in bounds.itertuples():
            if int(block) % 2 == 0:
                axes.axvspan(float(first) - 0.5, float(last) + 0.5, color=BAND, lw=0, zorder=0)
    for first in used.groupby("boot")["run"].min().iloc[1:]:
        axes.axvline(float(first) - 0.5, color=INK, lw=0.8, ls=":")
    axes.axhline(0, color=AXIS, lw=0.8)
    axes.plot(
        number,
        off.to_numpy(),
        "o",
        ms=4 if len(used) < VECTOR_DOTS else 1,
        color=DOT,
        alpha=0.8,
        mew=0,
        gid=POINTS,
    )
    axes.set_xlabel("run, in order of execution (shaded: every other block)")
    axes.set_ylabel(f"{metric.title} against\nthe cell's mean [%]")
    return axes


def ratios(
    family: Sequence[Comparison],
    labels: Sequence[str],
    metric: Metric,
    axes: Axes | None = None,
) -> Axes:
    """One row a comparison: the change in percent with its interval, the margin as a band
    around 0.
    """
    axes = axes or new_axes(height_of(len(family)))
    margin = next((c.margin for c in family if c.margin is not None), None)
    if margin is not None:
        axes.axvspan(-margin * 100, margin * 100, color=BAND, lw=0)
    axes.axvline(0, color=AXIS, lw=0.8)
    for verdict in dict.fromkeys(c.verdict for c in family):
        mine = [
            (y, c) for y, c in enumerate(family) if c.verdict == verdict
        ]  # NaN, where there is no interval, is not drawn
        y, low, high, ratio = np.array(
            [(y, percent(c.low), percent(c.high), percent(c.ratio)) for y, c in mine]
        ).T
        colour, marker = VERDICTS.get(verdict, AXIS), MARKERS.get(verdict, "o")
        axes.hlines(y, low, high, color=colour, lw=1.8)
        face = PAPER if marker == "o" else colour
        axes.plot(ratio, y, marker, ms=6, color=colour, mfc=face, label=verdict)
    _rows_axis(axes, labels)
    if family:
        axes.legend(
            loc="lower left",
            bbox_to_anchor=(0, 1),
            ncols=4,
            frameon=False,
            fontsize=8,
            borderaxespad=0,
        )
        axes.set_xlabel(f"{metric.title}: change against {family[0].baseline} [%]")
    return axes


def matrix(
    pivot: Pivot,
    metric: Metric,
    axes: Axes | None = None,
    urls: Mapping[tuple[str, str], str] = MappingProxyType({}),
) -> Axes:
    """A heat map: one field a cell with its mean and half-width; † where the mechanism did not
    engage. What has no mean is left white, with its status. `urls`: where fields lead, by row and
    column.
    """
    axes = axes or new_axes(0.9 + 0.42 * len(pivot.rows))
    cells = [[pivot.at(row, column) for column in pivot.columns] for row in pivot.rows]
    means = np.array([[_mean(cell, metric) for cell in row] for row in cells], dtype=np.float64)
    least = 0.0 if np.nanmin(means) >= 0 else None
    axes.imshow(means, cmap="Blues", aspect="auto", vmin=least)
    for i, (row_name, row) in enumerate(zip(pivot.rows, cells, strict=True)):
        for j, (column, cell) in enumerate(zip(pivot.columns, row, strict=True)):
            dark = means[i, j] > 0.6 * np.nanmax(means)
            known = not np.isnan(means[i, j])
            colour = INK if not known else ON_DARK if dark else ON_PALE
            axes.text(
                j,
                i,
                _field(cell, metric),
                ha="center",
                va="center",
                color=colour,
                fontsize=8,
                url=urls.get((row_name, column), None),
            )
    axes.set_xticks(range(len(pivot.columns)), pivot.columns)
    axes.set_yticks(range(len(pivot.rows)), pivot.rows)
    axes.set_xlabel(pivot.across)
    axes.set_ylabel(pivot.down)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return axes


def _mean(cell: CellResult | None, metric: Metric) -> float:
    known = cell is not None and metric.name in cell.intervals
    return cell.intervals[metric.name].mean if cell and known else float("nan")


def _field(cell: CellResult | None, metric: Metric) -> str:
    if cell is None or metric.name not in cell.intervals:
        return cell.status if cell and not cell.n else ""
    return words(cell.intervals[metric.name]) + (" †" if cell.marked else "")


def layers(
    labels: Sequence[str],
    parts: Mapping[str, Sequence[float]],
    colours: Mapping[str, str],
    unit: str,
    axes: Axes | None = None,
) -> Axes:
    """One row a cell: its layers as a stacked bar. parts: of each layer, its cost in every cell."""
    axes = axes or new_axes(height_of(len(labels)) + 0.5)
    left = np.zeros(len(labels))
    for layer, costs in parts.items():
        widths = np.asarray(costs, dtype=float)
        axes.barh(
            np.arange(len(labels)),
            widths,
            left=left,
            height=0.62,
            color=colours[layer],
            label=layer,
        )
        left = left + widths
    _rows_axis(axes, labels)
    axes.set_xlim(0)
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=LEGEND,
        frameon=False,
        fontsize=8,
        borderaxespad=0,
        handlelength=1,
        columnspacing=1.2,
    )
    axes.set_xlabel(unit)
    return axes


def samples(rows: pd.DataFrame, metric: str, axes: Axes | None = None) -> Axes:
    """Interval samples of one run over time. rows: side, seconds and the metric."""
    axes = axes or new_axes(FLAT)
    for side, group in rows.dropna(subset=[metric]).groupby("side", observed=True):
        axes.plot(group["seconds"], group[metric], ".-", ms=4, lw=1, label=str(side))
    axes.set_xlabel("time in the run [s]")
    axes.set_ylabel(metric)
    if axes.lines:
        axes.legend(frameon=False)
    return axes


LINES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
"""Colours that colour-blind readers tell apart (Okabe and Ito, 2008)."""
SHAPES = "osD^vPX*"


def interaction(
    means: Mapping[tuple[str, str], Interval],
    factors: tuple[str, str],
    metric: Metric,
    axes: Axes | None = None,
) -> Axes:
    """The mean at each level of the first factor, a line for each level of the second, each with
    its interval. Lines that are not parallel show an interaction; the axis is logarithmic, so that
    equal ratios are parallel.
    """
    axes = axes or new_axes(FLAT + 0.6)
    down, lines = (list(dict.fromkeys(place[at] for place in means)) for at in (0, 1))
    axes.set_yscale("log")
    for at, level in enumerate(lines):
        found = [means[each, level] for each in down]
        middle = np.array([i.mean for i in found])
        bars = np.nan_to_num([(i.mean - i.low, i.high - i.mean) for i in found]).T
        axes.errorbar(
            np.arange(len(down)) + 0.04 * (at - (len(lines) - 1) / 2),
            middle,
            yerr=np.maximum(bars, 0),
            fmt=SHAPES[at % len(SHAPES)] + "-",
            ms=5,
            lw=1.4,
            capsize=3,
            color=LINES[at % len(LINES)],
            label=f"{factors[1]}={shown(level)}",
        )
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xticks(range(len(down)), [shown(level) for level in down])
    axes.set_xlim(-0.5, len(down) - 0.5)
    axes.set_xlabel(factors[0])
    axes.set_ylabel(f"{metric.title} [{metric.unit}]" if metric.unit else metric.title)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    return axes


def titled(axes: Axes, label: str) -> Axes:
    """The axes with a label above them, to the right; "" for none."""
    if label:
        axes.set_title(label, loc="right", fontsize=9, fontweight="bold", color=VERDICTS["worse"])
    return axes


def height_of(rows: int) -> float:
    """The height of a drawing with so many rows, in inches."""
    return 0.8 + (0.26 * rows if rows <= LABELLED else min(0.26 * LABELLED + 0.004 * rows, 40.0))


def _rows_axis(axes: Axes, labels: Sequence[str]) -> None:
    if len(labels) <= LABELLED:
        axes.set_yticks(range(len(labels)), list(labels))
        axes.grid(axis="y", color=BAND)
    else:
        axes.set_ylabel("row of the table")
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.margins(x=0.03)


def inline(
    axes: Axes, dots: int, salt: str, title: str, about: str, points: Sequence[Point] = ()
) -> str:
    """A figure as HTML without any reference to a file.

    SVG, or a PNG without links where there are many dots. `salt` keeps ids apart on one page.
    """
    if dots > VECTOR_DOTS:
        data = base64.b64encode(_saved(axes, format="png", dpi=110)).decode()
        return f'<img alt="{escape(f"{title}. {about}")}" src="data:image/png;base64,{data}">'
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with mpl.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none"}):
        text = _saved(axes, format="svg", metadata=nothing).decode()
    return part_of_page(text[text.index("<svg") :], salt, title, about, points)


def _saved(axes: Axes, **options: Any) -> bytes:
    """A figure as a file."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    out = io.BytesIO()
    with warnings.catch_warnings():
        # What is said of a character that no font has holds it as it is, for the terminal to obey.
        warnings.filterwarnings("ignore", "Glyph ")
        figure.savefig(out, **options)
    return out.getvalue()
