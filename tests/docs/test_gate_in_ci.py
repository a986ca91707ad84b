"""The page on CI is true: its script and the steps of its job run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import pytest
import yaml

from tests.support.paths import ROOT

PAGE = (ROOT / "docs/how-to/a-gate-in-ci.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
(SCRIPT,) = (text for language, text in BLOCKS if language == "sh")
CAMPAIGN, JOB = (text for language, text in BLOCKS if language == "yaml")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkout with the page's campaign, made smaller."""
    short = CAMPAIGN.replace("{min: 10, max: 30}", "{min: 4, max: 4}").replace("200ms", "50ms")
    assert short != CAMPAIGN
    (tmp_path / "gate.yaml").write_text(short)
    return tmp_path


def run(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("gates", "status"),
    [
        pytest.param("--fail-if 'throughput<-99%'", 0, marks=pytest.mark.slow, id="holds"),
        pytest.param("--fail-if 'throughput>-99%'", 1, id="falls"),
    ],
)
def test_the_script_ends_with_the_gates_status_and_leaves_its_files(
    folder: Path, gates: str, status: int
) -> None:
    changed = re.sub(r"--fail-if '.*", gates, SCRIPT)
    assert changed != SCRIPT
    done = run(folder, changed)
    assert done.returncode == status, done.stderr
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
    told = {int(line.split("|")[1]) for line in PAGE.splitlines() if re.match(r"\| \d+ \|", line)}
    assert told == {0, 1, 2, 130}
