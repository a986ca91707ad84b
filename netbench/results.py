"""A result folder for notebooks: frames, plots, comparisons, and the report as text or HTML."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from netbench.base.errors import ReportError
from netbench.base.units import parse_share
from netbench.read.cells import tidy
from netbench.read.control import controls, holds
from netbench.report.build import Report, of_source
from netbench.report.label import label_of
from netbench.report.source import Source
from netbench.tables.table_frames import host_facts, run_columns, units_of

if TYPE_CHECKING:
    from netbench.report.plots import Plots

FIRST_SCREEN = "summary", "cells", "cautions"
COMPARED = "level baseline metric ratio low high p n verdict sentence".split()


class Results:
    """One result. Frames are computed when first asked for; nothing is written."""

    def __init__(self, source: Source) -> None:
        self.source = source

    @cached_property
    def plot(self) -> Plots:
        """Its plots; matplotlib is imported when they are first asked for."""
        from netbench.report.plots import Plots

        return Plots(self.source, lambda: self.samples)

    @property
    def name(self) -> str:
        """The campaign's name."""
        return self.source.result.name

    @property
    def path(self) -> Path:
        """The folder that was read."""
        return self.source.result.path

    @property
    def label(self) -> str:
        """What must stand beside every number of a result that was measured under software
        emulation, or in a lab's guests under KVM; "" for any other.
        """
        return label_of(self.source.result)

    @property
    def factors(self) -> tuple[str, ...]:
        """What was swept: columns of `runs` and `cells`, their levels in the plan's order."""
        return self.source.result.factors

    @property
    def units(self) -> Mapping[str, str]:
        """The unit of every metric column."""
        return units_of(self.source.result)

    @cached_property
    def runs(self) -> pd.DataFrame:
        """One row a run, failed ones too: run cell pair block boot round FACTORS status reason
        engaged started excluded noise, then metrics under their CSV names.

        `round`, from 1, is there in campaigns of several pairs: those of one ran side by side.
        `engaged` says why a run's mechanism did not engage, "" where it did; `excluded` why an ok
        run is not pooled with the others; `noise` what disturbed its block. NaN: that run has no
        such number. Those of controls are in `control_runs`. `.attrs["units"]` are the units,
        `.attrs["label"]` is `label`.
        """
        return self._named(self.source.result.runs)

    @cached_property
    def control_runs(self) -> pd.DataFrame:
        """The runs of controls, in the columns of `runs`."""
        return self._named(self.source.result.control_runs)

    def _named(self, runs: pd.DataFrame) -> pd.DataFrame:
        result = self.source.result
        frame = runs[run_columns(result)].copy()
        frame.attrs |= {"units": dict(self.units), "label": self.label}
        return frame

    @cached_property
    def cells(self) -> pd.DataFrame:
        """A row a metric: cell pair FACTORS metric unit n mean low high precision status."""
        frame = tidy(self.source.result, self.source.cells)
        frame.attrs["label"] = self.label
        return frame.astype(
            {name: pd.CategoricalDtype(self._levels(name)) for name in self.factors}
        )

    def _levels(self, factor: str) -> list[str]:
        return [str(level) for level in self.source.result.runs[factor].cat.categories]

    @cached_property
    def facts(self) -> pd.DataFrame:
        """What was read from the hosts: host boot fact value; value is missing where it could not
        be read, `why` says why.
        """
        return host_facts(self.source.result)

    @cached_property
    def samples(self) -> pd.DataFrame:
        """Interval samples of all runs that have some: run side seconds (from that side's first
        sample) stream, then GROUP.COUNTER as the kernel gave it.
        """
        frame = self.table("samples").drop(columns=["campaign", "result"])
        rows: pd.DataFrame = frame.sort_values(["run", "seconds", "side", "stream"])
        return rows.reset_index(drop=True)

    def table(self, name: str, arrow: bool = False) -> Any:
        """A table as `export` and `query` have it: `runs` (every record, controls too), `cells`,
        `samples` or `facts`, as a pandas frame or as a pyarrow.Table. Errors: ReportError.
        """
        from netbench.tables.database import TABLES, Database

        if name not in TABLES:
            raise ReportError(f"no table {name!r}; tables: {', '.join(TABLES)}")
        with Database([self.source]) as database:
            return database.arrow(name) if arrow else database.frame(name)

    def compare(
        self,
        factor: str,
        baseline: str | int | None = None,
        metric: str = "throughput",
        margin: str | float | None = None,
    ) -> pd.DataFrame:
        """Each level of a factor against a baseline (its first level by default), all other factors
        equal: one row a context and pair. `margin`: `5%` or 0.05.

        Columns: pair, the other factors, level, baseline, ratio low high (of the ratio), p, n,
        verdict, sentence. Errors: ReportError.
        """
        result = self.source.result
        if factor not in result.swept or metric not in result.metrics:
            raise ReportError(
                f"no factor {factor!r} or no metric {metric!r} here; "
                f"factors: {', '.join(result.swept)}; metrics: {', '.join(self.units)}"
            )
        levels = self._levels(factor)
        base = levels[0] if baseline is None else str(baseline)
        if base not in levels:
            raise ReportError(f"{factor} has no level {base!r}; its levels: {', '.join(levels)}")
        try:
            within = parse_share(margin) if isinstance(margin, str) else margin
        except ValueError as error:
            raise ReportError(f"margin: {error}") from error
        if not (within is None or 0 <= within < 1):
            raise ReportError(f"expected a margin as a share from 0 on, below 1, got {margin}")
        family = self.source.compare(factor, base, metric, within)
        frame = pd.DataFrame(
            [{"pair": c.pair, **c.context, **{n: getattr(c, n) for n in COMPARED}} for c in family]
        )
        frame.attrs["label"] = self.label
        return frame

    def controls(self, metric: str = "throughput") -> pd.DataFrame:
        """Each control against its baseline: one row a context and pair; none where the campaign
        has no control.

        Columns: pair, the other factors, metric, ratio low high (of the ratio), p, n, holds
        (whether the interval holds 1).
        """
        family = controls(self.source.result, metric)
        columns = "metric ratio low high p n".split()
        return pd.DataFrame(
            {"pair": c.pair, **c.context, **{n: getattr(c, n) for n in columns}, "holds": holds(c)}
            for c in family
        )

    @cached_property
    def report(self) -> Report:
        """The report as data, for netbench.report's renderers."""
        return of_source(self.source)

    def text(self, width: int = 80) -> str:
        """The report as text."""
        from netbench.report import text

        return text.render(self.report, width)

    def html(self) -> str:
        """The report as one HTML page."""
        from netbench.report import html

        return html.render(self.report)

    def _repr_html_(self) -> str:
        from netbench.report import html

        shown = [each for each in self.report.sections if each.key in FIRST_SCREEN]
        return html.fragment(shown, self.label)

    def __repr__(self) -> str:
        return (
            f"<Results {self.name!r}: {len(self.source.result.runs)} runs of"
            f" {len(self.source.cells)} cells, {self.path}>"
        )
