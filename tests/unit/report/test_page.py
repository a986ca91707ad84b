"""What the page of a report holds, and what it leaves out; tests/pages has it in a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import shutil
import zlib
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from netbench.read.cells import metric_order
from netbench.report import html, run_panels
from netbench.report.blocks import Finding, Span
from netbench.report.build import Report, build
from netbench.report.cards import card
from netbench.report.formulas import formula
from netbench.report.html_table import html_table
from netbench.report.places import Link, Places
from netbench.report.run_panels import RunPanels, samples_in_words
from tests.support.paths import SAMPLE
from tests.support.synthetic import Record, Synth, failed

COMPARE = {"factor": "send", "baseline": "readwrite", "margin": 0.01}


@pytest.fixture(scope="module")
def sample() -> Report:
    return build(SAMPLE)


def panels(report: Report) -> RunPanels:
    return run_panels.run_panels(report.source, Places(report.source))


def test_each_run_has_its_id_and_its_record(sample: Report) -> None:
    made = html.render(sample)
    lines = (SAMPLE / "records.jsonl").read_text().splitlines()
    for line in lines:
        run = json.loads(line)["run"]
        (panel,) = re.findall(rf'<article [^>]*id="run-{run}".*?</article>', made, re.DOTALL)
        (record,) = re.findall(r"<pre[^>]*>(.*?)</pre>", panel, re.DOTALL)
        assert unescape(record) == line


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
    """Whatever a result says is text: in a record, in facts for the script, in a card."""
    word = "</pre></script><script>alert(1)</script>"

    def edit(record: Record) -> Record:
        return failed(record, "failed", word) if record["run"] == 3 else record

    made = html.render(
        build(Synth({"send": ("readwrite", word)}, runs=2, edit=edit).write(tmp_path / "r"))
    )
    assert "<script>alert" not in made
    assert len(re.findall("<script", made)) == 2


def test_values_lead_to_their_runs(sample: Report) -> None:
    places = Places(sample.source)
    (cells,) = [b for b in sample.section("cells").blocks if hasattr(b, "columns")]
    assert [places.of_row(cells, i) for i in range(6)] == [Link(f"#cell-{i}") for i in range(1, 7)]
    compared = sample.section("comparison").blocks[0]
    assert places.of_row(compared, 0) == Link("#runs", "pin=none send=sendfile|readwrite")
    (proof,) = [b for b in sample.section("proof").blocks if hasattr(b, "columns")][:1]
    links = {row[1]: places.of_row(proof, i) for i, row in enumerate(proof.rows)}
    assert links["sendfile"] == Link("#runs", "send=sendfile")
    facts = sample.section("environment").blocks[0]
    if hasattr(facts, "columns"):
        assert places.of_row(facts, 0) is None


def test_a_matrix_leads_from_each_field_to_its_cell(tmp_path: Path) -> None:
    factors = {
        "send": ("readwrite", "sendfile"),
        "receive": ("read", "trunc"),
        "pin": ("none", "apart"),
    }
    report = build(Synth(factors, runs=3).write(tmp_path / "r"))
    places = Places(report.source)
    table = html_table(report.section("matrix").blocks[0], places)  # type: ignore[arg-type]
    cells = {c.cell: places.address(c) for c in report.source.cells}
    assert table["rows"][1][2]["link"] == Link(cells["send=sendfile,receive=trunc,pin=none"])
    drawn = re.findall(r'<a href="(#cell-\d+)"', html.render(report))
    assert {*cells.values()} <= {*drawn}


def test_formulas_name_counters_that_records_have(sample: Report) -> None:
    """Each metric follows from counters, or from metrics that do."""
    result = sample.source.result
    record = json.loads((SAMPLE / "records.jsonl").read_text().splitlines()[0])
    known = {
        f"{meter}.{name}"
        for side in ("sender", "receiver")
        for meter, counters in record[side].items()
        if isinstance(counters, dict)
        for name in counters
    }
    reached: set[str] = set()
    left = set(metric_order(result.metrics))
    while True:
        more = {
            metric
            for metric in left - reached
            if set(re.findall(r"[a-z_]\w*(?:\.\w+)*", formula(result, metric))) & (known | reached)
        }
        if not more:
            break
        reached |= more
    assert left == reached


def test_the_formula_of_a_soaker_names_its_counters(sample: Report) -> None:
    result = replace(sample.source.result, shared={"a>b": False})
    assert formula(result, "system_cpu.soak") == "sender_cpu.soak + receiver_cpu.soak"
    assert formula(result, "receiver_cpu.soak").startswith("receiver's soak.cpus")
    together = replace(result, shared={"a>a": True})
    assert "soak.idle_taken_ns" in formula(together, "system_cpu.soak")


def test_what_does_not_fit_is_left_out_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def edit(record: Record) -> Record:
        return failed(record, "failed", "a reason") if record["run"] in (38, 39) else record

    folder = Synth(runs=10, edit=edit).write(tmp_path / "r")
    report = build(folder)
    assert panels(report).left_out == ""
    monkeypatch.setattr(run_panels, "MOST_RUNS", 12)
    few = panels(report)
    assert len(few.panels) == 12
    assert few.left_out.startswith("12 runs of 40 are on this page")
    assert {38, 39} <= few.numbers, "those that are not ok"
    assert {len(few.of_cell(f"cell-{i}")) for i in range(1, 5)} <= {2, 3, 4}, "some of each cell"
    made = html.render(report)
    assert "12 runs of 40" in made
    assert {int(run) for run in re.findall(r'href="#run-(\d+)"', made)} == few.numbers


def test_records_beyond_the_plain_ones_are_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Synth(runs=10).write(tmp_path / "r")
    lines = (folder / "records.jsonl").read_text().splitlines()
    monkeypatch.setattr(run_panels, "PLAIN_BYTES", sum(map(len, lines[:15])))
    made = panels(build(folder))
    assert [panel.record for panel in made.panels] == [*lines[:15], *[""] * 25]
    unpacked = zlib.decompress(base64.b64decode(made.packed), -zlib.MAX_WBITS).decode().split("\n")
    assert [unpacked[panel.packed] for panel in made.panels[15:]] == lines[15:]


def test_a_control_has_its_runs_here(tmp_path: Path) -> None:
    report = build(Synth(runs=4, compare=COMPARE | {"control": True}).write(tmp_path / "r"))
    controls = [panel for panel in panels(report).panels if panel.status == "control"]
    assert len(controls) == 8
    assert {panel.cell for panel in controls} == {""}


def test_a_page_without_its_folder_says_so(tmp_path: Path) -> None:
    report = build(Synth(runs=2).write(tmp_path / "r"))
    shutil.rmtree(tmp_path / "r")
    _ = report.source.cells
    assert "Its records are gone" in html.render(report)


def line(side: str, ms: int, moved: int) -> str:
    return json.dumps({"side": side, "ns": ms * 10**6, "flow": {"bytes": [moved, moved]}}) + "\n"


def test_samples_are_rates_between_samples(tmp_path: Path) -> None:
    file = tmp_path / "000001.jsonl"
    file.write_text(
        json.dumps({"side": "sender", "edge": "open", "ns": 1, "flow": {"bytes": [1]}})
        + "\n"
        + line("sender", 100, 0)
        + line("sender", 200, 625_000_000)
        + line("sender", 400, 1_250_000_000)
    )
    assert samples_in_words(file) == "sender 100,100.0 300,50.00"
    file.write_text("".join(line("receiver", i, i * 1000) for i in range(1000)))
    assert len(samples_in_words(file).split()) - 1 <= run_panels.STEPS + 1
    for damage in (
        "[]\n",
        "{\n",
        '{"side": "else", "ns": 1, "flow": {"bytes": 1}}\n',
        '{"flow": 1}\n',
    ):
        file.write_text(damage)
        assert samples_in_words(file) == ""
    assert samples_in_words(tmp_path / "none") == ""


@pytest.mark.parametrize("reference", [None, 0.0])
def test_a_card_without_a_known_number_draws_nothing(reference: float | None) -> None:
    finding = Finding("a run measured 0", (Span("pin=apart", math.nan),), "%", reference, 1.0)
    assert card(finding)["drawing"] == ""


def test_a_card_has_its_verdict_in_words_and_its_cautions(sample: Report) -> None:
    made = html.render(sample)
    cards = re.findall(r'<article class="card ([a-z]+)">(.*?)</article>', made, re.DOTALL)
    assert len(cards) == 6
    for verdict, one in cards:
        assert f"</span> {verdict}</p>" in one
        assert re.search(r"<svg role=\"img\"[^>]*><title>[^<]*, better</title>", one)
        for at in re.findall(r'href="#caution-(\d+)"', one):
            assert f'id="caution-{at}"' in made
