"""DuckDB over the tables of results, each of which is made when a query asks for it."""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import date, time, timedelta
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pandas as pd

from netbench.base.errors import RequestError
from netbench.facts.registry import FACTS
from netbench.report.source import Source
from netbench.result.codec import unreadable
from netbench.tables.samples import quoted, select_samples
from netbench.tables.table_frames import FRAMES, alike, result_id

SAMPLES, RUNS = "samples", "runs"
TABLES = (*FRAMES, SAMPLES)
_VARYING = ", ".join(f"'{fact.name}'" for fact in FACTS if fact.varies)
_TEXT = (Path(__file__).parent / "views.sql").read_text(encoding="utf-8")
VIEWS = {
    statement.split()[4]: statement.replace("(VARYING)", f"({_VARYING})")
    for statement in re.findall(r"^CREATE OR REPLACE VIEW [^;]*", _TEXT, re.MULTILINE)
}
"""The statement that makes each view, by its name."""
MEMORY = "2GB"  # what DuckDB keeps; beyond, it uses files


class Answer(NamedTuple):
    """What a query gave: names of columns, rows of Python's values; `notes`: what was left out."""

    columns: Sequence[str]
    rows: Sequence[tuple[Any, ...]]
    notes: Sequence[str] = ()

    def text(self) -> str:
        """Columns as wide as their widest word; numbers are flush right, what is missing empty."""
        columns = []
        for at, name in enumerate(self.columns):
            values = [row[at] for row in self.rows if row[at] is not None]
            numbers = (
                isinstance(v, int | float | Decimal) and not isinstance(v, bool) for v in values
            )
            words = [name, *("" if row[at] is None else str(row[at]) for row in self.rows)]
            width = max(map(len, words))
            words.insert(1, "-" * width)
            justify = str.rjust if values and all(numbers) else str.ljust
            columns.append([justify(word, width) for word in words])
        return "\n".join("  ".join(words).rstrip() for words in zip(*columns, strict=True))

    def json(self) -> list[dict[str, Any]]:
        """One object a row, whose keys are the columns."""
        return [dict(zip(self.columns, map(_plain, row), strict=True)) for row in self.rows]


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


class Database(ExitStack):
    """The tables of some results. A context: what it writes meanwhile is removed at its end."""

    def __init__(self, sources: Iterable[Source]) -> None:
        """Errors: RequestError for a result that is given twice."""
        super().__init__()
        self.sources = list(sources)
        self._of_runs, self._odd = alike(self.sources)  # cells have a column of units
        ids = [result_id(source.result) for source in self.sources]
        if twice := [each for each in ids if ids.count(each) > 1]:
            raise RequestError(f"{'/'.join(twice[0])} is given twice; name each result once")
        self._made: set[str] = set()

    @cached_property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """Without network, and without variables of this program as tables."""
        folder = self.enter_context(tempfile.TemporaryDirectory(prefix="netbench-"))
        connection = duckdb.connect(
            config={
                "temp_directory": folder,
                "memory_limit": MEMORY,
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "python_enable_replacements": "false",
            }
        )
        return self.enter_context(connection)

    def make(self, table: str) -> None:
        """Make a table: a view of that name over all results."""
        if table in self._made:
            return
        self._made.add(table)
        if table in VIEWS:
            for needed in named(VIEWS[table], TABLES):
                self.make(needed)
            self.connection.execute(VIEWS[table])
            return
        parts = [self._part(table, number) for number in range(len(self.sources))]
        self.connection.execute(f"CREATE VIEW {table} AS {' UNION ALL BY NAME '.join(parts)}")

    def _part(self, table: str, number: int) -> str:
        """The SELECT of one result's rows."""
        source = (self._of_runs if table == RUNS else self.sources)[number]
        if table == SAMPLES:
            campaign, result = map(quoted, result_id(source.result))
            connection = self.connection
            try:
                rows = select_samples(connection, source.result.path)
            except (duckdb.Error, OSError, ValueError) as error:
                raise unreadable(source.result.path / SAMPLES, f"no samples: {error}") from error
            return f"SELECT {campaign} AS campaign, {result} AS result, * FROM ({rows})"
        view = f"{table}_{number}"
        self.connection.register(view, FRAMES[table](source))
        return f"SELECT * FROM {view}"

    def query(self, sql: str) -> Answer:
        """The answer of the last statement. Errors: RequestError with what DuckDB says."""
        if re.fullmatch(r"\s*SHOW\s+TABLES\s*;?\s*", sql, re.IGNORECASE):
            return Answer(["name"], [(name,) for name in (*TABLES, *VIEWS)])
        with refusing("query"):
            for table in named(sql, (*TABLES, *VIEWS)):
                self.make(table)
            answer = self.connection.execute(sql.encode().decode())
            if answer is None:
                raise RequestError(
                    f"query: {sql!r} holds no statement; write one, such as 'SELECT * FROM cells'"
                )
            columns = [each[0] for each in answer.description or ()]
            return Answer(columns, answer.fetchall(), self.notes)

    @property
    def notes(self) -> list[str]:
        """What was left out of the tables that were made."""
        return self._odd if RUNS in self._made else []

    def frame(self, table: str) -> pd.DataFrame:
        """A table as a frame of pandas."""
        self.make(table)
        frame: pd.DataFrame = self.connection.table(table).df()
        return frame

    def arrow(self, table: str) -> Any:
        """A table as a pyarrow.Table. Errors: RequestError without pyarrow."""
        self.make(table)
        try:
            return self.connection.table(table).to_arrow_table()
        except ModuleNotFoundError as error:
            raise RequestError(
                "tables of Arrow need pyarrow; put it beside netbench: `pip install pyarrow`"
            ) from error


def named(sql: str, tables: Iterable[str]) -> Iterator[str]:
    """The tables that a statement names."""
    return (each for each in tables if re.search(rf"\b{each}\b", sql, re.IGNORECASE))


@contextmanager
def refusing(verb: str) -> Iterator[None]:
    """DuckDB's errors, and those of a text that is not UTF-8, as RequestError."""
    try:
        yield
    except (duckdb.Error, UnicodeEncodeError) as error:
        if "pytz" in str(error):
            raise RequestError(
                f"{verb}: a column of the answer has a time zone; cast it, such as now()::TIMESTAMP"
            ) from error
        raise RequestError(f"{verb}: {error}") from error
