"""A campaign with a control, on real sockets: its records, what is left of it after a kill, and its
report.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import netbench
from netbench import campaign
from netbench.run import conductor
from tests.support.local import call
from tests.support.running import stored_records

TEXT = """\
netbench: 1
name: c
transfer: {duration: 20ms, warmup: 0ms, congestion: cubic}
sweep: {chunk: [16K, 32K, 64K, 128K]}
repeat: {min: 3, max: 3}
compare: {factor: chunk, baseline: 32K}
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("results")
    conclusion = conductor.start(campaign.parse(TEXT, "c.yaml"), results)
    assert (conclusion.why, conclusion.exit_code) == ("done", 0)
    return conclusion.path


def test_its_records_have_the_factors_of_the_baseline_and_say_what_they_are(result: Path) -> None:
    records = stored_records(result)
    mine = [r for r in records if r["cell"].endswith(",control")]
    assert [r["block"] for r in mine] == [0, 1, 2]
    for record in mine:
        assert record["cell"] == "chunk=32K,control"
        assert record["factors"] == {"chunk": "32K"}
        assert record["control"] is True
        assert record["status"] == "ok"
    assert len(records) == 15
    assert not any("control" in r for r in records if r not in mine)
    planned = json.loads((result / "plan.json").read_text())
    assert planned["compare"]["control"] is True
    assert planned["runs_total"] == len(records)
    assert planned["order"] == [r["cell"] for r in records if r["block"] == 0]


def test_a_campaign_that_was_killed_goes_on_with_its_control(result: Path) -> None:
    whole = stored_records(result)
    places = [(r["cell"], r["block"]) for r in whole]
    at = next(n for n, r in enumerate(whole) if r["block"] == 1 and r.get("control"))
    file = result / "records.jsonl"
    for kept in (at, at + 1):  # right before a run of the control, and right after it
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(lines[:kept]))
        for _ in range(2):  # the second finds nothing to do
            done = call("resume", result)
            assert done.returncode == 0, done.stderr
            assert [(r["cell"], r["block"]) for r in stored_records(result)] == places


def test_its_report_averages_none_of_it(result: Path) -> None:
    found = netbench.load(result)
    assert (len(found.runs), len(found.control_runs), set(found.cells["n"])) == (12, 3, {3})
    told = " ".join(call("report", result).stdout.split())
    assert "12 runs and 3 of 1 control" in told
