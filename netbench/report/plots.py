"""Drawings with matplotlib: those of a report's Plot blocks, and for notebooks those of a result.

A report's figures are made without pyplot, so no global state is touched and nothing stays open;
only a notebook's use it. Each drawing takes what makes its axes by a height in inches.
"""

from __future__ import annotations

import base64
import io
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import chdir, nullcontext
from dataclasses import replace
from html import escape
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from netbench.base.control_characters import escape_controls
from netbench.base.errors import ReportError
from netbench.base.names import QUANTILES
from netbench.read.cells import metric_order, rows_by_cell
from netbench.read.load_curves import OFFERED
from netbench.read.offered import KEY, word
from netbench.report.blocks import Plot
from netbench.report.label import label_of
from netbench.report.numbers import share
from netbench.report.phrases import in_short_of
from netbench.report.source import Source
from netbench.stats.intervals import Interval, mean_interval
from netbench.stats.words import percent

# Importing reads the `matplotlibrc` of the working directory, which may be anybody's, or a pipe,
# made at this moment. A folder that was removed, or may not be entered, has none.
with chdir("/") if os.access(".", os.X_OK) and os.stat(".").st_nlink else nullcontext():
    import matplotlib as mpl
    from matplotlib import style
    from matplotlib.axes import Axes as Axes  # others name the type through this file
    from matplotlib.figure import Figure
    from matplotlib.text import Text
    from matplotlib.ticker import LogLocator, MaxNLocator

Make = Callable[[float], Axes]
LABELLED = (
    48  # rows that a drawing can name; above, they are drawn closer and numbered as in the table
)
LABEL_MAX = 120  # characters of a level, of which any number would be laid out
VECTOR_DOTS = 3000  # more dots make a picture of pixels, else the file would outgrow its reader
WIDTH, FLAT = 9.0, 2.8  # inches
QUANTILE_SHARES = {name: float(name[1:]) / 100 for name in QUANTILES}
CURVES = 10  # in one drawing, as it has colours
INK, DOT, BAND, AXIS, PAPER = "#1f2933", "#5b93b5", "#eef2f5", "#9aa5b1", "#ffffff"
VERDICTS = {
    "better": ("#0068a3", "^"),
    "worse": ("#b3420d", "v"),
    "equivalent": ("#4a5568", "s"),
    "inconclusive": ("#7a5f00", "o"),
}
"""Colours and shapes, which people tell apart who see no red or green (Okabe and Ito's blue and
vermilion, darkened for text on white).
"""
WORSE = VERDICTS["worse"][0]
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
    "text.parse_math": False,  # a level is no formula
}


def image(source: Source, plot: Plot) -> Markup:
    """A drawing of a section as an HTML image without any reference to a file: SVG, or a PNG where
    there are many dots. Errors: KeyError for a kind that is not known.
    """
    # The user's own `matplotlibrc` may say otherwise. Labels of ticks are made when it is saved.
    with style.context(["default", {"text.parse_math": STYLE["text.parse_math"]}]):
        axes = drawn(source, plot)
        for label in axes.figure.findobj(Text):
            label.set_text(_cut(label.get_text()))
        if sum(len(np.atleast_1d(line.get_xdata())) for line in axes.lines) > VECTOR_DOTS:
            kind, data = "png", _saved(axes, format="png", dpi=110)
        else:
            nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
            with mpl.rc_context({"svg.hashsalt": plot.kind, "svg.fonttype": "none"}):
                text = _saved(axes, format="svg", metadata=nothing).decode()
            kind, data = "svg+xml", escape_controls(text).encode()
    encoded = base64.b64encode(data).decode()
    alt = escape(f"{plot.caption} ({plot.label})" if plot.label else plot.caption)
    return Markup(f'<img class="{plot.kind}" alt="{alt}" src="data:image/{kind};base64,{encoded}">')


def drawn(source: Source, plot: Plot) -> Axes:
    """A drawing of a section, with its label. Errors: as image."""
    axes, result = _KINDS[plot.kind](source, plot), source.result
    asked = ": ".join(filter(None, (result.name, result.about))).replace("$", r"\$")
    below = "\n" if plot.label else ""  # the line of the label
    axes.set_title(f"{asked}{below}", loc="left", fontsize=10, wrap=True, parse_math=True)
    return titled(axes, plot.label)


def _saved(axes: Axes, **options: Any) -> bytes:
    """A figure as a file."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    out = io.BytesIO()
    with warnings.catch_warnings():
        # What is said of a character that no font has holds it as it is, for the terminal to obey.
        warnings.filterwarnings("ignore", "Glyph ")
        figure.savefig(out, transparent=True, **options)
    return out.getvalue()


def new_axes(height: float) -> Axes:
    """Empty axes of the house style on a figure of their own."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        return figure.add_subplot()


