"""Boots as the unit: widths and variances against scipy, and coverage simulated."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from netbench.model import Compare, Repeat
from netbench.read.cautions.rule import Caution
from netbench.read.cells import CellResult, cells_of
from netbench.read.load import load
from netbench.read.result import Result
from netbench.report.source import Source
from netbench.stats.by_boot import runs_a_boot, split, what_boots_buy
from netbench.stats.closing import Standing, closings
from netbench.stats.series import instabilities, outliers
from tests.support.synthetic import Record, Synth, failed, scaled

TWO = ("snd>rcv",)
KERNELS = {"kernel": ("6.1", "6.12"), "send": ("readwrite", "sendfile")}


# --- where the variance comes from ---


def test_unequal_boots_are_no_bias() -> None:
    """Mean over draws of B - W over n: its expectation is between^2, however many runs a boot has."""
    rng, counts = np.random.default_rng(8), np.array([2, 3, 9, 4, 2])
    at, found = np.repeat(np.arange(5), counts), []
    for _ in range(3000):
        one = split(100 + np.repeat(rng.normal(0, 2.0, 5), counts) + rng.normal(0, 0.5, 20), at)
        assert one is not None
        found.append(one.between**2)
    assert np.mean(found) == pytest.approx(4.0, abs=4 * np.std(found) / math.sqrt(3000))


def test_what_cannot_be_split_is_not() -> None:
    assert split(np.array([1.0, 2.0, 3.0]), np.array([1, 1, 1])) is None  # one boot
    assert split(np.array([1.0, 2.0, 3.0]), np.array([1, 2, 3])) is None  # nothing within
    alike = split(np.ones(6), np.array([1, 1, 2, 2, 3, 3]))
    assert alike is not None
    assert (alike.between, alike.within) == (0, 0)


# --- what is said before there is any data ---


@pytest.mark.parametrize(
    ("boots", "kernels", "said", "warning"),
    [
        (4, 2, "4 boots of each of 2 kernels, 3 runs of each cell a boot", ""),
        (1, 2, "1 boot of each", "one boot of each kernel has no interval"),
        (2, 1, "2 boots, 3 runs", "two boots prove next to nothing"),
        (1, 1, "1 boot, 3 runs", ""),
    ],
)
def test_what_boots_buy_and_too_few_are_warned_of(
    boots: int, kernels: int, said: str, warning: str
) -> None:
    told, warned = what_boots_buy(boots, 3, kernels=kernels)
    assert said in told
    assert warning in warned
    assert bool(warning) == bool(warned)
    assert [runs_a_boot(Repeat(min=n, boots=4)) for n in (1, 4, 10, 12)] == [1, 1, 3, 3]


# --- cells, their status, and cautions ---


ONE = {"factors": {"send": ("sendfile",)}, "pairs": TWO}
COMPARE = {"factor": "kernel", "baseline": "6.1"}


def cells(folder: Path, **fields: object) -> list[CellResult]:
    return cells_of(load(Synth(**ONE | fields).write(folder / "r")))  # type: ignore[arg-type]


def told(result: Result) -> dict[str, Caution]:
    return {c.kind: c for c in Source.of(result.path).cautions}


@pytest.mark.parametrize(("between", "status"), [(0.02, "max"), (0.002, "converged")])
def test_a_cell_is_judged_by_its_boots(tmp_path: Path, between: float, status: str) -> None:
    """Runs within a boot agree to 0.01%: over runs any interval would be narrow enough."""
    asked = {"runs": 40, "boots": 4, "spread": 1e-4, "repeat": {"precision": 0.02}}
    (cell,) = cells(tmp_path, between=between, **asked)
    assert cell.status == status
    assert (cell.intervals["throughput"].precision > 0.02) == (status == "max")


def test_a_failed_run_leaves_a_cell_judged_and_a_boot_that_is_missing_does_not(
    tmp_path: Path,
) -> None:
    def reset(record: Record) -> Record:
        return failed(record, "failed", "reset") if record["run"] == 5 else record

    asked = {"runs": 12, "boots": 4, "spread": 0.001}
    (cell,) = cells(tmp_path / "a", edit=reset, **asked)
    assert (cell.status, cell.n, cell.intervals["throughput"].n) == ("converged", 11, 4)
    (cell,) = cells(tmp_path / "b", edit=lambda r: r if r["boot"] < 4 else None, **asked)
    assert (cell.status, cell.intervals["throughput"].n) == ("interrupted", 3)


def test_boots_that_nobody_asked_for_are_the_unit_too(tmp_path: Path) -> None:
    def rebooted(record: Record) -> Record:
        return record | {"boot": int(record["block"] == 9)}

    result = load(Synth(**ONE, runs=10, spread=0.001, edit=rebooted).write(tmp_path / "r"))
    (cell,) = cells_of(result)
    assert (cell.unit, cell.intervals["throughput"].n) == ("boot", 2)
    assert "2 boots that the campaign did not ask for" in told(result)["boots"].what


def test_one_boot_of_each_kernel_is_warned_of(tmp_path: Path) -> None:
    once, two, four = (
        told(load(Synth(KERNELS, runs=12, boots=n, pairs=TWO).write(tmp_path / str(n))))
        for n in (1, 2, 4)
    )
    assert "Each kernel was booted once" in once["boots"].what
    assert "4 cells were run in 2 boots" in two["boots"].what
    assert "±9.0 standard deviations" in two["boots"].evidence
    assert "boots" not in four


def test_boots_alone_are_no_sign_of_dependence(tmp_path: Path) -> None:
    """Boots far apart are what the interval over boots is for; steps within a boot are drift."""
    result = load(Synth(**ONE, runs=24, boots=3, between=0.2).write(tmp_path / "r"))
    (cell,) = cells_of(result)
    assert (cell.signs, cell.status) == ((), "max")
    assert not {"dependence", "outlier", "drift"} & told(result).keys()
    assert instabilities(result.ok["throughput"].to_numpy())

    def slow(record: Record) -> Record:
        return scaled(record, 0.5) if record["boot"] == 5 else record

    result = load(Synth(**ONE, runs=24, boots=8, edit=slow).write(tmp_path / "slow"))
    assert len(outliers(result.ok["throughput"].to_numpy())) == 3
    assert "outlier" not in told(result)


def test_boots_apart_in_a_precise_ratio_are_no_dependence(tmp_path: Path) -> None:
    """Rounds at two levels, alike for both kernels: the ratio converges, and each boot is sound."""
    place = {boot: number // 2 for number, (boot, _) in enumerate(Synth(KERNELS, boots=4).booted())}

    def stepped(record: Record) -> Record:
        return scaled(record, 1 + place[record["boot"]] % 2)

    synth = Synth(KERNELS, runs=16, boots=4, pairs=TWO, spread=0.004, edit=stepped, compare=COMPARE)
    result = load(synth.write(tmp_path / "r"))
    assert {c.status for c in cells_of(result)} == {"converged"}
    assert "dependence" not in told(result)


def test_a_number_of_runs_that_boots_settle_is_not_widened_for(tmp_path: Path) -> None:
    asked = {"runs": 10, "repeat": {"min": 10, "max": 30}}
    settled, looked_at = (
        cells(tmp_path / name, factors={name: ("6.1",)}, **asked)[0].intervals["throughput"]
        for name in ("kernel", "send")
    )
    students = scipy.stats.t.ppf(0.975, 9) / math.sqrt(10)
    assert settled.half_width == pytest.approx(students * settled.sd)
    assert looked_at.half_width > 1.05 * students * looked_at.sd


@pytest.mark.parametrize(
    ("rounds", "why"), [([2, 2, 3, 3, 6, 6], "converged"), ([3, 3, 2, 2, 6, 6], "max")]
)
def test_closing_by_ratios_of_boots(rounds: list[int], why: str) -> None:
    """Boots differ by 40%, each round alike in both kernels, or crossed."""
    base, other = [10.0, 10.0, 14.0, 14.0, 12.0, 12.0], [20.0, 20.0, 28.0, 28.0, 24.0, 24.01]
    cells = {}
    for level, values, boots, first in (
        ("a", base, [1, 1, 4, 4, 5, 5], 0),
        ("b", other, rounds, 6),
    ):
        by_block, met = (dict(enumerate(each, first)) for each in (values, boots))
        standing = Standing({"kernel": level}, {"throughput": by_block}, boots=met)
        cells[f"kernel={level}", "a>b"] = standing
    repeat = Repeat(min=6, max=6, boots=3, precision=0.01)
    assert set(closings(cells, ["kernel"], Compare("kernel", "a"), repeat).values()) == {why}
