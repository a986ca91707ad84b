"""Views of hosts over time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from netbench import api
from netbench.base.errors import RequestError
from tests.support.synthetic import Synth

HISTORY = """
SELECT result, mean, before, change FROM host_history
WHERE host = 'a' AND role = 'sender' AND cell = 'send=readwrite,pin=none' AND metric = 'throughput'
ORDER BY began
"""
CHANGES = "SELECT host, fact, result, before, value FROM host_changes"
RUNS = "SELECT host, role, peer, count(*) AS runs FROM host_runs GROUP BY ALL ORDER BY ALL"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two results, of which the second has another driver on a host."""
    folder = tmp_path_factory.mktemp("results")
    for number in (1, 2):
        synth = Synth(seed=number, pairs=("a>b", "b>a"))
        made = synth.write(folder / "bulk" / f"2026030{number}T000000Z-abc12{number}")
        facts = json.loads((made / "facts.json").read_text())
        facts["hosts"]["b"][0]["facts"] |= {"driver": f"v{number}", "load": f"{number}"}
        (made / "facts.json").write_text(json.dumps(facts))
        if number == 2:
            records = (made / "records.jsonl").read_text()
            (made / "records.jsonl").write_text(records.replace("2026-03-01T", "2026-03-02T"))
    return folder


def test_a_host_over_time(results: Path) -> None:
    where = results
    first, second = api.query(HISTORY, [where]).rows
    assert (first[0], second[0]) == ("20260301T000000Z-abc121", "20260302T000000Z-abc122")
    assert (first[2], first[3], second[2]) == (None, None, first[1])
    assert second[3] == pytest.approx(second[1] / first[1] - 1)
    assert api.query(CHANGES, [where]).rows == [("b", "driver", second[0], "v1", "v2")]
    rows = api.query(RUNS, [where]).rows
    total = api.query("SELECT count(*) FROM runs WHERE pair = 'a>b'", [where]).rows[0][0]
    roles = ("receiver", "sender")
    assert list(rows) == [(a, role, b, total) for a, b in ("ab", "ba") for role in roles]


def test_a_result_is_given_once(results: Path) -> None:
    with pytest.raises(RequestError, match="synthetic/20260301T000000Z-abc121 is given twice"):
        api.query("SELECT 1 FROM runs", [results, results])
