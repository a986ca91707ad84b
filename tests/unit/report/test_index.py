"""The page of all results below a folder."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from netbench import load
from netbench.report import index
from tests.support.paths import SAMPLE
from tests.support.synthetic import Synth

RUNS = len((SAMPLE / "records.jsonl").read_bytes().splitlines())


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The sample, with a page; a newer result with damaged records; one without a plan."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "results"
    shutil.copytree(SAMPLE, folder / "sample" / SAMPLE.name)
    (folder / "sample" / SAMPLE.name / "report").mkdir()
    (folder / "sample" / SAMPLE.name / "report" / "index.html").touch()
    damaged = Synth(runs=2).write(folder / "other" / "20270101T000000Z-aaaaaa")
    (damaged / "records.jsonl").write_text("{}\n")
    broken = Synth(runs=2).write(folder / "third" / "20200101T000000Z-bbbbbb")
    (broken / "plan.json").write_text("{")
    return folder


def test_each_result_has_its_row(results: Path) -> None:
    damaged, sample, broken = index.entries(results)
    assert sample.overview.campaign == "sample"
    assert sample.status == "finished"
    assert sample.overview.date.replace("-", "").startswith(SAMPLE.name[:8])
    assert (sample.overview.runs, sample.overview.kernel[:2]) == (RUNS, "6.")
    ratio = load(SAMPLE).compare("send", "readwrite")["ratio"].iloc[0]
    assert sample.finding.startswith(f"pin=none: send=sendfile moves {100 * (ratio - 1):.1f}% more")
    assert sample.page is not None
    assert (damaged.status, broken.status) == ("unreadable", "unreadable")
    assert "records.jsonl:1" in damaged.why
    assert "plan.json" in broken.why
    made = index.render(results, results / "index.html")
    assert f'href="sample/{SAMPLE.name}/report/index.html"' in made
    assert made.count("<tr data-folder=") == 3
    assert "records.jsonl:1" in made
    elsewhere = index.render(results, results.parent / "page.html")
    assert f'href="results/sample/{SAMPLE.name}/report/index.html"' in elsewhere


def test_a_command_to_copy_runs_nothing_else(results: Path) -> None:
    folder = shutil.copytree(SAMPLE, results / "a;touch pwn;#" / SAMPLE.name)
    (entry,) = [each for each in index.entries(results) if each.overview.folder == folder]
    assert shlex.split(entry.command)[4] == str(folder)


def test_what_results_are_called_is_text(results: Path) -> None:
    shutil.copytree(SAMPLE, results / "<b>x" / "20250101T000000Z-<i>")
    made = index.render(results, results / "index.html")
    assert "<b>x" not in made
    assert "&lt;b&gt;x" in made
