"""With a rate the findings are about CPU; and what `repeat.metrics` asks for is shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from netbench.read import gates
from netbench.read.grounds import MISSED, NO_RATE
from netbench.report import html, junit, letter, text
from netbench.report.build import Report, build
from netbench.report.question import of_factor, of_results
from netbench.report.source import Source
from netbench.stats.comparison import NO_VERDICT
from tests.support.synthetic import Synth
from tests.unit.report.test_snapshots import SEND as COMPARE
from tests.unit.report.test_snapshots import SENDS, TWO, paced, written


def folder(made: Synth, at: Path, rate: str = "") -> Path:
    return written(made, f"transfer: {{rate: {rate}}}\n" if rate else "", at)


def said(report: Report) -> str:
    """The answers, without line breaks."""
    whole = text.render(report)
    return " ".join(whole[: whole.index("Cells\n=====")].split())


@pytest.mark.parametrize(
    ("rate", "factors"),
    [
        ("1Gb/s", SENDS),
        ("1000Mbit/s", SENDS),
        ("125MB/s", {**SENDS, "pin": ("none", "apart")}),
        ("", {**SENDS, "rate": ("1Gb/s",)}),
    ],
)
def test_the_verdict_is_about_cpu_where_a_rate_fixes_throughput(
    tmp_path: Path, rate: str, factors: Mapping[str, tuple[str, ...]]
) -> None:
    made = Synth(factors, spread=0.0004, pairs=TWO, compare=COMPARE, truth=paced)
    report = build(folder(made, tmp_path / "r", rate))
    answers = said(report)
    assert "moves" not in answers
    assert re.search(
        r"send=sendfile uses \d\d\.\d% less CPU on the sender than send=readwrite", answers
    )
    fixed = f"Throughput was fixed by rate: {rate or '1Gb/s'}, which every cell moved within 2%."
    assert fixed in answers
    assert "throughput" not in report.source.comparisons


def test_a_cell_that_falls_short_of_its_rate_is_a_finding(tmp_path: Path) -> None:
    made = Synth(SENDS, spread=0.0004, pairs=TWO, compare=COMPARE, truth=paced)
    made.truth = lambda f: (1.0 if f["send"] == "sendfile" else 0.7, 0.4, 0.5)
    answers = said(build(folder(made, tmp_path / "r", "1Gb/s")))
    assert "send=sendfile moves 42.9% more than send=readwrite" in answers
    assert "limited by rate: 1Gb/s; 1 of 2 cells moved as much, the others less or more" in answers


@pytest.mark.parametrize(
    ("rate", "moved", "why"),
    [("1Gb/s", 1.0, ""), ("", 1.0, NO_RATE), ("1Gb/s", 0.97, MISSED), ("1Gb/s", 1.03, MISSED)],
)
def test_raw_cpu_is_judged_at_a_rate_that_held(
    tmp_path: Path, rate: str, moved: float, why: str
) -> None:
    asked = {"metrics": ["sender_cpu"]}
    made = Synth(SENDS, spread=0.0004, pairs=TWO, compare=COMPARE, repeat=asked)
    made.truth = lambda f: (moved if f["send"] == "sendfile" else 1.0, *paced(f)[1:])
    report = build(folder(made, tmp_path / "r", rate))
    (c,) = report.source.comparisons["sender_cpu"]
    assert (c.verdict, c.unsettled) == ((NO_VERDICT, why) if why else ("better", ""))
    assert c.high < 1
    for render in (text.render, html.render, letter.render, junit.render):
        assert why in " ".join(render(report).split()), render
    gated = of_factor(report.source, "send", gates=[gates.parse("sender_cpu>5%")])
    assert gated.refusal == (f"cannot judge sender_cpu>5%: {why}" if why else "")
    missed = [caution for caution in report.source.cautions if caution.kind == "rate"]
    assert [each.what[:6] for each in missed] == (["10 run"] if why == MISSED else [])


@pytest.mark.parametrize(("answered", "why"), [(0.99, ""), (0.97, MISSED)])
def test_raw_cpu_of_an_open_loop_is_judged_where_its_rate_held(
    tmp_path: Path, answered: float, why: str
) -> None:
    def asking(record: dict[str, Any]) -> dict[str, Any]:
        del record["receiver"]["flow"]
        told = {"transactions": 500 * answered, "offered": 500.0}
        captures = {n: {"text": "", "value": v, "unit": "1/s"} for n, v in told.items()}
        return record | {"captures": captures}

    made = Synth(SENDS, spread=0.0004, pairs=TWO, compare=COMPARE, truth=paced, edit=asking)
    (c,) = build(folder(made, tmp_path / "r", "500/s")).source.comparisons["sender_cpu"]
    assert (c.verdict, c.unsettled) == ((NO_VERDICT, why) if why else ("better", ""))


def test_runs_far_from_their_rate_are_named(tmp_path: Path) -> None:
    def stalled(record: dict[str, Any]) -> dict[str, Any]:
        """One side of a run was held up, across an edge of its window."""
        for run, side, share in ((3, "receiver", 1.2), (8, "sender", 0.9)):
            moved = record[side]["flow"]["bytes"]
            if record["run"] == run:
                moved[1][0] = moved[0][0] + int((moved[1][0] - moved[0][0]) * share)
        return record

    made = Synth(SENDS, spread=0.0004, pairs=TWO, truth=paced, edit=stalled)
    report = build(folder(made, tmp_path / "r", "1Gb/s"))
    (caution,) = (each for each in report.source.cautions if each.kind == "rate")
    assert re.fullmatch(
        r"of 20 runs at a rate; run 3: \+20\.\d%; run 8: -10\.\d%", caution.evidence
    )


def test_compare_is_about_cpu_unless_throughput_is_asked_for(tmp_path: Path) -> None:
    made = Synth(SENDS, spread=0.0004, pairs=TWO, truth=paced)
    a, b = (Source.of(folder(made, tmp_path / name, "1Gb/s")) for name in "ab")
    for compared in (of_factor(a, "send"), of_results(a, b)):
        assert "throughput" not in compared.families
        assert {c.metric for family in compared.families.values() for c in family} >= {
            "sender_cpu",
            "receiver_cpu",
        }
        assert "fixed by rate: 1Gb/s" in compared.offered
    assert "throughput" in of_factor(a, "send", metrics=["throughput"]).families
    assert "throughput" in of_results(a, b, metrics=["throughput"]).families
