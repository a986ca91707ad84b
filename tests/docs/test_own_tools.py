"""The page on tools of one's own is true: its scripts and its campaign run as they stand."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from netbench import campaign, load
from tests.support.local import call
from tests.support.paths import ROOT
from tests.support.running import stored_records

PAGE = (ROOT / "docs/how-to/tools-of-your-own.md").read_text()


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of the page in a folder, where they are found."""
    for name, language, text in re.findall(r"`([\w.-]+)`:\n\n```(\w+)\n(.*?)```", PAGE, re.DOTALL):
        file = tmp_path / name
        file.write_text(text)
        file.chmod(0o755 if language == "python" else 0o644)
    assert {file.name for file in tmp_path.iterdir()} == {"pump-client", "pump-server", "pump.yaml"}
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def test_the_pages_pair_of_scripts_becomes_a_named_cell(example: Path) -> None:
    short = ["--set", "transfer.duration=100ms", "--set", "repeat.max=3", "--set", "verify=off"]
    done = call("run", example / "pump.yaml", "--results", example / "r", *short)
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.splitlines()[-1])
    records = [r for r in stored_records(folder) if r["factors"]["tool"] == "pump"]
    assert [r["status"] for r in records] == ["ok"] * 3, [r["reason"] for r in records]
    for record in records:
        said = record["captures"]["longest_call"]
        assert said["text"] == f"longest call {said['value']} us"
        assert said["unit"] == "µs"
        moved = record["receiver"]["tool"]
        assert record["captures"]["throughput"]["text"].startswith(f"{moved['bytes']} bytes in ")
        assert record["sender"]["rusage"]["cpu_ns"][1] > record["sender"]["rusage"]["cpu_ns"][0]
    result = load(folder)
    assert result.units["longest_call"] == "µs"
    assert result.runs.loc[result.runs["tool"] == "pump", "longest_call"].gt(0).all()
    text = result.text()
    assert "pump" in text
    assert "longest_call" in text
    assert "pump is `pump-client " in text
    assert text.count("pump-client") == 1, "the name stands in tables and sentences"
    own = result.cells[(result.cells["metric"] == "longest_call") & (result.cells["n"] > 0)]
    assert own["tool"].tolist() == ["pump"]


def test_the_pages_other_tools_are_valid() -> None:
    blocks = re.findall(r"^```yaml\n(tools:.*?)```", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 4
    names = []
    for block in blocks:
        read = campaign.parse(f"netbench: 1\nname: t\n{block}", "t.yaml")
        names += list(read.tools)
    assert names == ["netperf", "neper", "kperf", "bw_tcp"]
