"""Runs as ministat(1) reads them: a file for each cell and metric, one value a line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from netbench.base.control_characters import escape_controls
from netbench.read.cells import metric_order, rows_by_cell
from netbench.read.result import Result, counting
from netbench.report.label import label_of
from netbench.tables.table_frames import result_id

LONGEST = 200  # characters of a file's name


def files(results: Sequence[Result]) -> Iterator[tuple[str, str]]:
    """`METRIC/FACTOR=LEVEL,....txt`, which begins with the result's name where there are several,
    and what it holds: the values of the runs that count, in order of execution.
    """
    taken: dict[str, int] = {}
    for result in results:
        campaign, identity = result_id(result)
        counted = counting(result.runs)
        words_of = {
            cell.cell: [f"{factor}={level}" for factor, level in cell.factors.items()]
            for cell in result.cells
        }
        for (cell, pair), rows in rows_by_cell(counted).items():
            words = [
                *([campaign, identity] if len(results) > 1 else []),
                *words_of[cell],
                *([pair] if len(result.plan.pairs) > 1 else []),
            ]
            name = _file(",".join(words) or campaign)
            taken[name] = taken.get(name, 0) + 1
            number = f"-{taken[name]}" if taken[name] > 1 else ""
            for metric in metric_order(result.metrics):
                values = counted[metric].iloc[rows].dropna().tolist()
                if values:
                    note = "; ".join(filter(None, (result.describe(metric).unit, label_of(result))))
                    about = f"# {campaign}/{identity} {cell} {pair} {metric} ({note})"
                    head = " ".join(escape_controls(about).split())
                    text = "\n".join([head, *map(repr, values), ""])
                    yield f"{_file(metric)}/{name}{number}.txt", text


def _file(text: str) -> str:
    """A text as part of a file's name."""
    return re.sub(r"[^\w.,=+-]+", "_", text)[:LONGEST].lstrip(".") or "_"
