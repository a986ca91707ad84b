"""What is written for other programs, read by these: benchstat and ministat, which are
fetched from outside. Slow.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from netbench import api, load
from tests.support.local import out
from tests.support.outside import installed, outside
from tests.support.synthetic import Synth

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
BENCHSTAT = "golang.org/x/perf/cmd/benchstat@v0.0.0-20230113213139-801c7ef9e5c5"


def made(folder: Path, rates: list[float]) -> list[Path]:
    """A result for each rate, on days that follow each other."""
    paths = []
    for day, rate in enumerate(rates, 1):
        path = Synth(
            {"send": ("sendfile",)}, seed=day, truth=lambda _, r=rate: (r, 0.5, 0.5)
        ).write(folder / f"r{day}")
        records = (path / "records.jsonl").read_text()
        (path / "records.jsonl").write_text(records.replace('"2026-03-01T', f'"2026-03-0{day}T'))
        paths.append(path)
    return paths


def fetched(*argv: str, env: dict[str, str] | None = None) -> None:
    """Run a command that fetches from outside; skip the test where it cannot."""
    env = {**os.environ, **(env or {})}
    done = subprocess.run(outside(*argv), capture_output=True, text=True, check=False, env=env)
    if done.returncode:
        pytest.skip(f"{' '.join(argv)}: {done.stderr[-300:]}")


def test_benchstat_finds_the_change(tmp_path: Path) -> None:
    paths, go = made(tmp_path, [20.0, 15.0]), installed("go", "golang-go")
    env = {"GOBIN": str(tmp_path), "GOPATH": str(tmp_path / "go"), "GOFLAGS": "-modcacherw"}
    fetched(go, "install", BENCHSTAT, env=env)
    for path in paths:
        api.export_text([path], "benchstat", tmp_path / f"{path.name}.txt")
    told = out(*(str(tmp_path / name) for name in ("benchstat", "r1.txt", "r2.txt")))
    table = told[told.index("throughput:Gb/s") :]
    (line,) = re.findall(r"Run/send=sendfile\s.*", table)[:1]
    before, after = (load(path).runs["throughput"].median() for path in paths)
    values = [float(word) for word in re.findall(r"(\d+\.\d+) ±", line)]
    assert values == pytest.approx([before, after], rel=1e-3)
    assert f"{100 * (after / before - 1):+.2f}%" in line


def test_ministat_finds_the_change(tmp_path: Path) -> None:
    paths, ministat = made(tmp_path, [20.0, 15.0]), installed("ministat", "ministat")
    api.export_text(paths, "ministat", tmp_path / "m")
    files = sorted((tmp_path / "m" / "throughput").iterdir())
    told = out(ministat, "-A", *map(str, files))
    numbers = [line.split() for line in told.splitlines() if re.match(r"[x+]\s+\d", line)]
    for path, (_, n, low, high, median, mean, _) in zip(paths, numbers, strict=True):
        runs = load(path).runs["throughput"]
        assert int(n) == len(runs)
        # Of an even number ministat's median is the upper one of the two in the middle.
        assert [float(word) for word in (low, high, median, mean)] == pytest.approx(
            [runs.min(), runs.max(), sorted(runs)[len(runs) // 2], runs.mean()],
            rel=1e-3,
        )
    assert "Difference at 95.0% confidence" in told
