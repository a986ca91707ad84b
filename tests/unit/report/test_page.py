"""What the page of a report holds, and what it leaves out; tests/pages has it in a browser."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
from html import unescape
from pathlib import Path

import pytest

from netbench.report import html
from netbench.report.build import Report, build
from tests.support.paths import SAMPLE
from tests.support.synthetic import Record, Synth, failed

COMPARE = {"factor": "send", "baseline": "readwrite", "margin": 0.01}
RECORD = re.compile(r'<tr id="run-(\d+)">.*?<pre[^>]*>(.*?)</pre>')


@pytest.fixture(scope="module")
def sample() -> Report:
    return build(SAMPLE)


def rows(made: str) -> list[str]:
    return re.findall(r'<tr id="run-\d+">.*', made)


def test_each_run_has_a_row_with_its_record(sample: Report) -> None:
    found = RECORD.findall(html.render(sample))
    lines = (SAMPLE / "records.jsonl").read_text().splitlines()
    assert [unescape(record) for _, record in found] == lines
    assert [int(run) for run, _ in found] == list(range(1, len(lines) + 1))


def test_the_policy_allows_the_pages_script_alone(sample: Report) -> None:
    made = html.render(sample)
    (script,) = re.findall(r"<script>(.*?)</script>", made, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', made)
    policy = unescape(policy)
    assert f"script-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';")
    assert "innerHTML" not in script
    assert "eval" not in script


def test_a_record_cannot_leave_its_place(tmp_path: Path) -> None:
    """Whatever a result says is text: in a record, in a card, in what is said of a run."""
    word = "</pre></script><script>alert(1)</script>"

    def edit(record: Record) -> Record:
        return failed(record, "failed", word) if record["run"] == 3 else record

    made = html.render(
        build(Synth({"send": ("readwrite", word)}, runs=2, edit=edit).write(tmp_path / "r"))
    )
    assert "<script>alert" not in made
    assert len(re.findall("<script", made)) == 1


def test_a_level_is_no_formula(tmp_path: Path) -> None:
    factors = {"send": ("readwrite", "sendfile"), "tag": (r"$\frac$", "$x^{2}$")}
    folder = Synth(factors, compare=COMPARE).write(tmp_path / "r")
    file = folder / "campaign.yaml"
    file.write_text(file.read_text().replace("about: ", "about: $10 of 100%, or $20? "))
    assert r"$\frac$" in unescape(html.render(build(folder)))


def test_what_does_not_fit_is_left_out_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Synth(runs=10).write(tmp_path / "r")
    report = build(folder)
    assert "are on this page" not in html.render(report)
    first = (folder / "records.jsonl").read_text().splitlines()[:15]
    with monkeypatch.context() as patch:
        patch.setattr(html, "RECORD_BYTES", sum(map(len, first)) + 15)
        made = html.render(report)
        assert (len(rows(made)), len(RECORD.findall(made))) == (40, 15)
        assert "40 runs of 40 are on this page" in made
    monkeypatch.setattr(html, "MOST_RUNS", 12)
    made = html.render(report)
    assert (len(rows(made)), len(RECORD.findall(made))) == (12, 12)
    assert "12 runs of 40 are on this page" in made


def test_a_control_and_a_run_that_failed_say_so(tmp_path: Path) -> None:
    def edit(record: Record) -> Record:
        return failed(record, "failed", "a reason") if record["run"] == 3 else record

    compare = COMPARE | {"control": True}
    made = rows(html.render(build(Synth(runs=4, compare=compare, edit=edit).write(tmp_path / "r"))))
    assert sum(">control</span>" in row for row in made) == 8
    assert [i for i, row in enumerate(made, 1) if "<summary>a reason</summary>" in row] == [3]


def test_a_page_without_its_folder_says_so(tmp_path: Path) -> None:
    report = build(Synth(runs=2).write(tmp_path / "r"))
    shutil.rmtree(tmp_path / "r")
    _ = report.source.cells
    assert "Their records are gone" in html.render(report)


def test_a_card_has_its_verdict_in_words(sample: Report) -> None:
    made = html.render(sample)
    cards = re.findall(r'<article class="card ([a-z]+)">(.*?)</article>', made, re.DOTALL)
    assert len(cards) == 6
    for verdict, one in cards:
        assert f"</span> {verdict}</span></p>" in one
        assert re.search(r"<b>(?:[-+][\d.]+%|[\d.]+x)</b> \([-+\d.]+ to [-+\d.]+%?\)", one)
