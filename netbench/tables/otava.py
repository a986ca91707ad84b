"""Results as Apache Otava reads them from CSV: one row a result, one column a metric and cell.

Source: Otava's docs/CSV.md. Every row needs every metric, so what some results lack is left out.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from netbench.base.control_characters import spreadsheet_word
from netbench.base.errors import RequestError
from netbench.report.source import Source
from netbench.tables.table_frames import kernels, result_id

HEAD = ("time", "commit", "campaign", "result")


def table(sources: Sequence[Source]) -> tuple[str, list[str]]:
    """The CSV, rows in order of their first run: time (of that run, UTC) commit (kernel releases)
    campaign result, then `METRIC[CELL]`, a mean. Also the columns that are left out, since not
    every result has them. Errors: RequestError where nothing is left.
    """
    rows = sorted((row for row in map(_row, sources) if row is not None), key=lambda row: row[0])
    columns = list(dict.fromkeys(name for _, _, means in rows for name in means))
    whole = [name for name in columns if all(name in means for _, _, means in rows)]
    if not whole:
        raise RequestError(
            "export: the results have no cell and metric in common; Otava needs all of a row's"
            " metrics in every row"
        )
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([spreadsheet_word(word) for word in (*HEAD, *whole)])
    for time, names, means in rows:
        stamp = time.strftime("%Y-%m-%d %H:%M:%S +0000")
        words = [spreadsheet_word(word) for word in (stamp, *names)]
        writer.writerow([*words, *(repr(means[name]) for name in whole)])
    return out.getvalue(), [name for name in columns if name not in whole]


def _row(source: Source) -> tuple[datetime, tuple[str, str, str], Mapping[str, float]] | None:
    """When a result began, what it is, and its means; None without any run."""
    result = source.result
    if not len(result.runs):
        return None
    several = len(result.plan.pairs) > 1
    means = {
        f"{metric}[{cell.cell}{f' {cell.pair}' if several else ''}]": float(interval.mean)
        for cell in source.cells
        for metric, interval in cell.intervals.items()
    }
    began = result.runs["started"].min().to_pydatetime().astimezone(UTC)
    return began, (kernels(result), *result_id(result)), means
