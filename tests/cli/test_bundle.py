"""One archive of a result, and tables of one."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from tests.support.local import call
from tests.support.synthetic import Synth

SEND = {"factor": "send", "baseline": "readwrite"}


def made(folder: Path, name: str = "20260301T000000Z-abc123") -> Path:
    return Synth(compare=SEND).write(folder / "bulk" / name)


def test_a_bundle_holds_the_result_and_its_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = made(tmp_path)
    (result / "report").mkdir()
    (result / "report" / "index.html").write_text("of an earlier netbench")
    (result / ".facts.json.new").write_text("what a kill left")
    monkeypatch.chdir(tmp_path)
    done = call("bundle", result)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"bulk-{result.name}.zip\n", "")
    with zipfile.ZipFile(done.stdout.strip()) as archive:
        names = {name.removeprefix(f"bulk/{result.name}/") for name in archive.namelist()}
        held = {n: archive.read(f"bulk/{result.name}/{n}") for n in names if not n.endswith("/")}
    reports = {name.removeprefix("report/") for name in names if name.startswith("report/")}
    assert reports == {
        "report.txt", "letter.txt", "index.html", "report.md", "cells.csv",
        "junit.xml",
    }  # fmt: skip
    for each in ("records.jsonl", "facts.json", "plan.json", "campaign.yaml"):
        assert held[each] == (result / each).read_bytes()
    assert b"an earlier" not in held["report/index.html"]
    assert ".facts.json.new" not in names
    assert held["report/letter.txt"].decode() == call("report", result, "--letter").stdout[:-1]


def test_a_result_that_compares_nothing_has_a_bundle(tmp_path: Path) -> None:
    result, file = tmp_path / "bulk" / "20260301T000000Z-abc123", tmp_path / "b.zip"
    Synth({"chunk": ("64K",)}, runs=1).write(result)
    done = call("bundle", result, "--output", file)
    assert (done.returncode, done.stderr) == (0, "")
    names = {Path(name).name for name in zipfile.ZipFile(file).namelist()}
    assert {"report.txt", "index.html", "report.md", "cells.csv"} <= names
    assert not {"letter.txt", "junit.xml"} & names
    page = tmp_path / "page.html"
    done = call("report", result, "--html", page, "--junit", tmp_path / "j.xml")
    assert (done.returncode, page.exists()) == (2, False)


def test_a_redacted_bundle_can_be_unpacked_and_reported_and_a_file_need_be_no_utf_8(
    tmp_path: Path,
) -> None:
    result = made(tmp_path)
    (result / "log.txt").write_text("a host said who it is")
    file = tmp_path / "r.zip"
    assert call("bundle", result, "--redact", "--output", file).returncode == 0
    with zipfile.ZipFile(file) as archive:
        assert b"who it is" not in b"".join(map(archive.read, archive.namelist()))
        archive.extractall(tmp_path / "unpacked")
    unpacked = tmp_path / "unpacked" / "synthetic" / result.name
    assert call("report", unpacked).stdout == call("report", result).stdout
    with (result / "campaign.yaml").open("ab") as campaign:
        campaign.write(b"# caf\xe9\n")
    done = call("bundle", result, "--output", tmp_path / "b.zip")
    assert (done.returncode, done.stderr) == (0, "")
    for verb in ("report", "resume", "restore"):
        refused = call(verb, tmp_path / "b.zip")
        assert (refused.returncode, "is not a result folder" in refused.stderr) == (2, True)


# `query` and `export` as a user runs them


@pytest.fixture(scope="module")
def made_of_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    return Synth({"send": ("readwrite", "sendfile")}, runs=3).write(folder / "bulk" / "20260301T1")


def test_query_prints_a_table_or_json(made_of_tables: Path) -> None:
    sql = "SELECT send, count(*) AS runs, NULL AS none FROM runs GROUP BY send ORDER BY send"
    done = call("query", sql, made_of_tables)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "send       runs  none",
        "---------  ----  ----",
        "readwrite     3",
        "sendfile      3",
    ]
    sql = "SELECT run, started, 'nan'::DOUBLE AS odd FROM runs LIMIT 1"
    told = {"run": 1, "started": "2026-03-01T00:00:11.123456", "odd": None}
    assert json.loads(call("query", "--json", sql, made_of_tables).stdout) == [told]


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
def test_a_wrong_request_ends_with_2(
    made_of_tables: Path, words: tuple[str, ...], told: str
) -> None:
    place = 2 if words[0] == "query" else 1
    done = call(*words[:place], made_of_tables, *words[place:])
    assert done.returncode == 2
    assert told in done.stderr


@pytest.mark.parametrize("words", [("R", "F", "--benchstat"), ("--benchstat", "R", "F")])
def test_a_form_s_option_may_be_anywhere(
    made_of_tables: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    file = tmp_path / "runs.txt"
    places = {"R": made_of_tables, "F": file}
    done = call("export", *(places.get(word, word) for word in words))
    assert (done.returncode, done.stderr) == (0, "")
    assert file.read_text().count("BenchmarkRun") == 6


def test_a_draft_that_a_kill_left_is_no_result(tmp_path: Path) -> None:
    result = made(tmp_path)
    shutil.copytree(result, result.with_name(f".{result.name}.new"))
    assert len(json.loads(call("list", "results", "--results", tmp_path, "--json").stdout)) == 1
