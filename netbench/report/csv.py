"""The tidy CSV: one row a cell, pair and metric; empty where a number is missing."""

from __future__ import annotations

from netbench.base.control_characters import spreadsheet_word
from netbench.read.cells import tidy
from netbench.report.build import Report


def render(report: Report) -> str:
    """`cell,pair,<each factor>,metric,unit,n,mean,low,high,precision,status`.

    Numbers in full, precision as a fraction of the mean.
    """
    table = tidy(report.source.result, report.source.cells).map(spreadsheet_word)
    table.columns = [spreadsheet_word(name) for name in table.columns]
    return str(table.to_csv(index=False, lineterminator="\n"))
