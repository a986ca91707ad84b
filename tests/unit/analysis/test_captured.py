"""Numbers that tools print are metrics: in frames, comparisons, reports and CSV."""

from __future__ import annotations

import csv as csv_module
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from netbench import load
from netbench.api import compare
from netbench.base.errors import RequestError
from netbench.read.campaigns import find
from netbench.read.derive import metrics_of
from netbench.report import csv, plots
from netbench.report.blocks import Plot
from netbench.report.source import Source
from netbench.result.record import parse_record
from netbench.stats.comparison import LATE_CLIENT, NO_LATENESS
from netbench.tables.database import Database
from netbench.tables.exports import otava
from tests.support.synthetic import Synth

SLOW = {"readwrite": 40.0, "sendfile": 20.0}


def captured(record: dict[str, Any]) -> dict[str, Any]:
    value = SLOW[record["factors"]["send"]] + record["run"] % 3 / 10
    said = {"text": f"p99={value} us", "value": value, "unit": "µs"}
    return record | {"captures": {"latency_p99": said, "throughput": {"text": "9 Gb/s"}}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compared = {"factor": "send", "baseline": "readwrite"}
    synth = Synth({"send": tuple(SLOW)}, compare=compared, edit=captured, pairs=("snd>rcv",))
    return synth.write(tmp_path_factory.mktemp("captured"))


def test_a_captured_number_is_a_column_with_its_unit(folder: Path) -> None:
    result = load(folder)
    assert result.units["latency_p99"] == "µs"
    expected = [SLOW[str(r.send)] + r.run % 3 / 10 for r in result.runs.itertuples()]
    assert result.runs["latency_p99"].tolist() == pytest.approx(expected)
    cells = result.cells[result.cells["metric"] == "latency_p99"]
    assert cells["unit"].tolist() == ["µs", "µs"]
    assert cells["n"].tolist() == [10, 10]


def test_it_is_compared_and_less_time_is_better(folder: Path) -> None:
    (row,) = load(folder).compare("send", metric="latency_p99").to_dict("records")
    assert row["ratio"] == pytest.approx(0.5, rel=0.01)
    assert row["verdict"] == "better"
    assert "less latency_p99 than send=readwrite" in " ".join(load(folder).text().split())
    rows = list(csv_module.DictReader(io.StringIO(csv.render(load(folder).report))))
    assert {r["unit"] for r in rows if r["metric"] == "latency_p99"} == {"µs"}


def test_a_gate_can_be_of_it(folder: Path) -> None:
    fallen = compare(folder, gates=["latency_p99>5%", "latency_p99<-5%"])
    assert [bool(outcome.fell) for outcome in fallen.outcomes] == [False, True]
    with pytest.raises(RequestError, match="no metric 'latency_p98'"):
        compare(folder, gates=["latency_p98>5%"])


def test_results_that_print_other_units_are_never_put_together(tmp_path: Path) -> None:
    """950 K and 1.05 M operations: more by a tenth, not fewer by 99.9%."""
    levels, folders = {"Kops/s": 950.0, "Mops/s": 1.05}, []
    for day, (unit, value) in enumerate((*levels.items(), *levels.items())):
        said = {"captures": {"ops": {"text": "x", "value": value + day / 1e4, "unit": unit}}}
        synth = Synth({"send": ("write",)}, edit=lambda r, said=said: r | said, seed=day)
        folders.append(synth.write(tmp_path / f"r{day}"))
    sources = [Source.of(folder) for folder in folders]
    with Database(sources) as database:
        runs = database.query("SELECT result, max(ops) FROM runs GROUP BY ALL ORDER BY ALL")
        assert [row[1] for row in runs.rows] == [950.0, None, 950.0002, None]
        assert [note.partition(": ")[2] for note in runs.notes] == [
            "ops is in Mops/s, elsewhere in Kops/s: left out of columns without a unit"
        ] * 2
        changes = database.query("SELECT change FROM host_history WHERE metric = 'ops'")
        assert all(change is None or abs(change) < 0.01 for (change,) in changes.rows)
    text, left_out = otava(sources)
    assert "ops" not in text
    assert left_out == ["ops[send=write]"]
    earlier = find(tmp_path, sources[1].result, sources[3].result)
    assert ["ops" in result.metrics for result in earlier.results] == [False, False]


UNITS = {
    "prefixes": (["990 Kreq/s", "1.03 Mreq/s", "980 Kreq/s"], [990.0, 1030.0, 980.0], 0),
    "binary ones": (["900 KiB", "1.5 MiB", "800 KiB"], [900.0, 1536.0, 800.0], 0),
    "none, and one": (["999", "1.5K", "900"], [999.0, 1500.0, 900.0], 0),
    "other things": (["5 Kitems/s", "1 Mitems/s", "3 pages"], [5.0, 1000.0, None], 1),
}
"""What three runs print; their numbers in the unit of the first; how many are in another one."""


@pytest.mark.parametrize(("said", "numbers", "odd"), UNITS.values(), ids=UNITS.keys())
def test_a_run_in_another_unit_is_told_in_that_of_the_first(
    tmp_path: Path, said: list[str], numbers: list[float | None], odd: int
) -> None:
    def edit(record: dict[str, Any]) -> dict[str, Any]:
        number, _, unit = said[record["run"] - 1].partition(" ")
        if number.endswith("K"):
            number, unit = number[:-1], "K"
        return record | {"captures": {"ops": {"text": "x", "value": float(number), "unit": unit}}}

    result = load(Synth({"send": ("write",)}, edit=edit, runs=3).write(tmp_path / "r"))
    column = result.runs["ops"].tolist()
    assert [None if math.isnan(x) else round(x, 6) for x in column] == numbers
    assert len([c for c in Source.of(tmp_path / "r").cautions if c.kind == "units"]) == odd


@pytest.mark.parametrize(("late", "runs"), [(9.0, 0), (11.0, 20)])
def test_a_client_that_is_late_is_told(tmp_path: Path, late: float, runs: int) -> None:
    """By more than a tenth of the latency that it measures, of which nothing is concluded then."""

    def edit(record: dict[str, Any]) -> dict[str, Any]:
        noise = record["run"] % 3 / 10
        said = {"p99": 100.0 + noise, "lateness_p99": late + noise / 10, "transactions": 5.0}
        units = {"transactions": "1/s"}
        captures = {
            name: {"text": "", "value": value, "unit": units.get(name, "µs")}
            for name, value in said.items()
        }
        return record | {"captures": captures}

    compared = {"factor": "send", "baseline": "request"}
    synth = Synth({"send": ("request", "connect")}, edit=edit, compare=compared)
    source = Source.of(synth.write(tmp_path / "r"))
    told = [c.what for c in source.cautions if c.kind == "client_limit"]
    (compared_p99,) = source.comparisons["p99"]
    assert compared_p99.refused == bool(runs)
    assert [f"late in {runs} runs" in what for what in told] == [True] * bool(runs)
    metric = source.result.describe("p99")
    assert (metric.unit, metric.better) == ("µs", -1)
    assert source.result.runs["system_request_demand"].notna().all()


LATE: dict[str, tuple[dict[str, float], dict[str, str], bool]] = {
    "a mean by the mean": (
        {"latency": 100, "p50": 90, "lateness": 11, "lateness_p50": 8, "lateness_max": 9},
        {"latency": LATE_CLIENT, "p50": ""},
        True,
    ),
    "a quantile by its own": (
        {"p50": 50, "p90": 90, "lateness_p50": 6, "lateness_p90": 8},
        {"p50": LATE_CLIENT, "p90": ""},
        False,
    ),
    "or by the nearest above": (
        {"p50": 50, "p90": 90, "p99.9": 90, "lateness_p99": 8, "lateness_max": 10},
        {"p50": LATE_CLIENT, "p90": "", "p99.9": LATE_CLIENT},
        False,
    ),
    "by none that is below": ({"p99.9": 90, "lateness_p99": 1}, {"p99.9": NO_LATENESS}, False),
    "of no closed loop": ({"p99": 90, "latency": 90}, {"p99": "", "latency": ""}, False),
}


@pytest.mark.parametrize(("said", "refused", "told"), LATE.values(), ids=LATE.keys())
@pytest.mark.parametrize("boots", [1, 3])
def test_each_latency_is_judged_by_the_clients_lateness_of_it(
    tmp_path: Path, said: dict[str, float], refused: dict[str, str], told: bool, boots: int
) -> None:
    """Also over boots, of two results with earlier ones, and by gates, forced or not."""
    swept = "kernel" if boots > 1 else "send"

    def write(name: str, factor: float) -> Path:
        def edit(record: dict[str, Any]) -> dict[str, Any]:
            times = (1 if record["cell"] == f"{swept}=old" else factor) + record["run"] % 3 / 1e3
            values = {each: value * times for each, value in said.items()}
            captures = {n: {"text": "", "value": v, "unit": "µs"} for n, v in values.items()}
            return record | {"captures": captures}

        repeat = {"boots": boots, "min": 4, "max": 4 if boots > 1 else 10}
        compared = {"factor": swept, "baseline": "old"}
        made: dict[str, Any] = {"boots": boots, "repeat": repeat, "runs": 4 if boots > 1 else 10}
        made |= {"seed": len(name) + int(10 * factor), "compare": compared}
        return Synth({swept: ("old", "new")}, edit=edit, **made).write(tmp_path / name)

    levels = {"a": 1.5, "b": 3, "h/1": 1.499, "h/2": 1.501}
    a, b, *_ = [write(name, factor) for name, factor in levels.items()]
    assert ("client_limit" in {c.kind for c in Source.of(a).cautions}) == told
    for metric, why in refused.items():
        gate = f"{metric}>10%"
        (c,) = Source.of(a).comparisons.get(metric) or compare(a, metrics=[metric]).families[metric]
        assert (c.verdict, c.unsettled) == ("inconclusive" if why else "worse", why), metric
        within = compare(a, factor=swept, baseline="old", gates=[gate])
        assert (within.fell, why in within.refusal) == (not why, True), metric
        for forced in (False, True):
            both = compare(
                a, b, metrics=[metric], gates=[gate], history=tmp_path / "h", force=forced
            )
            new = next(c for c in both.families[metric] if c.context[swept] == "new")
            assert (new.verdict, new.unsettled) == ("inconclusive" if why else "worse", why), metric
            assert both.fell == (not why), metric


@pytest.mark.parametrize("lacking", [0, 3, 10])
def test_a_quantile_that_slow_runs_lack_is_told(tmp_path: Path, lacking: int) -> None:
    """What is left is that of the faster ones; one that all lack is of nobody."""

    def edit(record: dict[str, Any]) -> dict[str, Any]:
        told = {"transactions": (5.0, "1/s")}
        told |= {} if record["run"] <= lacking else {"p99": (100.0, "µs")}
        captures = {
            name: {"text": "", "value": value, "unit": unit} for name, (value, unit) in told.items()
        }
        return record | {"captures": captures}

    folder = Synth({"send": ("request",)}, edit=edit).write(tmp_path / "r")
    told = [c.what for c in Source.of(folder).cautions if c.kind == "few_requests"]
    assert told == (
        ["Too few requests for p99 (3 runs), which other runs of the same cells have."]
        if lacking == 3
        else []
    )


def test_quantiles_are_curves_with_their_intervals(tmp_path: Path) -> None:
    """A line a cell, through the means of its quantiles; the page has the picture."""
    levels = {"p50": 20.0, "p90": 40.0, "p99": 400.0}

    def edit(record: dict[str, Any]) -> dict[str, Any]:
        captures = {
            name: {"text": "", "value": value + record["run"], "unit": "µs"}
            for name, value in levels.items()
        }
        return record | {"captures": captures}

    folder = Synth({"send": ("request", "connect")}, edit=edit).write(tmp_path / "r")
    source = Source.of(folder)
    axes = plots.quantiles(source)
    assert len(axes.lines) == len(source.cells) == 2
    for line, cell in zip(axes.lines, source.cells, strict=True):
        shares, means = (list(map(float, np.asarray(d))) for d in line.get_data())
        assert shares == [0.5, 0.9, 0.99]
        assert means == [cell.intervals[name].mean for name in levels]
    section = next(s for s in load(folder).report.sections if s.key == "cells")
    assert next(b.kind for b in section.blocks if isinstance(b, Plot)) == "quantiles"


def test_a_run_without_a_request_has_no_cpu_of_one(tmp_path: Path) -> None:
    """Alone, as the ledger of a campaign sees it, and among others."""

    def edit(record: dict[str, Any]) -> dict[str, Any]:
        said = {"text": "", "value": float(record["run"] > 1), "unit": "1/s"}
        return record | {"captures": {"transactions": said}}

    folder = Synth({"send": ("request",)}, edit=edit, runs=3).write(tmp_path / "r")
    assert load(folder).runs["system_request_demand"].isna().tolist() == [True, False, False]
    line = (folder / "records.jsonl").read_bytes().splitlines()[0]
    alone = metrics_of(parse_record(line, "a test"), {}, True)
    assert alone["transactions"] == 0
    assert not [name for name in alone if "request_demand" in name]