def shown_axes(height: float) -> Axes:
    """Empty axes on a pyplot figure, which a notebook shows, and a script by plt.show()."""
    from matplotlib import pyplot

    figure = pyplot.figure(
        figsize=(WIDTH, height), layout="constrained"
    )  # first: it may load a backend, which sets rcParams
    with mpl.rc_context(STYLE):
        return figure.add_subplot()


def means(source: Source, metric: str, make: Make = new_axes) -> Axes:
    """One row a cell: its runs as dots, its mean and interval as a bar."""
    ok = source.result.ok
    groups, of_runs = rows_by_cell(ok), ok[metric].to_numpy(dtype=float)
    cells = [c for c in source.cells if metric in c.intervals]
    values = [of_runs[groups[c.cell, c.pair]] for c in cells]
    axes = make(height_of(len(cells)))
    dots = np.concatenate([*values, np.empty(0)])
    at = np.repeat(np.arange(len(values)), [len(v) for v in values])
    jitter = np.random.default_rng(0).uniform(-0.3, 0.3, len(dots))
    axes.plot(dots, at + jitter, "o", ms=4.5, color=DOT, alpha=0.75, mew=0, zorder=2)
    look: dict[str, Any] = (
        {"ms": 9, "elinewidth": 1.6, "capsize": 3}
        if len(cells) <= LABELLED
        else {"ms": 3, "elinewidth": 0.8}
    )
    each, rows = [cell.intervals[metric] for cell in cells], np.arange(len(cells))
    # one run has a mean and no bar
    bars = np.maximum(np.nan_to_num([(i.mean - i.low, i.high - i.mean) for i in each]).T, 0)
    middle = [i.mean for i in each]
    axes.errorbar(middle, rows, xerr=bars, fmt="|", color=INK, ecolor=INK, zorder=3, **look)
    _rows_axis(axes, [f"{' · '.join(source.key(c))}  n={c.n}" for c in cells])
    level = share(source.result.repeat.confidence)
    described = source.result.describe(metric)
    unit = f" [{described.unit}]" if described.unit else ""
    axes.set_xlabel(f"{described.title}{unit}, mean and {level} interval")
    return axes


def order(source: Source, metric: str, make: Make = new_axes) -> Axes:
    """Runs in order of execution, each against the mean of its cell in percent; blocks alternate in
    shade, boots are parted by lines.
    """
    axes = make(FLAT)
    used = source.result.ok.dropna(subset=[metric])
    of_cell = used.groupby(["cell", "pair"], observed=True)[metric].transform("mean")
    off = (used[metric] / of_cell - 1) * 100
    bounds = used.groupby("block")["run"].agg(["min", "max"])
    if len(bounds) <= 60:
        for block, first, last in bounds.itertuples():
            if int(block) % 2 == 0:
                axes.axvspan(float(first) - 0.5, float(last) + 0.5, color=BAND, lw=0, zorder=0)
    for first in used.groupby("boot")["run"].min().iloc[1:]:
        axes.axvline(float(first) - 0.5, color=INK, lw=0.8, ls=":")
    axes.axhline(0, color=AXIS, lw=0.8)
    size = 4 if len(used) < VECTOR_DOTS else 1
    axes.plot(used["run"].to_numpy(), off.to_numpy(), "o", ms=size, color=DOT, alpha=0.8, mew=0)
    axes.set_xlabel("run, in order of execution (shaded: every other block)")
    axes.set_ylabel(f"{source.result.describe(metric).title} against\nthe cell's mean [%]")
    return axes


def quantiles(source: Source, make: Make = new_axes) -> Axes:
    """A curve a cell: quantiles of latency, means over runs, with the intervals of these as a band;
    the share of requests on a logit scale, so that each nine has the same room.
    """
    axes, ends = make(2 * FLAT), list(QUANTILE_SHARES.values())
    for cell in source.cells[:CURVES]:
        points = [(QUANTILE_SHARES[q], cell.intervals[q]) for q in QUANTILES if q in cell.intervals]
        if points:
            at, intervals = zip(*points, strict=True)
            label = f"{' · '.join(source.key(cell)) or cell.cell}, n={cell.n}"
            _banded(axes, at, intervals, label=label)
    axes.set_xscale("logit")
    axes.set_xticks(ends, [f"{100 * end:g}%" for end in ends])
    axes.minorticks_off()
    return _of_latency(source, axes, "share of requests")


def seconds(source: Source, make: Make = new_axes) -> Axes:
    """A curve a cell: the p99 of what was answered in each second of the window, means over runs,
    with the intervals of these as a band.
    """
    axes, level = make(2 * FLAT), source.result.repeat.confidence
    for cell, p99s in source.by_second[:CURVES]:
        known = [(second, of) for second, of in enumerate(p99s, 1) if of]
        intervals = [mean_interval(np.array(of), level) for _, of in known]
        label = f"{' · '.join(source.key(cell)) or cell.cell}, n={cell.n}"
        _banded(axes, [second for second, _ in known], intervals, label=label)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return _of_latency(source, axes, "second of the window")


