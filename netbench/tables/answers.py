"""Answers of SQL as people and programs read them: text in columns, JSON."""

from __future__ import annotations

import math
from datetime import date, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from netbench.tables.database import Answer


def in_columns(answer: Answer) -> str:
    """Columns as wide as their widest word; numbers are flush right, what is missing is empty."""
    columns = []
    for at, name in enumerate(answer.columns):
        values = [row[at] for row in answer.rows if row[at] is not None]
        numbers = (isinstance(v, int | float | Decimal) and not isinstance(v, bool) for v in values)
        words = [name, *("" if row[at] is None else str(row[at]) for row in answer.rows)]
        width = max(map(len, words))
        words.insert(1, "-" * width)
        justify = str.rjust if values and all(numbers) else str.ljust
        columns.append([justify(word, width) for word in words])
    return "\n".join("  ".join(words).rstrip() for words in zip(*columns, strict=True))


def as_json(answer: Answer) -> list[dict[str, Any]]:
    """One object a row, whose keys are the columns."""
    return [dict(zip(answer.columns, map(_plain, row), strict=True)) for row in answer.rows]


def _plain(value: Any) -> Any:
    """A value of SQL as JSON has it."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(each) for each in value]
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no word for it
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
