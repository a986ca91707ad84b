"""Requests in reports and exports, against latencies that are known one by one."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import netbench
from netbench import api
from netbench.base.errors import ReportError, RequestError, StoreError
from netbench.report import html, markdown, text
from netbench.report.blocks import Plot, Table
from netbench.report.build import Report, build
from netbench.report.plots import drawn
from tests.support.synthetic import Record, Synth, failed
from tests.unit.test_histogram import counted

RATES = "1000/s", "2000/s", "4000/s", "8000/s"
PER = 2000  # requests a run
HEADS = "qps", "avglat", "p95", "p99", "cpu", "cpu a request", "interrupts a request"
METRICS = "transactions latency p95 p99 system_cpu system_request_demand interrupts_per_request"
NAME = "netbench_request_latency_seconds"
Values = npt.NDArray[np.int64]


class Asked:
    """A result of requests: by rate, how slow they are, and the share that was answered in time."""

    pairs = ("here>here",)

    def __init__(self, slow: Mapping[str, float], answered: Mapping[str, float]) -> None:
        self.slow, self.answered = slow, answered
        self.values: dict[int, Values] = {}  # ns, by run
        self.of_cell = defaultdict[str, list[int]](list)

    def __call__(self, record: Record) -> Record:
        rate = record["factors"].get("rate", "none")
        random = np.random.default_rng(record["run"])
        values = random.lognormal(11, 0.5, PER) * self.slow.get(rate, 1)
        self.values[record["run"]] = whole = values.astype(np.int64)
        self.of_cell[record["cell"]].append(record["run"])
        due = float(rate.replace("none", "5000").removesuffix("/s"))
        found = {**counted(whole).numbers(), "transactions": due * self.answered.get(rate, 1)}
        found |= {"offered": due} if rate != "none" else {}
        for side in ("sender", "receiver"):
            del record[side]["flow"]["bytes"], record[side]["tcp"]
            record[side]["softirq"] = {"interrupts": [5, 5 + record["run"]], "namespace": [1, 1]}
        units = {"transactions": "1/s", "offered": "1/s"}
        told = {n: {"text": "", "value": v, "unit": units.get(n, "µs")} for n, v in found.items()}
        return record | {"captures": told}

    def write(self, folder: Path, **factors: Sequence[str]) -> Path:
        repeat = {"metrics": ["p99"]}
        Synth(factors, runs=6, repeat=repeat, pairs=self.pairs, edit=self).write(folder)
        for run, values in self.values.items():
            buckets, counts = zip(*counted(values).buckets, strict=True)
            line = {"side": "sender", "edge": "drained", "ns": 1}
            line["requests"] = {"latency_bucket": buckets, "latency_count": counts}
            (folder / f"samples/{run:06}.jsonl").write_text(json.dumps(line) + "\n")
        return folder

    def all(self, cell: str) -> Values:
        return np.concatenate([self.values[run] for run in self.of_cell[cell]])


def made(folder: Path, **factors: Sequence[str]) -> tuple[Asked, Path]:
    asked = Asked({"8000/s": 20}, {"8000/s": 0.7})
    return asked, asked.write(folder, **(factors or {"rate": RATES}))


def table_of(report: Report) -> list[dict[str, Any]]:
    (table,) = (b for b in report.section("requests").blocks if isinstance(b, Table))
    return [dict(zip((c.name for c in table.columns), row, strict=True)) for row in table.rows]


KNEES: Any = (  # how slow and how much is answered, by rate; where the knee is
    ({}, {}, None),
    ({}, {"4000/s": 0.985, "8000/s": 0.97}, "8000/s"),
    ({"2000/s": 8, "4000/s": 12, "8000/s": 40}, {}, "4000/s"),
    ({"2000/s": 30}, {"4000/s": 0.5}, "2000/s"),
)


@pytest.mark.parametrize(("slow", "answered", "knee"), KNEES)
def test_the_knee_is_where_less_is_answered_or_p99_is_steep(
    tmp_path: Path, slow: dict[str, float], answered: dict[str, float], knee: str | None
) -> None:
    report = build(Asked(slow, answered).write(tmp_path / "r", rate=RATES[::-1]))
    (curve,) = report.source.load_curves
    assert [cell.factors["rate"] for cell in curve.cells] == list(RATES)
    assert (curve.knee.factors["rate"] if curve.knee else None) == knee
    said = f"Knee at {knee}: p99" if knee else "No knee up to 8000/s: p99"
    assert said in text.render(report)
    assert not slow or not answered or f'<span class="gist">{said}' in html.render(report)


def test_a_curve_is_of_cells_that_differ_in_their_rate_alone(tmp_path: Path) -> None:
    report = build(made(tmp_path / "r", rate=RATES[1:], wait=("epoll", "spin"))[1])
    curves = [{c.factors["wait"] for c in each.cells} for each in report.source.load_curves]
    assert curves == [{"epoll"}, {"spin"}]
    assert "epoll: knee at 8000/s" in text.render(report)


def test_the_drawing_has_the_frames_numbers(tmp_path: Path) -> None:
    _, folder = made(tmp_path / "r")
    result, report = netbench.load(folder), build(folder)
    plot = next(b for b in report.section("cells").blocks if isinstance(b, Plot))
    cells = result.cells.set_index(["metric", "rate"])
    at = [cells.loc[("offered", rate), "mean"] for rate in RATES]
    for axes in (drawn(report.source, plot), result.plot.load()):
        if legend := axes.get_legend():
            assert not any(text.get_parse_math() for text in legend.get_texts())
        p50, p99, ring = axes.lines
        for line, name in ((p50, "p50"), (p99, "p99")):
            points = [at, [cells.loc[(name, rate), "mean"] for rate in RATES]]
            assert np.transpose(line.get_xydata()).tolist() == points
        assert np.array_equal(ring.get_xydata(), np.asarray(p99.get_xydata())[-1:])
    with pytest.raises(ReportError, match="no rate of requests is swept"):
        netbench.load(made(tmp_path / "closed", wait=("epoll",))[1]).plot.load()


def test_each_second_has_the_p99_of_its_requests(tmp_path: Path) -> None:
    """Means over runs; none where too few requests have one."""
    asked, folder = made(tmp_path / "r", rate=("1000/s",))
    with pytest.raises(ReportError, match="no run has requests in several seconds"):
        netbench.load(folder).plot.seconds()
    parts = {run: np.split(values, [500, 1500]) for run, values in asked.values.items()}
    for run, seconds in parts.items():
        with (folder / f"samples/{run:06}.jsonl").open("a") as file:
            for values in seconds:
                bucket, count = zip(*counted(values).buckets[::-1], strict=True)
                requests = {"bucket": bucket, "count": count}
                file.write(json.dumps({"edge": "second", "ns": 1, "requests": requests}) + "\n")
    (line,) = netbench.load(folder).plot.seconds().lines
    known = [np.quantile(each[1], 0.99, method="median_unbiased") for each in parts.values()]
    assert line.get_xydata() == pytest.approx(np.array([[2, np.mean(known) / 1e3]]), rel=8e-3)
    assert 'class="seconds"' in html.render(build(folder))
    good = (file := folder / "samples/000002.jsonl").read_text()
    for bad in ("[-1],[2]", "[1],[-2]", "[99999999999999],[2]", "[2,2],[1,1]", "[" * 100_000):
        told = '{"edge":"second","requests":{"bucket":' + bad.replace("],", '],"count":') + "}}\n"
        file.write_text(good + told)
        said = "".join(text.render(build(folder)).split())
        assert re.search(r"Nop99ofeachsecond:\S+/000002.jsonl:5:not", said), bad[:20]


def test_the_table_has_the_frames_numbers(tmp_path: Path) -> None:
    _, folder = made(tmp_path / "r")
    report, cells = build(folder), netbench.load(folder).cells.set_index(["metric", "rate"])
    columns = dict(zip(HEADS, METRICS.split(), strict=True))
    rows = table_of(report)
    assert [row["load"] for row in rows] == list(RATES)
    for row in rows:
        assert row.keys() == {"load", *columns}
        for head, metric in columns.items():
            of = cells.loc[(metric, row["load"])]
            assert (row[head].mean, row[head].low) == (of["mean"], of["low"])
    runs = netbench.load(folder).runs
    per = runs["run"] / 10 / runs["transactions"]  # a window of 10 s
    assert runs["interrupts_per_request"].to_numpy() == pytest.approx(per.to_numpy(), rel=1e-3)
    assert "| load | qps (1/s) | avglat (µs) |" in markdown.render(report)


def test_what_was_not_measured_is_missing(tmp_path: Path) -> None:
    class Few(Asked):
        pairs = ("a>b",)

        def __call__(self, record: Record) -> Record:
            record = super().__call__(record)
            for of, name in (("captures", "p95"), ("sender", "softirq"), ("receiver", "softirq")):
                del record[of][name]
            spin = record["factors"]["wait"] == "spin"
            return failed(record, "failed", "no") if spin else record

    report = build(Few({}, {}).write(tmp_path / "r", wait=("epoll", "spin")))
    epoll, spin = table_of(report)
    assert "interrupts a request" not in epoll
    of_server = report.source.cells[0].intervals["receiver_cpu"]
    assert epoll["cpu"] == of_server, "the hosts have a kernel each"
    assert (epoll["wait"], epoll["load"], epoll["p95"]) == ("epoll", "closed", None)
    assert {value for head, value in spin.items() if head not in ("wait", "load")} == {None}


def test_percentiles_are_those_of_the_latencies(tmp_path: Path) -> None:
    asked, folder = made(tmp_path / "r")
    assert api.export_text([folder], "hgrm", tmp_path / "h") == []
    for rate in RATES:
        file = tmp_path / "h" / f"rate={rate.replace('/', '_')}.hgrm"
        values, lines = asked.all(f"rate={rate}"), file.read_text().splitlines()
        assert lines[0] == "       Value     Percentile TotalCount 1/(1-Percentile)"
        plotted = [each.split() for each in lines[2:] if each[0] != "#"]  # as its plotter does
        rows = [tuple(map(float, words)) for words in plotted if len(words) == 4]
        assert [row[1] for row in rows[:6]] == [0, 0.1, 0.2, 0.3, 0.4, 0.5]
        for value, share, total, inverse in rows:
            assert total == (values <= round(value * 1e3)).sum() >= share * len(values) - 1e-6
            assert inverse == pytest.approx(1 / (1 - share), abs=0.01)
        numbers = dict(re.findall(r"(\w[\w ]*?) += +([\d.]+)", "\n".join(lines)))
        assert float(numbers["Mean"]) == pytest.approx(values.mean() / 1e3, abs=0.001)
        assert float(numbers["StdDeviation"]) == pytest.approx(values.std() / 1e3, rel=0.001)
        assert float(numbers["Max"]) == values.max() / 1e3
        assert int(numbers["Total count"]) == len(values) == 6 * PER
        assert lines[-2] == "#[Buckets =           35, SubBuckets     =          256]"


def test_openmetrics_counts_the_latencies(tmp_path: Path) -> None:
    asked, folder = made(tmp_path / "r", rate=RATES, wait=('e"p\\oll',))
    assert api.export_text([folder], "openmetrics", tmp_path / "m.txt") == []
    lines = (tmp_path / "m.txt").read_text().splitlines()
    assert lines[:2] == [f"# TYPE {NAME} histogram", f"# UNIT {NAME} seconds"]
    assert lines[-1] == "# EOF"
    ends = defaultdict[str, list[str]](list)
    for line in lines[3:-1]:
        name, told, number = re.findall(r"^(\w+)\{(.*)\} (\S+) [\d.]+$", line)[0]
        labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', told))
        assert labels["wait"] == 'e\\"p\\\\oll'
        values = asked.all(re.sub(r"\\(.)", r"\1", labels["cell"]))
        if name == f"{NAME}_sum":
            assert float(number) == pytest.approx(values.sum() / 1e9, rel=1e-6)
        else:
            end = float(labels.get("le", math.inf))
            assert int(number) == (values * 1e-9 <= end * (1 + 1e-12)).sum()
            ends[labels["rate"]].append(labels.get("le", "count"))
    assert all(ends[rate] == ends[RATES[0]] for rate in RATES)
    assert ends[RATES[0]][-2:] == ["+Inf", "count"]


def test_histograms_that_are_gone_or_damaged_are_said(tmp_path: Path) -> None:
    asked, folder = made(tmp_path / "r", rate=RATES[:2])
    (folder / f"samples/{asked.of_cell['rate=1000/s'][0]:06}.jsonl").unlink()
    (note,) = api.export_text([folder], "hgrm", tmp_path / "h")
    assert "1 run left out" in note
    assert f" count    = {5 * PER:12d}]" in (tmp_path / "h/rate=1000_s.hgrm").read_text()
    file = folder / f"samples/{asked.of_cell['rate=2000/s'][0]:06}.jsonl"
    file.write_text(file.read_text().replace('"latency_count": [', '"latency_count": [7, '))
    with pytest.raises(StoreError, match="not a histogram"):
        api.export_text([folder], "openmetrics", tmp_path / "m")
    with pytest.raises(RequestError, match="no requests with histograms"):
        api.export_text([Synth().write(tmp_path / "bulk")], "hgrm", tmp_path / "b")