def load(source: Source, make: Make = new_axes) -> Axes:
    """A curve for each combination of other levels: p50 (dashed) and p99 by the requests that were
    due in a second, means over runs, with their intervals as bands; a ring is around the knee.
    """
    axes = make(2 * FLAT)
    for curve in source.load_curves[:CURVES]:
        at = [cell.intervals[OFFERED].mean for cell in curve.cells]
        name = source.key_without(curve.cells[0], KEY)
        look: dict[str, Any] = {}
        for quantile, dashes in (("p50", "--"), ("p99", "-")):
            label = ", ".join(filter(None, (name, quantile, f"n={curve.cells[0].n}")))
            of_cells = [cell.intervals[quantile] for cell in curve.cells]
            look = {"color": _banded(axes, at, of_cells, label=label, ls=dashes, **look)}
        if knee := curve.knee:
            place = knee.intervals[OFFERED].mean, knee.intervals["p99"].mean
            axes.plot(*place, "o", ms=13, mfc="none", mew=1.5, **look)
            look |= {"xytext": (-9, 9), "textcoords": "offset points", "ha": "right"}
            look["parse_math"] = False
            axes.annotate(f"knee: {word(source.result, knee.factors)}", place, **look)
    return _of_latency(source, axes, "requests offered [1/s]")


def _banded(axes: Axes, at: Sequence[float], intervals: Sequence[Interval], **look: Any) -> Any:
    """A line of means and the band of their intervals; its colour."""
    (line,) = axes.plot(at, [i.mean for i in intervals], lw=1.2, marker=".", **look)
    low, high = zip(*((i.low, i.high) for i in intervals), strict=True)
    axes.fill_between(at, low, high, color=line.get_color(), alpha=0.15, lw=0)
    return line.get_color()


def _of_latency(source: Source, axes: Axes, across: str) -> Axes:
    """The axes with latencies upwards, on a logarithmic scale."""
    axes.set_yscale("log")
    axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
    for formatted in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        formatted(lambda value, _: f"{value:.12g}")
    level = share(source.result.repeat.confidence)
    axes.set_xlabel(f"{across}; bands are {level} intervals")
    axes.set_ylabel("latency [µs]")
    return _with_legend(axes)


def _with_legend(axes: Axes) -> Axes:
    """Of lines; a level is no formula there either."""
    for text in axes.legend(frameon=False).get_texts() if axes.lines else ():
        text.set_parse_math(False)
    return axes


def _ratios(source: Source, plot: Plot) -> Axes:
    """One row a comparison: the change in percent with its interval, the margin as a band."""
    family = source.comparisons[plot.metric]
    family = [*family, *(replace(c, level="control") for c in source.controls(family))]
    axes = new_axes(height_of(len(family)))
    margin = next((c.margin for c in family if c.margin is not None), None)
    if margin is not None:
        axes.axvspan(-margin * 100, margin * 100, color=BAND, lw=0)
    axes.axvline(0, color=AXIS, lw=0.8)
    for verdict in dict.fromkeys(c.verdict for c in family):
        of_level = [
            (y, c) for y, c in enumerate(family) if c.verdict == verdict
        ]  # NaN, where there is no interval, is not drawn
        y, low, high, ratio = np.array(
            [(y, percent(c.low), percent(c.high), percent(c.ratio)) for y, c in of_level]
        ).T
        colour, marker = VERDICTS.get(verdict, (AXIS, "o"))
        axes.hlines(y, low, high, color=colour, lw=1.8)
        face = PAPER if marker == "o" else colour
        axes.plot(ratio, y, marker, ms=6, color=colour, mfc=face)
        for at, c in of_level if len(family) <= LABELLED else ():
            label = " ".join((*in_short_of(c, source.comparisons[plot.metric]), c.verdict))
            place: Any = {"transform": axes.get_yaxis_transform(), "va": "center", "fontsize": 8}
            axes.text(1.01, at, f"{label}, n={c.n}", color=colour, **place)
    pairs = [(c.pair,) if source.several else () for c in family]
    labels = [(*pair, *c.context.values(), c.level) for pair, c in zip(pairs, family, strict=True)]
    _rows_axis(axes, [" · ".join(each) for each in labels])
    if family:
        title, level = source.result.describe(plot.metric).title, share(family[0].confidence)
        axes.set_xlabel(f"{title}: change against {family[0].names[1]} [%], {level} intervals")
    return axes


def titled(axes: Axes, label: str) -> Axes:
    """The axes with a label above them, to the right; "" for none."""
    if label:
        axes.set_title(label, loc="right", fontsize=9, fontweight="bold", color=WORSE)
    return axes


