"""Tables as files: Parquet, CSV, or all of them as one dataset in a folder, partitioned by campaign
and result.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import duckdb

from netbench.base.control_characters import escape_controls, spreadsheet_word
from netbench.base.errors import RequestError
from netbench.base.opening import files_inside, open_file, read_inside
from netbench.base.whole_file import replacing
from netbench.report.label import label_of
from netbench.report.source import Source
from netbench.result.bundles import folder_of
from netbench.result.files import read_plan
from netbench.tables.database import TABLES, VIEWS, Database, refusing, select_archived
from netbench.tables.samples import name, quoted
from netbench.tables.table_frames import units_of

UNITS = "netbench.base.units"
"""The key in a file's metadata under which the units of metrics are, as JSON."""
RESULT = "netbench.result"
"""The key under which a dataset's files say of which result they are."""
VIEWS_FILE = "views.sql"
FORMULA = r"^\s*[=+\-@]"
_READ = ("plan.json", "facts.json", "records.jsonl")


def write_table(paths: Sequence[Path], table: str, file: Path) -> list[str]:
    """Write one table of some results as `.parquet` or `.csv`, by the file's suffix; what the
    reader should know of it. Errors: RequestError, PlaceError.
    """
    if file.suffix not in (".parquet", ".csv"):
        raise RequestError(
            f"export: {file}: expected a name that ends in .parquet or .csv, or a folder's"
        )
    with Database(map(Source.of, paths)) as database:
        database.make(table)
        columns = database.connection.table(table)
        if file.suffix == ".csv":
            _write(database, f"SELECT {_for_spreadsheets(columns)} FROM {table}", file)
        else:
            units = {k: v for each in database.sources for k, v in units_of(each.result).items()}
            _write(database, f"SELECT * FROM {table}", file, units)
        labels = dict.fromkeys(label_of(each.result) for each in database.sources)
        unsaid = [] if "label" in columns.columns else [label for label in labels if label]
    return [f"{file}: {label}; no column says so" for label in unsaid]


def write_dataset(paths: Sequence[Path], folder: Path) -> list[str]:
    """Write all tables of some results as one dataset, `TABLE/campaign=C/result=R/TABLE.parquet`; a
    result whose files there are newer than its own stays. What was written: `campaign/result` of
    each. Errors: RequestError, PlaceError.
    """
    written = []
    for path in paths:
        read = folder_of(path)
        campaign, identity = read_plan(read / "plan.json").name, read.name
        place = f"campaign={quote(campaign, safe='')}/result={quote(identity, safe='')}"
        files = {table: folder / table / place / f"{table}.parquet" for table in TABLES}
        for table, file in files.items():
            if file.resolve() != folder.resolve() / table / place / file.name:
                raise RequestError(f"{file.parent}: a link leads out of the dataset; remove it")
        for held in {_held(file) for file in files.values() if file.is_file()} - {""}:
            size = held.partition(" ")[0]
            if not size.isdecimal() or held != _mark(read, int(size)):
                told = f"another result {campaign}/{identity}; remove it, or rename one of them"
                raise RequestError(f"{folder} holds {told}")
        if _is_newer(files.values(), read):
            continue
        with Database([Source.of(path)]) as database:
            units, mark = units_of(database.sources[0].result), _mark(read)
            for table, file in files.items():
                database.make(table)
                select = f"SELECT * EXCLUDE (campaign, result) FROM {table}"
                _write(database, select, file, units, mark)
            written.append(f"{campaign}/{identity}")
    if written:
        write_text(_views(), folder / VIEWS_FILE)
    return written


def _mark(result: Path, size: int | None = None) -> str:
    """What a result is told from others of its name by: the size of its records and the digest of
    them and its plan; `size`: of so many bytes, since a result that is gone on with has more.
    """
    total = sha256(read_inside(result / "plan.json"))
    with open_file(result / "records.jsonl") as records:
        left = size = os.fstat(records.fileno()).st_size if size is None else size
        while left > 0 and (part := records.read(min(left, 1 << 20))):
            total.update(part)
            left -= len(part)
    return f"{size} {total.hexdigest()}"


def _held(file: Path) -> str:
    """The mark of the result that a file of a dataset was made from; "" where it has none."""
    asked = "SELECT decode(value) FROM parquet_kv_metadata(?) WHERE decode(key) = ?"
    with refusing("export"), duckdb.connect() as connection:
        found = connection.execute(asked, [str(file), RESULT]).fetchone()
    return str(found[0]) if found else ""


def _views() -> str:
    """The statements that make tables and views of a dataset in the working directory."""
    tables = (f"CREATE OR REPLACE VIEW {t} AS {select_archived(t, None)}" for t in TABLES)
    return "".join(f"{each};\n" for each in (*tables, *VIEWS.values()))


def _is_newer(files: Iterable[Path], result: Path) -> bool:
    """Whether the files of a dataset are all there, and newer than all of the result that they are
    made from.
    """
    read = [*(result / each for each in _READ), *files_inside(result, "samples/*.jsonl")]
    changed = max(file.stat().st_mtime_ns for file in read if file.is_file())
    return all(file.is_file() and file.stat().st_mtime_ns > changed for file in files)


def _for_spreadsheets(table: duckdb.DuckDBPyRelation) -> str:
    """The columns of a table such that no text is taken for a formula."""
    return ", ".join(
        f"CASE WHEN regexp_matches({name(column)}, '{FORMULA}') AND"
        f" try_cast({name(column)} AS DOUBLE) IS NULL THEN '''' || {name(column)}"
        f" ELSE {name(column)} END AS {alias}"
        if str(kind) == "VARCHAR"
        else f"{name(column)} AS {alias}"
        for column, kind in zip(table.columns, table.types, strict=True)
        for alias in [name(str(spreadsheet_word(escape_controls(column))))]
    )


def _write(
    database: Database,
    select: str,
    file: Path,
    units: Mapping[str, str] | None = None,
    result: str = "",
) -> None:
    """Write what a SELECT gives, whole or not at all: as Parquet with the units of metrics, as CSV
    without. Errors: PlaceError, RequestError.
    """
    how = "USE_TMP_FILE false, FORMAT csv, HEADER"
    if units is not None:
        of = f", {name(RESULT)}: {quoted(result)}" if result else ""
        metadata = f"{{{name(UNITS)}: {quoted(json.dumps(units))}{of}}}"
        how = f"USE_TMP_FILE false, FORMAT parquet, COMPRESSION zstd, KV_METADATA {metadata}"
    with replacing(file, make_folder=True) as draft, refusing("export"):
        database.connection.execute(f"COPY ({select}) TO {quoted(str(draft))} ({how})")


def write_text(text: str, file: Path) -> None:
    """Write a text, whole or not at all. Errors: PlaceError."""
    with replacing(file, make_folder=True) as draft:
        draft.write_text(text, encoding="utf-8", errors="backslashreplace")
