"""Pages are true: on own tools, on CI, on the five experiments. What they show runs."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import pytest
import yaml

from netbench import campaign, load
from tests.support.local import call, ran
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
    assert len(blocks) == 6
    names = []
    for block in blocks:
        read = campaign.parse(f"netbench: 1\nname: t\n{block}", "t.yaml")
        names += list(read.tools)
    assert names == ["netperf", "netperf", "neper", "neper", "kperf", "bw_tcp"]


# The page on CI


PAGE_OF_CI = (ROOT / "docs/how-to/a-gate-in-ci.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE_OF_CI, re.DOTALL)
(SCRIPT,) = (text for language, text in BLOCKS if language == "sh")
CAMPAIGN, JOB = (text for language, text in BLOCKS if language == "yaml")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkout with the page's campaign, made smaller."""
    short = CAMPAIGN.replace("{min: 10, max: 30}", "{min: 4, max: 4}").replace("200ms", "100ms")
    assert short != CAMPAIGN
    (tmp_path / "gate.yaml").write_text(short)
    return tmp_path


def run(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script as CI does."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return ran(["bash", "-e", "-c", script], cwd=folder, env=environment)


def in_this_process(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Its lines of netbench, up to the one that fails: five processes take their time to start."""
    result = ""
    for line in script.splitlines():
        if line == "result=$(tail -n 1 run.txt)":
            result = (folder / "run.txt").read_text().splitlines()[-1]
        words, _, file = line.partition(" > ")
        if words.startswith("python -m netbench "):
            done = call(*shlex.split(words.replace("$result", result))[3:])
            (folder / (file or "printed")).write_text(done.stdout)
            if done.returncode:
                break
    return done


def test_the_script_ends_with_the_gates_status_and_leaves_its_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    changed = re.sub(r"--fail-if '.*", "--fail-if 'sender_demand>-99%'", SCRIPT)
    assert changed != SCRIPT
    done = in_this_process(folder, changed)
    assert done.returncode == 1, done.stderr
    assert (folder / "ktap.txt").read_text().startswith("KTAP version 1\n")
    assert ET.parse(folder / "junit.xml").getroot().tag == "testsuites"
    assert zipfile.is_zipfile(folder / "result.zip")


@pytest.mark.slow
def test_the_steps_of_the_job_run_as_they_stand(folder: Path) -> None:
    (job,) = yaml.safe_load(JOB)["jobs"].values()
    steps = [step["run"] for step in job["steps"] if "run" in step]
    assert len(steps) == 4
    kept = next(step["with"]["path"] for step in job["steps"] if "with" in step).split()
    for step in steps[:-1]:
        done = run(folder, step)
        assert done.returncode == 0, done.stderr
    assert all((folder / file).is_file() for file in kept)
    assert run(folder, steps[-1]).returncode in (0, 1), "few runs may tell anything"


def test_the_page_says_each_exit_status() -> None:
    told = {
        int(line.split("|")[1]) for line in PAGE_OF_CI.splitlines() if re.match(r"\| \d+ \|", line)
    }
    assert told == {0, 1, 2, 130}


# The page of the five experiments


def test_the_tables_are_those_of_the_results() -> None:
    argv = [sys.executable, "tools/experiments.py", "--check"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stderr}; run {' '.join(argv[1:2])}"
