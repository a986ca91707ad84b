"""A campaign sweeps more than it compares: what the other factors do is said too."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from netbench import api
from netbench.read.grounds import FOREIGN
from netbench.report import text
from netbench.report.build import Report, build
from netbench.stats.comparison import NO_VERDICT
from tests.support.synthetic import Record, Synth

COMPARE = {"factor": "send", "baseline": "readwrite"}
FACTORS = {
    "send": ("readwrite", "sendfile"),
    "pin": ("none", "apart"),
    "socket_buffer": ("32K", "128K"),
}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    made = Synth(FACTORS, compare=COMPARE, repeat={"metrics": ["throughput"]})
    return build(made.write(tmp_path_factory.mktemp("other") / "r"))


def test_its_tables_are_those_of_compare(report: Report) -> None:
    for factor, baseline in (("pin", "none"), ("socket_buffer", "32K")):
        compared = api.compare(report.source.result.path, factor=factor)
        for metric, family in report.source.other_answers[factor].items():
            assert repr(family) == repr(compared.families[metric])  # NaN is not equal to itself
        title = f"{factor} against {baseline}: throughput"
        assert title in text.section_lines(report.section("factors"), 80)


def test_a_campaign_of_many_cells_says_no_more_than_it_was_asked(tmp_path: Path) -> None:
    factors = {**FACTORS, "chunk": [f"{n}K" for n in range(1, 9)]}  # 64 cells
    report = build(Synth(factors, runs=2, compare=COMPARE).write(tmp_path / "r"))
    assert not report.source.other_answers
    with pytest.raises(KeyError):
        report.section("factors")


@pytest.mark.parametrize(("others", "said"), [(90, True), (0, False)])
@pytest.mark.parametrize("metric", ["system_demand", "system_request_demand"])
def test_a_busy_host_gives_no_verdict_by_its_meters(
    tmp_path: Path, others: int, said: bool, metric: str
) -> None:
    """A meter of whole hosts counts other programs: 0.9 CPUs of them in each block here."""

    def asking(record: Record) -> Record:
        """As many requests as bytes."""
        flow = record["receiver"]["flow"]["bytes"]
        window = np.diff(record["receiver"]["time_ns"])[0] / 1e9
        each = {"text": "", "value": (flow[1][0] - flow[0][0]) / window, "unit": "1/s"}
        return record | {"captures": {"transactions": each}}

    folder = Synth(FACTORS, compare=COMPARE, edit=asking).write(tmp_path / "r")
    entry = {
        "time": "2026-03-01T13:00:00Z",
        "host": "here",
        "ns": [0, 10**9],
        "counters": {},
        "cpu": {"user": [0, 50 + others]},
        "own": [0, 50],
    }
    lines = "".join(json.dumps({**entry, "block": block}) + "\n" for block in range(10))
    (folder / "samples" / "noise.jsonl").write_text(lines)
    report = build(folder)
    assert ("noise" in {caution.kind for caution in report.source.cautions}) == said
    for c in report.source.comparisons[metric]:
        assert (c.verdict, c.unsettled) == ((NO_VERDICT, FOREIGN) if said else ("better", ""))
    own = report.source.comparisons.get(f"{metric}.rusage", [])
    assert [c.verdict for c in own] == ["better"] * 4 * said
