"""Interval samples in SQL: the files of a result are read by DuckDB itself, so that no number of
samples fills the memory.
"""

from __future__ import annotations

import glob
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import duckdb

from netbench.base.json_lines import pieces
from netbench.base.opening import files_inside

LONGEST = 4 << 20  # bytes of a line: each thread of DuckDB has buffers of that size
NAMES = 32 << 10  # bytes of JSON: counters and their types, each a column; all meters' are 4 KiB
INTEGERS = ("BIGINT", "UBIGINT", "HUGEINT", "NULL")
LONG = r'"(\w+)": ?[\[\d, -]*\d{19}'
"""A counter with a value that may need more than 64 bits with a sign."""
NONE = (
    "SELECT NULL::BIGINT AS run, NULL::VARCHAR AS side, NULL::DOUBLE AS seconds,"
    " NULL::BIGINT AS stream WHERE false"
)


def select_samples(connection: duckdb.DuckDBPyConnection, folder: Path) -> str:
    """A SELECT of a result's samples, one row a sample, side and stream: run side seconds (from
    that side's first sample) stream, then GROUP.COUNTER as the kernel gave it; the columns of the
    frame `Results.samples`. Errors: duckdb.Error for a line that is no JSON; ValueError.
    """
    copies = _own(folder, files_inside(folder, "samples/[0-9]*.jsonl"))
    if not copies:
        return NONE
    files = f"[{', '.join(quoted(glob.escape(str(file))) for file in copies)}]"
    groups = _groups(connection, files)
    columns = {"side": "VARCHAR", "edge": "VARCHAR", "ns": "BIGINT"}
    for group, types in groups.items():
        fields = ", ".join(f"{name(counter)} {kind}" for counter, kind in types.items())
        columns[group] = f"STRUCT({fields})"
    lines = (
        f"read_json({files}, format='newline_delimited', filename=true, columns="
        f"{{{', '.join(f'{quoted(column)}: {quoted(kind)}' for column, kind in columns.items())}}},"
        f" maximum_object_size={LONGEST})"
    )
    counters = {
        f"{group}.{counter}": (f"{name(group)}.{name(counter)}", kind.endswith("[]"))
        for group, types in groups.items()
        for counter, kind in types.items()
    }
    lists = [f"len({field})" for field, is_list in counters.values() if is_list]
    streams = f"coalesce(greatest({', '.join(lists)}), 1)" if lists else "1"
    values = "".join(
        f", {field}{'[stream + 1]' * is_list} AS {name(counter)}"
        for counter, (field, is_list) in counters.items()
    )
    return (
        f"WITH lines AS (SELECT parse_filename(filename, true)::BIGINT AS run, * FROM {lines}"
        " WHERE edge IS NULL),"
        " began AS (SELECT run, side, min(ns) AS ns FROM lines GROUP BY run, side),"
        f" rows AS (SELECT *, unnest(range({streams})) AS stream FROM lines)"
        " SELECT run, side, (rows.ns - began.ns) / 1e9 AS seconds, stream"
        f"{values} FROM rows JOIN began USING (run, side)"
    )


_copies: list[tempfile.TemporaryDirectory[str]] = []  # removed when this process ends


def _own(folder: Path, files: Sequence[Path]) -> Sequence[Path]:
    """Files that DuckDB may open by their names: copies, where another account has the folder and
    might put links in their place meanwhile. Errors: OSError.
    """
    if folder.stat().st_uid == os.geteuid():
        return files
    _copies.append(copies := tempfile.TemporaryDirectory(prefix="netbench-samples-"))
    copied = [Path(copies.name) / file.name for file in files]
    for file, copy in zip(files, copied, strict=True):
        with copy.open("xb") as target:
            target.writelines(pieces(file, 2))
    return copied


def _groups(connection: duckdb.DuckDBPyConnection, files: str) -> dict[str, dict[str, str]]:
    """The groups of counters of all samples, with the type of each counter; JSON where its values
    have none in common.

    DuckDB's own detection of types has all files open at once, which 60 of them need more memory
    for than there is; the structures of lines are found one line after another.
    """
    shape = connection.execute(
        f"SELECT json_group_structure(json), flatten(list(regexp_extract_all(json, {quoted(LONG)},"
        f" 1))) FROM read_ndjson_objects({files}, maximum_object_size={LONGEST})"
        " WHERE NOT json_exists(json, '$.edge')"
    ).fetchone()
    structure, long_ones = shape or (None, None)

    def sql_type(counter: str, kind: object) -> str:
        if isinstance(kind, list):
            return f"{sql_type(counter, kind[0])}[]"
        if kind in INTEGERS:
            return "HUGEINT" if counter in (long_ones or ()) else "BIGINT"
        return kind if isinstance(kind, str) else "JSON"

    if len(structure or "") > NAMES:
        raise ValueError("they are of more counters than any meter has")
    structures = json.loads(structure or "{}")
    if not isinstance(structures, dict):
        raise ValueError("a line is no JSON object")
    return {
        group: {counter: sql_type(counter, kind) for counter, kind in counters.items()}
        for group, counters in structures.items()
        if isinstance(counters, dict)
    }


def name(word: str) -> str:
    """A word as an SQL identifier."""
    return '"' + word.replace('"', '""') + '"'


def quoted(word: str) -> str:
    """A word as an SQL string."""
    return "'" + word.replace("'", "''") + "'"
