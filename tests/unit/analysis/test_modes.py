"""Runs in two modes: found over all cells of a pair, said with shares and means, and no cell
converges.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from netbench.read.cells import cells_of
from netbench.read.compare import in_result
from netbench.read.load import load
from netbench.report import text
from netbench.report.build import build
from netbench.stats.comparison import MODES
from netbench.stats.intervals import Numbers
from netbench.stats.modes import find_modes, missed
from tests.support.synthetic import Record, Synth, scaled

REPEAT = {"min": 10, "max": 30}


def made(
    rng: np.random.Generator, shape: tuple[int, int], spread: float, share: float = 0.0
) -> dict[str, Numbers]:
    """Cells of normal logarithms, of which a share of the runs is 30% slower."""
    logs = spread * rng.normal(size=shape) + np.arange(shape[0])[:, None]
    logs -= np.log(1.3) * (rng.random(shape) < share)
    return {str(cell): np.exp(each) for cell, each in enumerate(logs)}


@pytest.mark.parametrize("shape", [(3, 10), (6, 10), (3, 30)])
@pytest.mark.parametrize("spread", [0.01, 0.02])
def test_a_fifth_of_slow_runs_is_seen(shape: tuple[int, int], spread: float) -> None:
    rng = np.random.default_rng(4)
    assert sum(find_modes(made(rng, shape, spread, 0.2)) is not None for _ in range(100)) >= 88


@pytest.mark.parametrize("shape", [(1, 10), (2, 10), (3, 10), (12, 10), (3, 30)])
def test_one_mode_is_one(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(5)
    assert sum(find_modes(made(rng, shape, 0.02)) is not None for _ in range(200)) <= 2
    tails = rng.standard_t(3, (100, *shape)) * 0.02
    assert sum(find_modes(dict(enumerate(np.exp(t)))) is not None for t in tails) <= 3  # type: ignore[arg-type]


def test_shares_and_means_are_those_of_the_runs() -> None:
    """In cells where most runs are slow, and where none is, too."""
    fast = 10 * (1 + 0.01 * np.array([0.3, -1, 0.5, 1.2, -0.4, 0.1, -0.7, 0.9, -0.2, -0.9]))
    cells = {}
    for cell, slow in (("none", 0), ("two", 2), ("half", 5), ("most", 7)):
        cells[cell] = np.where(np.arange(10) < slow, fast / 1.3, fast)
    modes = find_modes(cells)
    assert modes is not None
    assert modes.ratio == pytest.approx(1 / 1.3, rel=0.02)
    assert {c: (m.lower, m.upper) for c, m in modes.cells.items()} == {
        "none": (0, 10),
        "two": (2, 8),
        "half": (5, 5),
        "most": (7, 3),
    }
    assert str(modes.cells["two"]) == "2 near 7.665 and 8 near 10.01 of 10 runs"
    assert str(modes.cells["none"]) == "all 10 runs near 9.998"


@pytest.mark.parametrize("values", [[5.0] * 12, [0.0] * 12, [], [1.0, 2.0]])
def test_what_does_not_spread_has_no_modes(values: list[float]) -> None:
    assert find_modes({"a": np.array(values), "b": np.array(values)}) is None


def slow_fifth(record: Record) -> Record:
    """Two runs in ten of every cell but the first are 30% slower."""
    is_slow = "readwrite" not in record["cell"] and record["block"] % 5 == 2
    return scaled(record, 1 / 1.3) if is_slow else record


def test_a_campaign_with_two_modes_has_no_converged_cell(tmp_path: Path) -> None:
    send = {"send": ("readwrite", "sendfile", "splice")}
    synth = Synth(send, 10, {"min": 10, "max": 10, "precision": 0.5}, edit=slow_fifth, seed=3)
    result = load(synth.write(tmp_path / "r"))
    cells = cells_of(result)
    assert [c.status for c in cells] == ["unstable"] * 3
    assert "two modes among the runs; here 2 near" in cells[1].signs[-1]
    assert "here all 10 runs near" in cells[0].signs[-1]
    said = " ".join(text.render(build(result.path)).split())
    assert "sendfile: of the two modes of throughput, 2 near" in said
    family = in_result(result, "throughput", "send", "readwrite")
    (near,) = (c for c in family if c.level == "sendfile")
    assert MODES not in near.flags  # 83% faster: further apart than the modes
    plain = load(Synth(send, 10, {"min": 10, "max": 10, "precision": 0.5}).write(tmp_path / "p"))
    assert {c.status for c in cells_of(plain)} == {"converged"}
    assert missed(10) == pytest.approx(0.107, abs=5e-4)
