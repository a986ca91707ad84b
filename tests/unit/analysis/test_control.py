"""What a control shows, in every form of a result: beside the findings, and in none of them."""

from __future__ import annotations

import base64
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from netbench import api
from netbench.__main__ import main
from netbench.read.control import controls, holds
from netbench.read.load import load
from netbench.report import html, text
from netbench.report.build import build
from netbench.report.json import to_json
from netbench.report.source import Source
from tests.support.synthetic import Record, Synth, failed, scaled

LEVELS = ("readwrite", "mmap", "sendfile", "splice")
COMPARE = {"factor": "send", "baseline": "readwrite", "margin": None, "control": True}
RATES = {"readwrite": 20.0, "mmap": 20.0, "sendfile": 30.0, "splice": 20.3}


def truth(factors: Any) -> tuple[float, float, float]:
    return RATES[factors["send"]], 0.6, 0.7


def synth(**more: Any) -> Synth:
    made = {"factors": {"send": LEVELS}, "compare": COMPARE, "truth": truth, "spread": 0.002}
    return Synth(**made | more)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synth().write(tmp_path_factory.mktemp("control") / "r")


@pytest.fixture(scope="module")
def source(folder: Path) -> Source:
    return Source.of(folder)


def without(folder: Path, to: Path) -> Path:
    """The same result as if it had no control."""
    made = Path(shutil.copytree(folder, to / "r"))
    plan = json.loads((folder / "plan.json").read_text())
    plan["cells"] = [cell for cell in plan["cells"] if not cell.get("control")]
    del plan["compare"]["control"]
    (made / "plan.json").write_text(json.dumps(plan))
    lines = (folder / "records.jsonl").read_text().splitlines(keepends=True)
    kept = (line for line in lines if "control" not in json.loads(line))
    (made / "records.jsonl").write_text("".join(kept))
    return made


def test_a_control_changes_no_mean_no_interval_and_no_correction(
    folder: Path, source: Source, tmp_path: Path
) -> None:
    alone = Source.of(without(folder, tmp_path))
    assert len(source.result.control_runs) == 10
    assert source.cells == alone.cells
    assert list(source.comparisons) == list(alone.comparisons)
    for metric, family in alone.comparisons.items():
        mine = source.comparisons[metric]
        assert [(c.level, c.n, c.low, c.high, c.p, c.verdict) for c in mine] == [
            (c.level, c.n, c.low, c.high, c.p, c.verdict) for c in family
        ]
        assert alone.controls(family) == []
    assert source.result.proofs == alone.result.proofs
    assert source.result.readbacks == alone.result.readbacks
    assert source.result.used == alone.result.used
    assert [c.kind for c in source.cautions] == [c.kind for c in alone.cautions]
    assert "against itself" not in text.render(build(alone.result.path), 80)


def test_its_ratio_is_that_of_paired_runs_with_an_interval_of_its_own(source: Source) -> None:
    (control,) = controls(source.result, "throughput")
    frames = source.result.runs, source.result.control_runs
    base, mine = (
        frame[frame["send"] == "readwrite"].sort_values("block")["throughput"].to_numpy()
        for frame in frames
    )
    d = np.log(mine) - np.log(base)
    assert control.ratio == pytest.approx(np.exp(d.mean()))
    half = 2.2621571628 * d.std(ddof=1) / np.sqrt(10)  # t at 97.5%, 9 degrees of freedom
    assert control.low == pytest.approx(np.exp(d.mean() - half))
    assert control.high == pytest.approx(np.exp(d.mean() + half))
    assert holds(control)
    mine = api.load(source.result.path)
    assert (list(mine.controls()["holds"]), set(mine.cells["n"])) == ([True], {10})
    assert set(mine.control_runs["cell"]) == {"send=readwrite,control"}
    assert "40 runs of 4 cells" in repr(mine)


