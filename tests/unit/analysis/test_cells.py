"""Cells: intervals of ok runs alone, and each status by what made it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import scipy.stats

from netbench.read.cells import CellResult, cells_of, tidy
from netbench.read.load import load
from netbench.report.numbers import joined, number, parts
from tests.support.synthetic import Record, Synth, failed, scaled

ONE = {"send": ("sendfile",)}


def only(folder: Path) -> CellResult:
    (found,) = cells_of(load(folder))
    return found


def test_means_are_those_of_the_records(tmp_path: Path) -> None:
    result = load(Synth(runs=12, spread=0.05).write(tmp_path / "r"))
    for cell in cells_of(result):
        values = result.ok[result.ok["cell"] == cell.cell]["throughput"]
        found = cell.intervals["throughput"]
        low, high = scipy.stats.t.interval(
            0.95, 11, loc=values.mean(), scale=scipy.stats.sem(values)
        )
        assert (found.n, found.mean) == (12, pytest.approx(values.mean()))
        assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


def bad(status: str, why: str, keep: Callable[[Record], bool] = lambda r: False) -> Synth:
    """Eight runs of a cell, of which some alone are kept as they are."""

    def edit(record: Record) -> Record:
        return record if keep(record) else failed(record, status, why)

    return Synth(ONE, runs=8, repeat={"min": 5, "max": 30}, edit=edit)


TEN, LIMIT = {"min": 5, "max": 10}, {"min": 5, "max": 30}
PRECISE = {"min": 5, "max": 24, "precision": 0.001}


@pytest.mark.parametrize(
    ("synth", "status"),
    [
        (Synth(ONE, runs=10, repeat=TEN), "converged"),
        (Synth(ONE, runs=10, repeat=TEN, spread=0.2), "max"),
        (Synth(ONE, runs=10, repeat=LIMIT, spread=0.2), "max"),  # stopped by a limit after min
        (Synth(ONE, runs=1), "max"),
        (Synth(ONE, runs=24, repeat=PRECISE, drift=0.3), "unstable"),
        (Synth(ONE, runs=3, repeat=TEN), "interrupted"),
        (Synth(ONE, runs=3, edit=lambda record: None), "interrupted"),
        (bad("failed", "no route to host"), "failed"),
        (bad("failed", "no route", lambda r: r["block"] < 3), "failed"),  # it ended in failures
        (bad("failed", "verify: byte 17 differs", lambda r: bool(r["block"])), "failed"),
        (bad("failed", "no route", lambda r: bool(r["block"])), "converged"),
        (bad("refused", "sg is fixed"), "refused"),
        (bad("unsupported", "no MSG_ZEROCOPY"), "unsupported"),
        (bad("interrupted", "Ctrl-C"), "interrupted"),
    ],
)
def test_status(tmp_path: Path, synth: Synth, status: str) -> None:
    assert only(synth.write(tmp_path / "r")).status == status


def shaky(record: Record) -> Record:
    """Both levels of a block move together by up to 40%, as on a machine whose clock speed wanders."""
    return scaled(record, 0.6 + 0.08 * (record["block"] * 7 % 10))


BOTH = {"send": ("readwrite", "sendfile")}
COMPARE = {"factor": "send", "baseline": "readwrite"}


@pytest.mark.parametrize(
    ("compare", "spread", "edit", "status"),
    [
        (COMPARE, 0.002, shaky, "converged"),
        (None, 0.002, shaky, "max"),
        (COMPARE, 0.2, None, "max"),
    ],
)
def test_compared_cells_are_judged_by_their_ratio(
    tmp_path: Path,
    compare: dict[str, str] | None,
    spread: float,
    edit: Callable[[Record], Record] | None,
    status: str,
) -> None:
    synth = Synth(BOTH, runs=10, repeat=TEN, spread=spread, edit=edit, compare=compare)
    assert [c.status for c in cells_of(load(synth.write(tmp_path / "r")))] == [status, status]


def test_tidy_has_a_row_for_every_cell_and_metric(tmp_path: Path) -> None:
    def edit(record: Record) -> Record:
        return failed(record, "refused", "no") if record["factors"]["pin"] == "apart" else record

    result = load(Synth(runs=5, edit=edit).write(tmp_path / "r"))
    frame = tidy(result, cells_of(result))
    assert " ".join(frame.columns) == (
        "cell pair send pin metric unit n mean low high precision status"
    )
    refused = frame[frame["pin"] == "apart"]
    assert refused["status"].tolist() == ["refused", "refused"]
    assert refused["n"].tolist() == [0, 0]
    assert refused["mean"].isna().all()
    throughput = frame[(frame["metric"] == "throughput") & (frame["n"] > 0)]
    assert throughput["unit"].tolist() == ["Gb/s", "Gb/s"]
    assert throughput["precision"].tolist() == pytest.approx(
        ((throughput["high"] - throughput["mean"]) / throughput["mean"]).tolist()
    )


def slow(record: Record) -> Record:
    """A machine that is slow for some blocks in succession, and fast for others."""
    return scaled(record, 1 + 0.02 * math.sin(record["block"] / 4))


@pytest.mark.parametrize(("edit", "mean"), [(slow, "unstable"), (None, "converged")])
def test_means_have_a_status_beside_that_of_their_ratio(
    tmp_path: Path, edit: Callable[[Record], Record] | None, mean: str
) -> None:
    made = Synth(BOTH, 24, spread=0.005, pairs=("a>b",), compare=COMPARE, edit=edit)
    for cell in cells_of(load(made.write(tmp_path / "r"))):
        assert (cell.status, cell.mean) == ("converged", mean)


def test_two_runs_are_shown_and_have_no_interval(tmp_path: Path) -> None:
    found = only(Synth(ONE, runs=2, spread=0.05).write(tmp_path / "r")).intervals["throughput"]
    assert (found.known, found.n) == (False, 2)
    listed = ", ".join(map(number, found.runs))
    assert joined(parts(found)) == f"{number(found.mean)} ({listed})"


def test_no_data_has_steps(tmp_path: Path) -> None:
    def edit(record: Record) -> Record:
        for side in ("sender", "receiver"):
            del record[side]["flow"]["bytes"]
        return record

    cell = only(Synth(ONE, runs=5, edit=edit, repeat={"min": 3, "max": 5}).write(tmp_path / "r"))
    assert "throughput" not in cell.intervals
    assert cell.intervals["steps"].n == 5
    assert cell.status in ("converged", "max")


def test_boots_are_the_unit_where_several_were_asked_for(tmp_path: Path) -> None:
    result = load(Synth(ONE, runs=12, boots=4).write(tmp_path / "r"))
    (cell,) = cells_of(result)
    means = result.ok.groupby("boot")["throughput"].mean()
    found = cell.intervals["throughput"]
    assert (cell.unit, found.n, cell.n) == ("boot", 4, 12)
    assert found.mean == pytest.approx(means.mean())
    assert found.half_width == pytest.approx(scipy.stats.t.ppf(0.975, 3) * means.std() / 2)
