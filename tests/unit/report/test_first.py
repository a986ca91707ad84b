"""The first screen of a report: short, the answer last, nothing of it otherwise than in the whole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from netbench.report import first
from netbench.report.build import Report, build
from tests.support.synthetic import Synth

SAMPLES = sorted((Path(__file__).parents[3] / "results/sample").glob("*/records.jsonl"))


def screen(report: Report, width: int = 80) -> list[str]:
    lines = first.render(report, width).splitlines()
    assert len(lines) <= 45
    assert all(len(line) <= width for line in lines)
    return lines


@pytest.fixture(scope="module", params=[file.parent for file in SAMPLES], ids=lambda p: p.name)
def sample(request: pytest.FixtureRequest) -> Report:
    return build(request.param)


@pytest.mark.parametrize("width", [80, 200])
def test_a_screen_holds_it_and_it_ends_with_the_answer(sample: Report, width: int) -> None:
    lines = screen(sample, width)
    assert sample.name in " ".join(lines[:3])
    whole = " ".join(lines)
    for caution in sample.source.cautions:
        assert caution.kind in whole
    families = sample.source.answers.values()
    for c in (c for family in families for c in family):
        assert re.search(rf"{re.escape(' against '.join(c.names))}.*{c.verdict}", whole)
    if sample.source.comparisons:
        assert any(word in lines[-1] for word in ("better", "worse", "inconclusive", "no verdict"))
    else:
        assert sample.section("summary").blocks[1].lines[0][:30] in whole  # type: ignore[union-attr]


def test_of_many_comparisons_the_largest_is_last(tmp_path: Path) -> None:
    def truth(factors: dict[str, str]) -> tuple[float, float, float]:
        fast = factors["send"] == "sendfile"
        return 10.0 * (1 + fast * int(factors["depth"]) / 10), 0.5, 0.6

    factors = {"send": ("write", "sendfile"), "depth": tuple(map(str, range(1, 30)))}
    compare = {"factor": "send", "baseline": "write"}
    made = Synth(factors, runs=4, spread=0.001, pairs=("a>b",), truth=truth, compare=compare)  # type: ignore[arg-type]
    lines = screen(build(made.write(tmp_path / "r")))
    assert "(--full)" in " ".join(lines)
    assert "also compared: depth (--full)" in lines
    assert lines[-3] == "largest:"
    assert re.match(r" *-74.3% +\(.* to .*\) +better +depth=29", lines[-1])


def test_a_result_without_an_answer_says_so(tmp_path: Path) -> None:
    path = Synth({"send": ("write", "sendfile")}, pairs=("a>b",)).write(tmp_path / "r")
    (path / "records.jsonl").write_text("")
    assert screen(build(path))[-1] == "No run has given a result."
