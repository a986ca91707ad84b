"""The plots of one result, for notebooks."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from netbench.base.errors import ReportError
from netbench.read.cells import metric_order
from netbench.read.effects import effects_of
from netbench.report import plots
from netbench.report.drawings import rows_of
from netbench.report.label import label_of
from netbench.report.plots import Axes
from netbench.report.source import Source


class Plots:
    """Drawings of a result; each returns matplotlib Axes, on a pyplot figure of its own unless
    `ax` is given.
    """

    def __init__(self, source: Source, samples: Callable[[], pd.DataFrame]) -> None:
        """samples: gives the frame of Results.samples."""
        self._source, self._samples = source, samples

    def means(self, metric: str = "throughput", ax: Axes | None = None) -> Axes:
        """One row a cell: every run, the mean and its interval. Errors: ReportError for a metric
        that is not there.
        """
        rows = rows_of(self._source, self._known(metric))
        return self._titled(
            plots.means(
                rows,
                self._source.result.describe(metric),
                ax or plots.shown_axes(plots.height_of(len(rows.labels))),
            )
        )

    def order(self, metric: str = "throughput", ax: Axes | None = None) -> Axes:
        """Runs in order of execution against their cell's mean. Errors: as means."""
        return self._titled(
            plots.order(
                self._source.result.ok,
                self._source.result.describe(self._known(metric)),
                ax or plots.shown_axes(plots.FLAT),
            )
        )

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
        if counter is not None and counter not in rows:
            raise ReportError(
                f"the samples of run {run} have no {counter}; they have"
                f" {', '.join(rows.columns[4:])}"
            )
        if counter is not None:
            if rows["stream"].any():
                rows = rows.assign(side=rows["side"] + " " + rows["stream"].astype(str))
            return self._titled(plots.samples(rows, counter, ax or plots.shown_axes(plots.FLAT)))
        together: pd.DataFrame = rows.groupby(["side", "seconds"])["flow.bytes"].sum().reset_index()
        steps = together.groupby("side")[["flow.bytes", "seconds"]].diff()
        together["Gb/s"] = steps["flow.bytes"] * 8e-9 / steps["seconds"]
        return self._titled(plots.samples(together, "Gb/s", ax or plots.shown_axes(plots.FLAT)))

    def interaction(
        self,
        a: str,
        b: str,
        metric: str = "throughput",
        ax: Axes | None = None,
        pair: str | None = None,
    ) -> Axes:
        """The mean at each level of factor `a`, a line for each level of `b`, over the levels of
        the other crossed factors; of the first pair of hosts by default. Errors: ReportError for
        what is not there.
        """
        found = effects_of(self._source.result, self._known(metric))
        mine = [each for each in found if pair in (None, each.pair)]
        if not mine or mine[0].table is None or not {a, b} <= set(mine[0].crossed.factors):
            known = ", ".join(mine[0].crossed.factors) if mine else ""
            raise ReportError(
                f"{a} and {b} are not crossed here{f' on {pair}' if pair else ''}; crossed factors:"
                f" {known or (mine[0].why if mine else 'none')}"
            )
        unit = self._source.result.describe(metric)
        axes = ax or plots.shown_axes(plots.FLAT)
        return self._titled(plots.interaction(mine[0].means(a, b), (a, b), unit, axes))

    def _titled(self, axes: Axes) -> Axes:
        return plots.titled(axes, label_of(self._source.result))

    def _known(self, metric: str) -> str:
        known = self._source.result.metrics
        if metric not in known:
            raise ReportError(
                f"no metric {metric!r} here; there are {', '.join(metric_order(known)) or 'none'}"
            )
        return metric
