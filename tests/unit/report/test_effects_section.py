"""Which factor matters, as the report says it: sentences, tables, JSON, the plot, and what notebooks
get.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
import pytest

from netbench.base.errors import ReportError
from netbench.report import json as report_json
from netbench.report import text
from netbench.report.build import Report, build
from netbench.results import load
from tests.support.synthetic import Record, Synth, failed

mpl.use("agg")
FACTORS = {"send": ("readwrite", "sendfile"), "tso": ("off", "on")}


def truth(factors: Mapping[str, str]) -> tuple[float, float, float]:
    fast = factors["send"] == "sendfile"
    more = 1.0 if factors["tso"] == "off" else 1.14 if fast else 1.01
    return (30.0 if fast else 18.0) * more, 0.5, 0.6


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Synth(FACTORS, truth=truth, pairs=("snd>rcv",), runs=12)
    return made.write(tmp_path_factory.mktemp("effects") / "r")


@pytest.fixture(scope="module")
def report(folder: Path) -> Report:
    return build(folder)


def lines(report: Report, width: int = 999) -> list[str]:
    return list(text.section_lines(report.section("effects"), width))


def test_programs_get_the_contrasts(report: Report) -> None:
    (found,) = json.loads(report_json.render(report))["effects"]
    assert found["levels"] == {"send": ["readwrite", "sendfile"], "tso": ["off", "on"]}
    both = found["effects"][2]
    assert both["factors"] == ["send", "tso"]
    (contrast,) = both["contrasts"]
    assert contrast["low"] < 1.14 / 1.01 < contrast["high"]


def test_pairs_that_differ_in_cells_say_over_what_they_are(tmp_path: Path) -> None:
    def edit(record: Record) -> Record:
        bad = record["pair"] == "c>d" and record["cell"] == "send=splice,tso=on"
        return failed(record, "failed", "reset") if bad else record

    factors = FACTORS | {"send": ("readwrite", "sendfile", "splice")}
    made = Synth(factors, truth=truth, pairs=("a>b", "c>d"), edit=edit)
    told = lines(build(made.write(tmp_path / "r")))
    assert any(
        line.startswith("a>b: throughput: Of logarithms, over 10 blocks in which all 6")
        for line in told
    )
    assert any(
        line.startswith("c>d: throughput: Of logarithms, over 10 blocks in which all 4")
        for line in told
    )


def test_a_rate_leaves_throughput_out(tmp_path: Path) -> None:
    folder = Synth(
        FACTORS,
        truth=lambda _: (1.0, 0.5, 0.6),
        spread=0.001,
        pairs=("snd>rcv",),
        repeat={"metrics": ["throughput", "sender_cpu"]},
    ).write(tmp_path / "r")
    with (folder / "campaign.yaml").open("a") as file:
        file.write("transfer: {rate: 1Gb/s}\n")
    assert list(build(folder).source.effects) == ["sender_cpu"]


def test_notebooks_get_a_frame_and_a_plot(folder: Path) -> None:
    results = load(folder)
    frame = results.effects("throughput")
    assert frame["effect"].tolist() == ["send", "tso", "send × tso"]
    assert frame["level"].tolist() == ["sendfile", "on", "sendfile & on"]
    assert (frame["low"] < frame["ratio"]).all()
    axes = results.plot.interaction("tso", "send")
    means = results.runs.groupby(["tso", "send"], observed=True)["throughput"].mean()
    for line, send in zip(axes.containers, FACTORS["send"], strict=True):
        drawn = line.lines[0].get_ydata()
        assert list(drawn) == pytest.approx([means["off", send], means["on", send]], rel=0.001)
    assert results.plot.interaction("tso", "send", ax=axes) is axes
    with pytest.raises(ReportError, match="not crossed"):
        results.plot.interaction("tso", "pin")
    with pytest.raises(ReportError, match="no metric"):
        results.effects("goodput")
