"""Answers of SQL as people and programs read them: text in columns, JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from netbench.tables.database import Answer


def in_columns(answer: Answer) -> str:
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


def as_json(answer: Answer) -> list[dict[str, Any]]:
    """One object a row, whose keys are the columns."""
    return [dict(zip(answer.columns, map(_plain, row), strict=True)) for row in answer.rows]


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
