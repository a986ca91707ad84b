"""Tables as files: Parquet or CSV."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import duckdb

from netbench.base.control_characters import escape_controls, spreadsheet_word
from netbench.base.errors import RequestError
from netbench.base.whole_file import replacing
from netbench.report.label import label_of
from netbench.report.source import Source
from netbench.tables.database import Database, refusing
from netbench.tables.samples import name, quoted
from netbench.tables.table_frames import units_of

UNITS = "netbench.base.units"
"""The key in a file's metadata under which the units of metrics are, as JSON."""
FORMULA = r"^\s*[=+\-@]"
CONTROL = (  # as base.control_characters has it
    r"[\x01-\x08\x0b-\x1f\x7f-\x{9f}\x{61c}\x{200e}\x{200f}\x{2028}-\x{202e}\x{2066}-\x{2069}]"
)


def write_table(paths: Sequence[Path], table: str, file: Path) -> list[str]:
    """Write one table of some results as `.parquet` or `.csv`, by the file's suffix; what the
    reader should know of it. Errors: RequestError, PlaceError.
    """
    if file.suffix not in (".parquet", ".csv"):
        raise RequestError(f"export: {file}: expected a name that ends in .parquet or .csv")
    with Database(map(Source.of, paths)) as database:
        database.make(table)
        columns = database.connection.table(table)
        if file.suffix == ".csv":
            select, how = f"SELECT {_for_spreadsheets(columns)} FROM {table}", "FORMAT csv, HEADER"
        else:
            of_results = (units_of(each.result) for each in reversed(database.sources))
            units = {name: unit for each in of_results for name, unit in each.items()}
            metadata = f"{{{name(UNITS)}: {quoted(json.dumps(units))}}}"
            how = f"FORMAT parquet, COMPRESSION zstd, KV_METADATA {metadata}"
            select = f"SELECT * FROM {table}"
        with replacing(file, make_folder=True) as draft, refusing("export"):
            where = f"{quoted(str(draft))} (USE_TMP_FILE false, {how})"
            database.connection.execute(f"COPY ({select}) TO {where}")
        labels = dict.fromkeys(label_of(each.result) for each in database.sources)
        unsaid = [] if "label" in columns.columns else [label for label in labels if label]
    return [*database.notes, *(f"{file}: {label}; no column says so" for label in unsaid)]


def _for_spreadsheets(table: duckdb.DuckDBPyRelation) -> str:
    """The columns of a table such that no text is taken for a formula, or moves a terminal."""
    return ", ".join(
        f"CASE WHEN regexp_matches({name(column)}::VARCHAR, '{FORMULA}') AND"
        f" try_cast({name(column)} AS DOUBLE) IS NULL THEN '''' ELSE '' END"
        f" || regexp_replace({name(column)}::VARCHAR, '{CONTROL}', '\ufffd', 'g') AS {alias}"
        if str(kind).startswith(("VARCHAR", "ENUM"))
        else f"{name(column)} AS {alias}"
        for column, kind in zip(table.columns, table.types, strict=True)
        for alias in [name(str(spreadsheet_word(escape_controls(column))))]
    )


def write_text(text: str, file: Path) -> None:
    """Write a text, whole or not at all. Errors: PlaceError."""
    with replacing(file, make_folder=True) as draft:
        draft.write_text(text, encoding="utf-8", errors="backslashreplace")
