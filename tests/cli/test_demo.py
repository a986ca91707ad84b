"""`demo`, and what a shell completes: what the installed program has beside its verbs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support.local import Command, ran


def test_the_demo_answers_and_says_how_to_go_on(
    netbench: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    from netbench.templates import Template, templates

    (demo,) = [one for one in templates() if one.name == "demo"]
    short = demo.text.replace("limit: 30s", "limit: 2s").replace("min: 10", "min: 3")
    short = short.replace("duration: 200ms", "duration: 20ms").replace("100ms", "10ms")
    monkeypatch.setattr("netbench.templates.template", lambda _: Template("demo", "", short))
    done = netbench("demo", "--results", "here")
    assert done.returncode == 0, done.stderr
    *_, folder, page, after = done.stdout.splitlines()
    assert folder.startswith("here/demo/")
    assert page == f"the report with plots: {folder}/report/index.html"
    assert "send=sendfile" in Path(folder, "report/index.html").read_text()
    assert after.endswith("netbench init demo")


def completed(line: str, cwd: Path, home: Path) -> list[str]:
    """What a shell is told at the end of a line."""
    words = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_SHELL": "bash",
        "COMP_LINE": line,
        "HOME": str(home),
    }
    words |= {"COMP_POINT": str(len(line)), "_ARGCOMPLETE_STDOUT_FILENAME": "/dev/stdout"}
    program = Path(sys.executable).with_name("netbench")
    done = ran([program], env=os.environ | words, cwd=cwd, check=True)
    return [word.strip() for word in done.stdout.split("\v")]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("netbench resu", ["resume"]),
        ("netbench report --ht", ["--html"]),
        ("netbench report --results R l", ["latest", "loopback"]),
        ("netbench run --set transfer.stre", ["transfer.streams="]),
        ("netbench transfer congest", ["congestion="]),
        ("netbench transfer farm", ["farm1", "farm2"]),
        ("netbench init dem", ["demo"]),
        ("netbench list met", ["methods", "meters", "metrics"]),
        ("netbench check cam", ["campaign.yaml"]),
    ],
)
def test_a_shell_completes_verbs_options_keys_results_and_hosts(
    line: str, words: list[str], tmp_path: Path
) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("Host farm1 farm2 farm*\n  User root\nHost !farm3\n")
    (tmp_path / "R" / "loopback").mkdir(parents=True)
    (tmp_path / "R" / os.fsdecode(b"l\xff")).mkdir()  # a name in no encoding
    (tmp_path / "campaign.yaml").touch()
    (tmp_path / "campaign.txt").touch()
    assert sorted(completed(line, tmp_path, tmp_path)) == sorted(words)
