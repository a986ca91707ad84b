"""Tables as files: Parquet, CSV, or all of them as one dataset in a folder, partitioned by campaign
and result.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import duckdb

from netbench.base.control_characters import escape_controls, spreadsheet_word
from netbench.base.errors import RequestError
from netbench.base.opening import files_inside, open_file
from netbench.base.whole_file import replacing
from netbench.report.label import label_of
from netbench.report.source import Source
from netbench.result.bundles import folder_of
from netbench.result.files import read_plan
from netbench.tables.database import TABLES, Database, refusing, select_archived
from netbench.tables.samples import name, quoted
from netbench.tables.table_frames import units_of
from netbench.tables.views import VIEWS, create

METADATA = {"units": "netbench.base.units", "content": "netbench.content"}
OF_PARTITION = ("campaign", "result")
VIEWS_FILE = "views.sql"
FORMULA = r"^\s*[=+\-@]"
_READ = ("plan.json", "facts.json", "records.jsonl", "samples/noise.jsonl")


def write_table(paths: Sequence[Path], table: str, file: Path) -> list[str]:
    """Write one table of some results as `.parquet` or `.csv`, by the file's suffix; what the
    reader should know of it. Errors: RequestError, PlaceError.
    """
    if file.suffix not in (".parquet", ".csv"):
        raise RequestError(
            f"export: {file}: expected a name that ends in .parquet or .csv, or a folder's"
        )
    with Database(map(Source.of, paths)) as database:
        units = {k: v for each in database.sources for k, v in units_of(each.result).items()}
        if file.suffix == ".csv":
            _write(database, f"SELECT {_for_spreadsheets(database, table)} FROM {table}", file)
        else:
            database.make(table)
            _write(database, f"SELECT * FROM {table}", file, {"units": units})
        labels = {label: None for each in database.sources if (label := label_of(each.result))}
        has_column = any(column == "label" for column, _ in database.columns(table))
    return [] if has_column else [f"{file}: {label}; no column says so" for label in labels]


def write_dataset(paths: Sequence[Path], folder: Path) -> list[str]:
    """Write all tables of some results as one dataset, `TABLE/campaign=C/result=R/TABLE.parquet`; a
    result that is there already, with the same records, stays. What was written: `campaign/result`
    of each. Errors: RequestError, PlaceError.
    """
    written = []
    for path in paths:
        read = folder_of(path)
        content = {"content": content_of(read)}
        campaign, identity = read_plan(read / "plan.json").name, read.name
        place = f"campaign={quote(campaign, safe='')}/result={quote(identity, safe='')}"
        files = {table: folder / table / place / f"{table}.parquet" for table in TABLES}
        for table, file in files.items():
            if file.resolve() != folder.resolve() / table / place / file.name:
                raise RequestError(f"{file.parent}: a link leads out of the dataset; remove it")
        if all(_has(file, content) for file in files.values()):
            continue
        with Database([Source.of(path)]) as database:
            result = database.sources[0].result
            for table, file in files.items():
                database.make(table)
                metadata = {"units": units_of(result), **content}
                columns = f"SELECT * EXCLUDE ({', '.join(OF_PARTITION)}) FROM {table}"
                _write(database, columns, file, metadata)
            written.append(f"{campaign}/{identity}")
    if written:
        write_text(_views(), folder / VIEWS_FILE)
    return written


def _views() -> str:
    """The statements that make tables and views of a dataset in the working directory."""
    tables = (f"CREATE OR REPLACE VIEW {t} AS {select_archived(t, None)}" for t in TABLES)
    return "".join(f"{each};\n" for each in (*tables, *map(create, VIEWS)))


def content_of(folder: Path) -> str:
    """A hash over what the tables of a result are made from; of samples only names and sizes."""
    digest = hashlib.sha256()
    for name_ in _READ:
        if (file := folder / name_).is_file():
            with open_file(file, name_.count("/") + 1) as opened:
                digest.update(hashlib.file_digest(opened, "sha256").digest())
    for sample in files_inside(folder, "samples/[0-9]*.jsonl"):
        digest.update(f"{sample.name} {sample.stat().st_size}\n".encode())
    return digest.hexdigest()


def _has(file: Path, content: Mapping[str, str]) -> bool:
    """Whether a file of a dataset was made from the same content."""
    if not file.is_file():
        return False
    try:
        rows = duckdb.execute(
            "SELECT decode(value) FROM parquet_kv_metadata(?) WHERE decode(key) = ?",
            [str(file), METADATA["content"]],
        ).fetchall()
    except duckdb.Error:
        return False  # such as one that another program cut short
    return rows == [(json.dumps(content["content"]),)]


def _for_spreadsheets(database: Database, table: str) -> str:
    """The columns of a table such that no text is taken for a formula."""
    return ", ".join(
        f"CASE WHEN regexp_matches({name(column)}, '{FORMULA}') AND"
        f" try_cast({name(column)} AS DOUBLE) IS NULL THEN '''' || {name(column)}"
        f" ELSE {name(column)} END AS {alias}"
        if kind == "VARCHAR"
        else f"{name(column)} AS {alias}"
        for column, kind in database.columns(table)
        for alias in [name(str(spreadsheet_word(escape_controls(column))))]
    )


def _write(
    database: Database, select: str, file: Path, metadata: Mapping[str, object] | None = None
) -> None:
    """Write what a SELECT gives, whole or not at all. Errors: PlaceError."""
    how = "FORMAT csv, HEADER"
    if metadata is not None:
        pairs = ", ".join(
            f"{name(METADATA[key])}: {quoted(json.dumps(value))}" for key, value in metadata.items()
        )
        how = f"FORMAT parquet, COMPRESSION zstd, KV_METADATA {{{pairs}}}"
    with replacing(file, make_folder=True) as draft, refusing("export"), _system_errors(draft):
        database.connection.execute(f"COPY ({select}) TO {quoted(str(draft))} ({how})")


@contextmanager
def _system_errors(draft: Path) -> Iterator[None]:
    """What DuckDB could not write as the OSError that it met, which it tells within a text."""
    try:
        yield
    except duckdb.IOException as error:
        number = re.search(r'"errno":"(\d+)"', str(error))
        if number and draft.name in str(error):
            raise OSError(int(number[1]), os.strerror(int(number[1]))) from error
        raise


def write_text(text: str, file: Path) -> None:
    """Write a text, whole or not at all. Errors: PlaceError."""
    with replacing(file, make_folder=True) as draft:
        draft.write_text(text, encoding="utf-8", errors="backslashreplace")
