"""Frames of cells and of comparisons that a notebook shows as the page does: means with their
intervals, and findings with their drawings. Everything else about them is pandas'.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from netbench.read.cells import TIDY
from netbench.read.metrics import describe
from netbench.report.blocks import Column, Finding, Span, Value, tabled
from netbench.report.cards import card
from netbench.report.pages import html_table, render_page
from netbench.stats.comparison import Comparison
from netbench.stats.intervals import Interval
from netbench.stats.words import percent

COMPARED = ("level", "baseline", "metric", "ratio", "low", "high", "p", "n", "verdict", "needed")
SENTENCE = "sentence"


class ShownFrame(pd.DataFrame):
    """A frame with a look of its own. A part of it that lacks one of its columns has pandas'."""

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return type(self)

    def _blocks(self) -> list[dict[str, Any]]:
        """What is shown, as the templates take it; nothing where the columns are others."""
        return []

    def _repr_html_(self) -> str | None:
        blocks = self._blocks()
        if not blocks or not len(self):
            return super()._repr_html_()  # type: ignore[misc,no-any-return]
        section = {"key": "frame", "title": "", "blocks": blocks}
        return render_page("fragment.html", sections=[section], label=self.attrs.get("label", ""))

    def _shown_rows(self) -> int:
        """As many as pandas shows."""
        return int(pd.get_option("display.max_rows") or len(self))


class CellFrame(ShownFrame):
    """Rows of analysis.cells.tidy: one row is shown for each cell and pair, one column for each
    metric.
    """

    def _blocks(self) -> list[dict[str, Any]]:
        if (
            not {"cell", "pair", *TIDY} <= set(self)
            or self.duplicated(["cell", "pair", "metric"]).any()
        ):
            return []
        pairs = ["pair"] if self["pair"].nunique() > 1 else []
        levels = [name for name in self if name not in ("cell", "pair", *TIDY)]
        keys = levels + pairs or ["cell"]
        units = dict(zip(self["metric"], self["unit"], strict=True))
        parts = [part for _, part in self.groupby(["cell", "pair"], sort=False, observed=True)]
        most = self._shown_rows()
        notes = ["± is the half-width of the interval of the mean.", self.attrs.get("label", "")]
        notes += [f"The first {most} of {len(parts)} cells."] if len(parts) > most else []
        rows = [_cell_row(part, keys, units) for part in parts[:most]]
        return [html_table(tabled("", rows, filter(None, notes)))]


def _cell_row(
    part: pd.DataFrame, keys: Sequence[Any], units: Mapping[Any, Any]
) -> dict[Column, Value]:
    """A cell's levels, its mean in each metric, n and status."""
    first, none = part.iloc[0], part.iloc[0].isna()
    known: dict[Any, Any] = {row.metric: row for row in part.itertuples(index=False)}
    row: dict[Column, Value] = {
        Column(str(name), kind="key"): "" if none[name] else str(first[name]) for name in keys
    }
    for metric, unit in units.items():
        found = known.get(metric)
        mean = None if found is None or pd.isna(found.mean) else _interval(found)
        row[Column(describe(str(metric)).title, str(unit))] = mean
    least, most = part["n"].min(), part["n"].max()
    row[Column("n")] = int(least) if least == most else f"{least} to {most}"
    return {**row, Column("status"): str(first["status"])}


def _interval(row: Any) -> Interval:
    half = max(row.high - row.mean, row.mean - row.low)
    return Interval(int(row.n), row.mean, row.low, row.high, half_width=half)


class ComparisonFrame(ShownFrame):
    """Rows of `comparison_row`: each is shown as a card."""

    def _blocks(self) -> list[dict[str, Any]]:
        if not {*COMPARED, SENTENCE} <= set(self):
            return []
        context = [name for name in self if name not in ("pair", *COMPARED, SENTENCE)]
        pairs = ["pair"] if "pair" in self and self["pair"].nunique() > 1 else []
        most = self._shown_rows()
        rows = self.iloc[:most].to_dict("records")
        cards = [card(_finding(row, [*pairs, *context])) for row in rows]
        lines = [f"The first {most} of {len(self)} comparisons."] if len(self) > most else []
        return [{"kind": "findings", "cards": cards, "lines": lines}]


def _finding(row: Mapping[Any, Any], context: Sequence[Any]) -> Finding:
    where = " ".join(
        str(row[name]) if name == "pair" else f"{name}={row[name]}"
        for name in context
        if not pd.isna(row[name]) and row[name] != ""
    )
    at, low, high = (percent(row[name]) for name in ("ratio", "low", "high"))
    span = Span(where, at, low, high, row["verdict"])
    sentence = f"{row[SENTENCE]}."
    return Finding(f"{where}: {sentence}" if where else sentence, (span,), "%", 0.0)


def comparison_row(c: Comparison) -> dict[str, Any]:
    """A comparison as a row: pair, the levels of the other factors, COMPARED and its sentence."""
    compared = {name: getattr(c, name) for name in COMPARED}
    return {"pair": c.pair, **c.context, **compared, SENTENCE: c.sentence}
