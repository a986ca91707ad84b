"""Interval samples in SQL: the files of a result are read by DuckDB itself, so that no number of
samples fills the memory.
"""

from __future__ import annotations

import glob
from pathlib import Path

import duckdb

LINE = ("side", "edge", "ns", "filename")
"""What a line has beside its groups of counters."""
LONGEST = 4 << 20  # bytes of a line: each thread of DuckDB has buffers of that size
NONE = (
    "SELECT NULL::BIGINT AS run, NULL::VARCHAR AS side, NULL::DOUBLE AS seconds,"
    " NULL::BIGINT AS stream WHERE false"
)


def select_samples(connection: duckdb.DuckDBPyConnection, folder: Path) -> str:
    """A SELECT of a result's samples, one row a sample, side and stream: run side seconds (from
    that side's first sample) stream, then GROUP.COUNTER as the kernel gave it; the columns of the
    frame `Results.samples`. Errors: duckdb.Error for a line that is no JSON.
    """
    if not any((folder / "samples").glob("[0-9]*.jsonl")):
        return NONE
    lines = (
        f"read_json({quoted(glob.escape(str(folder)) + '/samples/[0-9]*.jsonl')},"
        " format='newline_delimited', filename=true, union_by_name=true, sample_size=-1,"
        " field_appearance_threshold=0, map_inference_threshold=-1,"
        f" maximum_object_size={LONGEST})"
    )
    described = connection.sql(f"SELECT * FROM {lines}")
    edges = "WHERE edge IS NULL" if "edge" in described.columns else ""
    counters = [
        (group, counter, str(counter_kind).endswith("[]"))
        for group, kind in zip(described.columns, described.types, strict=True)
        if kind.id == "struct" and group not in LINE
        for counter, counter_kind in kind.children
    ]
    if counters:  # those of edges are not of samples
        counts = ", ".join(f"count({_field(group, counter)})" for group, counter, _ in counters)
        found = connection.execute(f"SELECT {counts} FROM {lines} {edges}").fetchone() or ()
        counters = [each for each, n in zip(counters, found, strict=True) if n]
    lists = [f"len({_field(group, counter)})" for group, counter, is_list in counters if is_list]
    streams = f"coalesce(greatest({', '.join(lists)}), 1)" if lists else "1"
    values = "".join(
        f", {_field(group, counter)}{'[stream + 1]' if is_list else ''}"
        f" AS {name(f'{group}.{counter}')}"
        for group, counter, is_list in counters
    )
    return (
        f"WITH lines AS (SELECT parse_filename(filename, true)::BIGINT AS run, * FROM {lines}"
        f" {edges}),"
        " began AS (SELECT run, side, min(ns) AS ns FROM lines GROUP BY run, side),"
        f" rows AS (SELECT *, unnest(range({streams})) AS stream FROM lines)"
        " SELECT run, side, (rows.ns - began.ns) / 1e9 AS seconds, stream"
        f"{values} FROM rows JOIN began USING (run, side)"
    )


def _field(group: str, counter: str) -> str:
    return f"{name(group)}.{name(counter)}"


def name(word: str) -> str:
    """A word as an SQL identifier."""
    return '"' + word.replace('"', '""') + '"'


def quoted(word: str) -> str:
    """A word as an SQL string."""
    return "'" + word.replace("'", "''") + "'"
