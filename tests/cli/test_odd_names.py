"""Results whose names and dates other programs would not make."""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path

import pytest

from tests.support.local import Command

SAMPLE = next(
    path.parent
    for path in sorted((Path(__file__).parents[2] / "results/sample").glob("*/records.jsonl"))
)


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A result in a folder, and with a file, whose name is no UTF-8."""
    place = tmp_path / os.fsdecode(b"x\xff")
    shutil.copytree(SAMPLE, place)
    (place / os.fsdecode(b"\xfe")).write_text("")
    return place


def test_a_name_that_is_no_utf8_is_shown_escaped(
    netbench: Command, tmp_path: Path, odd: Path
) -> None:
    done = netbench("query", "select distinct result from runs", odd)
    assert (done.returncode, done.stdout.split()[-1]) == (0, r"x\xff"), done.stderr
    assert netbench("export", odd, tmp_path / "t.csv").returncode == 0
    archive = tmp_path / "b.zip"
    assert netbench("bundle", odd, "--output", archive).returncode == 0
    with zipfile.ZipFile(archive) as made:
        assert any(name.endswith(r"x\xff/\xfe") for name in made.namelist())


@pytest.mark.parametrize(("year", "told"), [(1971, 1980), (2200, 2107)])
def test_a_date_that_no_archive_has_is_the_nearest(
    netbench: Command, tmp_path: Path, year: int, told: int
) -> None:
    copy = shutil.copytree(SAMPLE, tmp_path / "copy")
    os.utime(copy / "plan.json", (0, (year - 1970) * 365.25 * 86400))
    assert netbench("bundle", copy, "--output", tmp_path / "b.zip").returncode == 0
    with zipfile.ZipFile(tmp_path / "b.zip") as made:
        (plan,) = (each for each in made.infolist() if each.filename.endswith("plan.json"))
    assert plan.date_time[0] == told
