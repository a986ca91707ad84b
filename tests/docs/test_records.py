"""The examples of docs/records.md are what netbench reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from netbench.result.files import read_facts, read_noise, read_plan
from netbench.result.journal import ENTRIES, parse_entry
from netbench.result.profile_files import read_profile_runs
from netbench.result.record import parse_record
from tests.support.paths import ROOT


def example(heading: str) -> str:
    """The first block of JSON below a heading."""
    _, _, rest = (ROOT / "docs" / "records.md").read_text().partition(f"\n## {heading}\n")
    return rest.partition("```json\n")[2].partition("```")[0]


def test_the_record() -> None:
    record = parse_record(example("records.jsonl").encode(), "docs/records.md")
    assert (record.run, record.status, record.settings.moved) == (17, "ok", {})


def test_the_journal_has_every_kind() -> None:
    lines = example("journal.jsonl").replace("\n ", " ").splitlines()  # folded for the page
    entries = [parse_entry(line.encode(), "docs/records.md") for line in lines]
    assert [type(entry) for entry in entries] == list(ENTRIES.values())


@pytest.mark.parametrize(("name", "read"), [("plan.json", read_plan), ("facts.json", read_facts)])
def test_other_files(tmp_path: Path, name: str, read: Callable[[Path], object]) -> None:
    (tmp_path / name).write_text(example(name))
    assert read(tmp_path / name)


def test_the_readings_of_noise_and_profile_runs(tmp_path: Path) -> None:
    (tmp_path / "noise.jsonl").write_text(example("samples/noise.jsonl").replace("\n", "") + "\n")
    (entry,) = read_noise(tmp_path / "noise.jsonl")
    assert entry.kernel == ("snd", "rcv")
    (tmp_path / "profiles").mkdir()
    line = example("profiles/").replace("\n", "") + "\n"
    (tmp_path / "profiles" / "runs.jsonl").write_text(line)
    (run,) = read_profile_runs(tmp_path)
    assert (run.run, run.status, run.profiles["sender"].unit) == (1, "ok", "ticks")