def test_programs_and_drawings_get_it_beside_the_findings(folder: Path, source: Source) -> None:
    (control,) = controls(source.result, "throughput")
    report = build(folder)
    drawn = re.findall(r'<img class="ratios"[^>]*base64,([^"]*)"', html.render(report))
    assert ">control</text>" in base64.b64decode(drawn[0]).decode()
    as_json = to_json(report)
    assert [each["cell"] for each in as_json["cells"]] == [f"send={level}" for level in LEVELS]
    assert {each["level"] for each in as_json["comparisons"]} == {*LEVELS[1:]}
    by_metric = {each["metric"]: each for each in as_json["controls"]}
    assert by_metric["throughput"]["holds"] is True
    assert by_metric["throughput"]["low"] == control.low


def test_compare_shows_it_where_its_own_baseline_is_asked_for(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def told(*arguments: str) -> str:
        main(["compare", str(folder), *arguments])
        return " ".join(capsys.readouterr().out.split())

    assert "throughput, control: baseline against itself" in told()
    assert "throughput, control: baseline against itself" in told("--factor", "send")
    assert "control" not in told("--factor", "send", "--baseline", "mmap")
    answer = json.loads(told("--json"))
    assert answer["controls"][0]["metric"] == "throughput"
    assert all("control" not in c["level"] for c in answer["comparisons"])


def test_a_control_that_does_not_hold_1_is_a_caution_and_marks_verdicts_no_larger_than_it(
    source: Source, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def off(record: Record) -> Record:
        return scaled(record, 1.04) if record.get("control") else record

    moved = synth(edit=off).write(tmp_path / "r")
    found = Source.of(moved)
    flags = {c.level: (c.verdict, c.flags) for c in found.comparisons["throughput"]}
    assert flags == {
        "mmap": ("inconclusive", ()),
        "sendfile": ("better", ()),
        "splice": ("better", ("control",)),
    }
    assert main(["compare", str(moved), "--fail-if", "throughput>0.5%"]) == 1
    gates = " ".join(capsys.readouterr().out.partition("Gates")[2].split())
    assert "send=splice: 1.3% more" in gates
    assert gates.count("(no larger than what the control shows)") == 1
    assert not [c for c in source.cautions if c.kind == "control"]
    (caution,) = [c for c in found.cautions if c.kind == "control"]
    assert caution.where == ("send=readwrite,control",)
    assert re.search(r"throughput \+[34]\.\d%, \+3\.\d to \+4\.\d%", caution.evidence)


def test_contexts_and_pairs_have_a_control_each(tmp_path: Path) -> None:
    pins = ("none", "apart", "same")
    made = synth(factors={"send": LEVELS[:2], "pin": pins}, pairs=("a>b", "c>d"), runs=4)
    found = Source.of(made.write(tmp_path / "r"))
    mine = found.controls(found.comparisons["throughput"])
    assert {(c.pair, c.context["pin"]) for c in mine} == {
        (pair, pin) for pair in ("a>b", "c>d") for pin in pins
    }


def test_a_control_whose_runs_failed_has_no_ratio_and_says_why(tmp_path: Path) -> None:
    def edit(record: Record) -> Record:
        return failed(record, "failed", "no route") if record.get("control") else record

    report = build(synth(edit=edit).write(tmp_path / "r"))
    (bad,) = [c for c in report.source.cautions if c.kind == "failed"]
    assert bad.where == ("send=readwrite,control",)
    assert "throughput, control: no comparison" in text.render(report, 80)
    assert to_json(report)["controls"][0]["holds"] is None


def test_the_control_of_a_kernel_is_judged_by_the_boots_of_its_baseline(tmp_path: Path) -> None:
    factors = {"kernel": ("a", "b"), "pin": ("none", "same")}
    compare = COMPARE | {"factor": "kernel", "baseline": "a"}
    made = Synth(factors, runs=8, boots=4, between=0.05, compare=compare)
    mine = controls(load(made.write(tmp_path / "r")), "throughput")
    assert {(c.unit, c.n) for c in mine} == {("boot", 4)}
    assert all(0.95 < c.low < c.high < 1.05 for c in mine)  # boots differ by more
