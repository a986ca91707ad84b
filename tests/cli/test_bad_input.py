"""Input that must end as a plain error with exit status 2, through the command line.

A new case is one row: a campaign file, the words of the command, and what the message says.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.local import call, netbench_argv

TOP = "netbench: 1\nname: x\n"
PLAN = ("plan", "c.yaml")
DEEP = ".".join(["a"] * 3000)
LONG_NAME = "a" * 300


@dataclass(frozen=True)
class Bad:
    """A file, a command line, and what standard error says about them."""

    says: str
    file: str = ""
    words: Sequence[str | bytes] = PLAN
    without: Sequence[str] = field(default=())


CASES = {
    # --set PATH=VALUE
    "a path of 3,000 steps": Bad("at most 32 levels", "", (*PLAN, "--set", f"{DEEP}=1")),
    "3,000 steps below an item": Bad(
        "at most 32 levels", "include: [{}]\n", (*PLAN, "--set", f"include.0.{DEEP}=1")
    ),
    "a transfer with 3,000 steps": Bad("at most 32 levels", "", ("transfer", f"{DEEP}=1")),
    "a key that is not UTF-8": Bad("U+DCFF", "", (*PLAN, "--set", b"a\xff=1")),
    "a transfer's key that is not UTF-8": Bad("U+DCFF", "", ("transfer", b"a\xff=1")),
    "a key that moves the cursor": Bad(
        "U+001B", "", (*PLAN, "--set", "a\x1b[2J=1"), without=["\x1b"]
    ),
    # times and names
    "a transfer of 1 ns": Bad(
        "duration: expected a time of at least 1ms", "", ("transfer", "duration=1ns")
    ),
    "a folder of results with a name of 300 letters": Bad(
        "File name too long; give a shorter name",
        "transfer: {duration: 10ms, warmup: 0}\nrepeat: {min: 1, max: 1}\n",
        ("run", "c.yaml", "--results", LONG_NAME),
        without=["make it writable"],
    ),
    # characters that make a text look like another one
    "a text that turns the writing": Bad(
        "3: expected text, got the control character U+202E",
        'about: "abc \u202e def"\n',
        without=["\u202e"],
    ),
    # rows of include, levels and keys
    "a row that --set of a factor has left without its level": Bad(
        "include[0]: this matches no cell",
        "sweep: {send: [write], chunk: [1K, 2K]}\ninclude: [{chunk: 1K, streams: 2}]\n",
        (*PLAN, "--set", "sweep.chunk=[4K]"),
    ),
    "a transfer with a setting": Bad("did you mean 'settings.mtu'?", "", ("transfer", "mtu=9000")),
    "the latest of no results": Bad("no results below results", "", ("report", "latest")),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_bad_input_is_an_error_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Bad
) -> None:
    (tmp_path / "c.yaml").write_text(TOP + case.file)
    monkeypatch.chdir(tmp_path)
    done = call(*case.words)
    message = " ".join(done.stderr.split())
    assert (done.returncode, done.stdout) == (2, ""), message
    assert case.says in message
    assert [part for part in ("defect", *case.without) if part in message] == []
    assert not (tmp_path / "results").exists()


def test_letters_of_other_scripts_are_text(tmp_path: Path) -> None:
    about = "שלום, μs, 中文, सहयोग, 👩‍🔬"
    (tmp_path / "c.yaml").write_text(f"{TOP}about: {about}\n")
    done = subprocess.run(
        netbench_argv(PLAN), cwd=tmp_path, capture_output=True, check=True, text=True
    )
    assert about in done.stdout
