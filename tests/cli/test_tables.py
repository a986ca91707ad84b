"""`query` and `export` as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.local import call
from tests.support.synthetic import Synth


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    return Synth({"send": ("readwrite", "sendfile")}, runs=3).write(folder / "bulk" / "20260301T1")


def test_query_prints_a_table_or_json(made: Path) -> None:
    sql = "SELECT send, count(*) AS runs, NULL AS none FROM runs GROUP BY send ORDER BY send"
    done = call("query", sql, made)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "send       runs  none",
        "---------  ----  ----",
        "readwrite     3",
        "sendfile      3",
    ]
    sql = "SELECT run, started, 'nan'::DOUBLE AS odd FROM runs LIMIT 1"
    told = {"run": 1, "started": "2026-03-01T00:00:11.123456", "odd": None}
    assert json.loads(call("query", "--json", sql, made).stdout) == [told]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("query", "SELECT 1 FROM nowhere"), "nowhere"),
        (("query", "SELECT"), "query: Parser Error"),
        (("export", "--table", "cells", "folder"), "ends in .parquet or .csv"),
        (("export", "--table", "cells", "x", "--benchstat"), "leave --table out"),
        (("export", "--ministat", "--benchstat"), "not allowed with"),
    ],
)
def test_a_wrong_request_ends_with_2(made: Path, words: tuple[str, ...], told: str) -> None:
    place = 2 if words[0] == "query" else 1
    done = call(*words[:place], made, *words[place:])
    assert done.returncode == 2
    assert told in done.stderr


@pytest.mark.parametrize(
    "words",
    [("R", "F", "--benchstat"), ("--benchstat", "R", "F")],
)
def test_a_form_s_option_may_be_anywhere(
    made: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    file = tmp_path / "runs.txt"
    places = {"R": made, "F": file}
    done = call("export", *(places.get(word, word) for word in words))
    assert (done.returncode, done.stderr) == (0, "")
    assert file.read_text().count("BenchmarkRun") == 6
