"""`query`: SQL over the tables of results."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from netbench.cli.output import say, say_json
from netbench.cli.verb import Verb, add_paths

if TYPE_CHECKING:
    from netbench.tables.database import Answer


def _run(options: argparse.Namespace) -> int:
    from netbench import api

    answer = api.query(options.sql, options.paths)
    if options.json:
        say_json([dict(zip(answer.columns, map(_plain, row), strict=True)) for row in answer.rows])
    elif answer.columns:
        say(_table(answer))
    return 0


def _table(answer: Answer) -> str:
    """Columns as wide as their widest word; numbers are flush right, what is missing is empty."""
    words = [["" if value is None else str(value) for value in row] for row in answer.rows]
    rows = [list(answer.columns), *words]
    widths = [max(len(row[i]) for row in rows) for i in range(len(answer.columns))]
    right = [_are_numbers([row[i] for row in answer.rows]) for i in range(len(widths))]
    lines = [
        "  ".join(
            word.rjust(width) if to_right else word.ljust(width)
            for word, width, to_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in rows
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def _are_numbers(values: Sequence[Any]) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(
        isinstance(value, int | float | Decimal) and not isinstance(value, bool) for value in known
    )


def _plain(value: Any) -> Any:
    """A value of SQL as JSON has it."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(each) for each in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no word for it
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sql",
        metavar="SQL",
        help="one statement or several, as DuckDB takes them, over the tables runs, cells, samples"
        " and facts; the answer of the last one is printed",
    )
    add_paths(parser)


VERB = Verb("query", "SQL over the tables of results", _run, _add_arguments, to_json=True)