def height_of(rows: int) -> float:
    """The height of a drawing with so many rows, in inches."""
    return 0.8 + (0.26 * rows if rows <= LABELLED else min(0.26 * LABELLED + 0.004 * rows, 40.0))


def _cut(label: str) -> str:
    return label if len(label) <= LABEL_MAX else f"{label[:LABEL_MAX]}…"


def _rows_axis(axes: Axes, words: Iterable[str]) -> None:
    labels = list(map(_cut, words))
    if len(labels) <= LABELLED:
        axes.set_yticks(range(len(labels)), labels, parse_math=False)
        axes.grid(axis="y", color=BAND)
    else:
        axes.set_ylabel("row of the table")
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.margins(x=0.03)


_KINDS: Mapping[str, Callable[[Source, Plot], Axes]] = {
    "means": lambda source, plot: means(source, plot.metric),
    "order": lambda source, plot: order(source, plot.metric),
    "quantiles": lambda source, plot: quantiles(source),
    "seconds": lambda source, plot: seconds(source),
    "load": lambda source, plot: load(source),
    "ratios": _ratios,
    "fleet": lambda source, plot: source.add_on.spread(source.fleets[plot.metric][plot.number]),
}


class Plots:
    """Drawings of a result; each returns Axes, of a new figure unless `ax` is given."""

    def __init__(self, source: Source, samples: Callable[[], pd.DataFrame]) -> None:
        """samples: gives the frame of Results.samples."""
        self._source, self._samples = source, samples

    def means(self, metric: str = "throughput", ax: Axes | None = None) -> Axes:
        """A row a cell: every run, the mean, its interval. Errors: ReportError for a metric."""
        return self._titled(means(self._source, self._known(metric), _on(ax)))

    def order(self, metric: str = "throughput", ax: Axes | None = None) -> Axes:
        """Runs in order of execution against their cell's mean. Errors: as means."""
        return self._titled(order(self._source, self._known(metric), _on(ax)))

    def quantiles(self, ax: Axes | None = None) -> Axes:
        """Latencies of each cell by the share of requests. Errors: ReportError without any."""
        self._known("p50")
        return self._titled(quantiles(self._source, _on(ax)))

    def seconds(self, ax: Axes | None = None) -> Axes:
        """p99 by second of the window. Errors: ReportError where no window is longer than one."""
        if not self._source.by_second:
            raise ReportError("no run has requests in several seconds: `duration: 10s`")
        return self._titled(seconds(self._source, _on(ax)))

    def load(self, ax: Axes | None = None) -> Axes:
        """p50 and p99 by the requests offered, with the knee. Errors: ReportError without rates."""
        if not self._source.load_curves:
            raise ReportError("no rate of requests is swept here: `sweep: {rate: [...]}`")
        return self._titled(load(self._source, _on(ax)))

    def samples(self, run: int, counter: str | None = None, ax: Axes | None = None) -> Axes:
        """Interval samples of one run.

        A counter as `tcp.rtt_us`, or by default the throughput between samples. Errors:
        ReportError.
        """
        every = self._samples()
        rows = every.loc[every["run"] == run]
        if rows.empty:
            raise ReportError(
                f"run {run} has no samples; set their interval with `transfer: {{sample: ...}}`"
            )
        if counter is None:
            rows = rows.groupby(["side", "seconds"])["flow.bytes"].sum().reset_index()
            steps = rows.groupby("side")[["flow.bytes", "seconds"]].diff()
            counter = "Gb/s"
            rows[counter] = steps["flow.bytes"] * 8e-9 / steps["seconds"]
        elif counter not in rows:
            raise ReportError(
                f"the samples of run {run} have no {counter}; they have"
                f" {', '.join(rows.columns[4:])}"
            )
        elif rows["stream"].any():
            rows = rows.assign(side=rows["side"] + " " + rows["stream"].astype(str))
        axes = _on(ax)(FLAT)
        for side, group in rows.dropna(subset=[counter]).groupby("side", observed=True):
            axes.plot(group["seconds"], group[counter], ".-", ms=4, lw=1, label=str(side))
        axes.set_xlabel("time in the run [s]")
        axes.set_ylabel(counter)
        return self._titled(_with_legend(axes))

    def _titled(self, axes: Axes) -> Axes:
        return titled(axes, label_of(self._source.result))

    def _known(self, metric: str) -> str:
        known = self._source.result.metrics
        if metric not in known:
            raise ReportError(
                f"no metric {metric!r} here; there are {', '.join(metric_order(known)) or 'none'}"
            )
        return metric


def _on(ax: Axes | None) -> Make:
    """What gives these axes, or new ones that a notebook shows."""
    return lambda height: ax or shown_axes(height)
