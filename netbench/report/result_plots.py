"""The plots of one result, for notebooks."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from netbench.analysis.cells import metric_order
from netbench.errors import ReportError
from netbench.report import plots
from netbench.report.drawings import rows_of
from netbench.report.label import label_of
from netbench.report.plots import Axes
from netbench.report.source import Source


class Plots:
    """Drawings of a result; each returns matplotlib Axes, on a pyplot figure of its own unless
    `axes` is given.
    """

    def __init__(self, source: Source, samples: Callable[[], pd.DataFrame]) -> None:
        """samples: gives the frame of samples.samples_of."""
        self._source, self._samples = source, samples

    def means(self, metric: str = "throughput", axes: Axes | None = None) -> Axes:
        """One row a cell: every run, the mean and its interval. Errors: ReportError for a metric
        that is not there.
        """
        rows = rows_of(self._source, self._known(metric))
        return self._titled(
            plots.means(
                rows,
                self._source.result.describe(metric),
                axes or plots.shown_axes(plots.height_of(len(rows.labels))),
            )
        )

    def order(self, metric: str = "throughput", axes: Axes | None = None) -> Axes:
        """Runs in order of execution against their cell's mean. Errors: as means."""
        return self._titled(
            plots.order(
                self._source.result.ok,
                self._source.result.describe(self._known(metric)),
                axes or plots.shown_axes(plots.FLAT),
            )
        )

    def samples(self, run: int, counter: str | None = None, axes: Axes | None = None) -> Axes:
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
        if counter is not None and counter not in rows:
            raise ReportError(
                f"the samples of run {run} have no {counter}; they have"
                f" {', '.join(rows.columns[4:])}"
            )
        if counter is not None:
            if rows["stream"].any():
                rows = rows.assign(side=rows["side"] + " " + rows["stream"].astype(str))
            return self._titled(plots.samples(rows, counter, axes or plots.shown_axes(plots.FLAT)))
        together: pd.DataFrame = rows.groupby(["side", "seconds"])["flow.bytes"].sum().reset_index()
        steps = together.groupby("side")[["flow.bytes", "seconds"]].diff()
        together["Gb/s"] = steps["flow.bytes"] * 8e-9 / steps["seconds"]
        return self._titled(plots.samples(together, "Gb/s", axes or plots.shown_axes(plots.FLAT)))

    def _titled(self, axes: Axes) -> Axes:
        return plots.titled(axes, label_of(self._source.result))

    def _known(self, metric: str) -> str:
        known = self._source.result.metrics
        if metric not in known:
            raise ReportError(
                f"no metric {metric!r} here; there are {', '.join(metric_order(known))}"
            )
        return metric
