"""What notebooks use: frames with units, plots as Axes, comparisons; and whole notebooks."""

from __future__ import annotations

import json
import math
import pydoc
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pandas as pd
import pytest
import scipy.stats
import yaml
from matplotlib import pyplot
from matplotlib.axes import Axes
from nbclient import NotebookClient

import netbench
from netbench.base.errors import CampaignError, ReportError
from netbench.report import csv
from tests.support.paths import ROOT, sample
from tests.support.synthetic import Record, Synth, failed

NOTEBOOKS = ROOT / "notebooks"


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> netbench.Results:
    def edit(record: Record) -> Record:
        return failed(record, "failed", "reset by peer") if record["run"] == 7 else record

    return netbench.load(Synth(runs=8, edit=edit).write(tmp_path_factory.mktemp("r") / "r"))


def test_runs_hold_all_runs_with_units(result: netbench.Results) -> None:
    frame = result.runs
    columns = "run cell pair block boot send pin status reason engaged started excluded noise"
    assert list(frame.columns[:13]) == columns.split()
    assert frame["run"].tolist() == list(range(1, 33))
    assert frame.loc[frame["run"] == 7, ["status", "reason"]].to_numpy().tolist() == [
        ["failed", "reset by peer"]
    ]
    assert frame.loc[frame["run"] == 7, "throughput"].isna().all()
    assert frame.attrs["units"]["system_demand"] == "µs/KB"
    assert set(result.units) == set(frame.columns[13:])


def test_cells_are_the_csv(result: netbench.Results, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(csv.render(result.report))
    read = pd.read_csv(tmp_path / "x.csv")
    cells = result.cells.astype({"send": "str", "pin": "str"})
    pd.testing.assert_frame_equal(cells, read, check_dtype=False)


def test_facts_say_why_one_is_missing(result: netbench.Results) -> None:
    facts = result.facts.set_index("fact")
    assert facts.loc["kernel", "value"] == "6.18.1"
    assert pd.isna(facts.loc["governor", "value"])
    assert facts.loc["governor", "why"] == "no cpufreq on this machine"


def test_samples(result: netbench.Results) -> None:
    rows = result.samples
    assert list(rows.columns) == ["run", "side", "seconds", "stream", "flow.bytes", "tcp.rtt_us"]
    assert set(rows["run"]) == {1}
    assert rows.groupby("side")["seconds"].max().tolist() == pytest.approx([0.9, 0.9])
    with pytest.raises(ReportError, match="run 2 has no samples"):
        result.plot.samples(2)
    with pytest.raises(ReportError, match=r"run 1 have no tcp\.mood; they have flow\.bytes"):
        result.plot.samples(1, "tcp.mood")


def test_samples_of_several_streams_stay_apart(result: netbench.Results, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(result.path, folder)
    lines = [
        {
            "side": "sender",
            "ns": n * 10**8,
            "flow": {"bytes": [n, 2 * n]},
            "tcp": {"rtt_us": [40, 60]},
        }
        for n in range(3)
    ]
    (folder / "samples" / "000001.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines)
    )
    rows = netbench.load(folder).samples
    assert rows["stream"].tolist() == [0, 1] * 3
    assert rows["flow.bytes"].tolist() == [0, 0, 1, 2, 2, 4]
    assert rows["tcp.rtt_us"].tolist() == [40, 60] * 3


def test_the_example_of_sql_counts_no_bytes_of_the_warm_up(
    result: netbench.Results, tmp_path: Path
) -> None:
    """Two streams of 10^9 bytes each in a second, after 7 and 9 GB of the warm-up."""
    folder = Path(shutil.copytree(result.path, tmp_path / "copy"))
    lines = [
        {
            "side": "receiver",
            "ns": n * 10**8,
            "flow": {"bytes": [(70 + n) * 10**8, (90 + n) * 10**8]},
        }
        for n in range(11)
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "samples" / "000001.jsonl").write_text(text)
    page = (ROOT / "docs" / "how-to" / "query-and-export.md").read_text()
    sql = page.split('netbench query "\n')[-1].split('" latest')[0].replace('\\"', '"')
    assert netbench.api.query(sql, [folder]).rows == [(1, pytest.approx(16.0))]


def test_compare_is_the_reports(result: netbench.Results) -> None:
    frame = result.compare("send")
    assert frame["pin"].tolist() == ["none", "apart"]
    assert frame["verdict"].tolist() == ["better", "better"]
    assert frame["n"].tolist() == [c for c in frame["n"] if c in (7, 8)]
    against = result.compare("send", baseline="sendfile", metric="system_demand")
    assert against["verdict"].tolist() == ["worse", "worse"]
    for bad in (
        {"factor": "tso"},
        {"factor": "send", "baseline": "writev"},
        {"factor": "send", "metric": "speed"},
        {"factor": "send", "margin": -1.0},
        {"factor": "send", "margin": math.nan},
    ):
        with pytest.raises(ReportError):
            result.compare(**bad)


def test_plots_are_axes(result: netbench.Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    for axes in (
        result.plot.means(),
        result.plot.order("system_demand"),
        result.plot.samples(1),
        result.plot.samples(1, "tcp.rtt_us"),
    ):
        assert isinstance(axes, Axes)
        assert axes.lines
    means = result.plot.means("throughput")
    assert means.get_yticklabels()[0].get_text() == "readwrite · none  n=8"
    assert len(means.lines[0].get_xdata()) == 31  # every ok run is a dot
    assert result.plot.means("throughput", ax=means) is means
    with pytest.raises(ReportError, match="no metric 'speed'"):
        result.plot.means("speed")
    pyplot.close("all")


def test_dir_and_help_show_the_api_on_a_screen() -> None:
    shown = dir(netbench)
    assert {"Results", "compare", "load", "run", "transfer"} <= set(shown)
    assert all(hasattr(netbench, name) for name in shown)
    assert "os" not in shown
    assert len(pydoc.plain(pydoc.render_doc(netbench)).splitlines()) <= 50
    assert all(f"netbench.{name}(" in str(netbench.__doc__) for name in shown[2:])


SMALL = {"transfer": {"duration": "40ms", "warmup": "10ms"}, "repeat": {"min": 2, "max": 2}}


def test_a_campaign_runs_from_a_file_a_text_and_a_mapping(tmp_path: Path) -> None:
    mapping = {"netbench": 1, "name": "small", **SMALL, "sweep": {"tool": ["none"]}}
    text = yaml.safe_dump(mapping)
    (tmp_path / "c.yaml").write_text(text)
    for campaign in (tmp_path / "c.yaml", str(tmp_path / "c.yaml"), text, mapping):
        made = netbench.run(campaign, results=tmp_path / "r", sets=["repeat.max=2"])
        assert (made.name, len(made.runs), made.path.parent) == ("small", 2, tmp_path / "r/small")
        assert {*made.runs["status"]} == {"ok"}
    with pytest.raises(CampaignError, match=r"campaign:\d+: nothing"):
        netbench.run(f"{text}nothing: 1\n")


def test_results_are_compared_and_shown(result: netbench.Results, tmp_path: Path) -> None:
    other = netbench.load(Synth(runs=8, seed=3).write(tmp_path / "o"))
    compared = netbench.compare(other, result.path, metrics=["throughput"])
    assert compared.results["B"].path == result.path
    assert repr(compared) == compared.text()
    assert "<h2>synthetic (B) compared with synthetic (A)" in compared._repr_html_()
    told = repr(netbench.compare(result, factor="send", margin=0.05))
    assert result.compare("send", margin="5%").equals(result.compare("send", margin=0.05))
    with pytest.raises(ReportError, match="margin: expected a percentage"):
        result.compare("send", margin="x")
    assert ("send compared with" in told, "margin 5%" in told) == (True, True)


def test_words_and_previews(result: netbench.Results) -> None:
    assert "31 runs" not in repr(result)
    assert "32 runs of 4 cells" in repr(result)
    assert result.text(100).startswith("synthetic: summary")
    first, folded = result._repr_html_().split("<details")
    assert 'class="cards"' in first
    assert "<h2>Cells" in first
    assert "<h2>Cautions" in folded
    assert result.html().startswith("<!doctype html>")


def test_importing_netbench_is_cheap() -> None:
    code = "import sys, netbench; from netbench.base import errors; sys.exit(bool({'pandas', 'numpy', 'matplotlib', 'fabric'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    with pytest.raises(AttributeError):
        _ = netbench.nothing


def outputs(name: str, stored: bool = True) -> list[Any]:
    """What the cells of a notebook show when they are run, which is what they have `stored`."""
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    before = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": str(NOTEBOOKS)}}
    ).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    forms = [[sorted(one.get("data", {})) for one in each] for each in (before, shown)]
    assert not stored or forms[0] == forms[1], "store them by `python -m tools.notebooks`"
    assert {one["output_type"] for one in before} <= {"execute_result", "display_data", "stream"}
    return shown


def test_first_look_runs(result: netbench.Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETBENCH_SAMPLE", str(result.path.parent))
    shown = outputs("first-look", stored=False)
    assert any("moves" in output.get("text", "") for output in shown)
    assert sum("text/html" in output.get("data", {}) for output in shown) >= 4
    assert sum("image/png" in output.get("data", {}) for output in shown) == 2


def test_meters_are_told_apart_on_the_committed_sample() -> None:
    """What runs each meter needs is by the raw counters; procstat is told to lie where it does."""
    shown, busy = outputs("cpu-meters"), defaultdict(list)
    for line in (sample("cpu-meters") / "records.jsonl").read_text().splitlines():
        record = json.loads(line)
        cpus = 0.0
        for side in (record["sender"], record["receiver"]):
            cpus += np.diff(side["rusage"]["cpu_ns"])[0] / np.diff(side["time_ns"])[0]
        busy[record["factors"]["rate"]].append(cpus)
    (needed,) = (text for text in map(plain, shown[-1:]) if text.startswith("meter "))
    rows = {line.split()[0]: list(map(int, line.split()[1:])) for line in needed.splitlines()[2:]}
    assert rows.keys() == busy.keys()
    for rate, each in busy.items():
        assert rows[rate][0] == math.ceil((1.96 * np.std(each, ddof=1) / np.mean(each) / 0.05) ** 2)
    (at,) = (i for i, output in enumerate(shown) if "others used" in output.get("text", ""))
    above = plain(shown[at + 1])
    runs = netbench.load(sample("cpu-meters")).runs
    (of_rate,) = (each for rate, each in runs.groupby("rate", observed=True) if rate == "10Gb/s")
    seen = map(float, above.splitlines()[-1].split()[1:])
    for name, cpus in zip(("procstat", "soak"), seen, strict=True):
        mine = of_rate.dropna(subset=f"system_cpu.{name}")
        exact = mine["system_cpu.rusage"].mean()
        assert cpus == pytest.approx(mine[f"system_cpu.{name}"].mean() - exact, abs=0.0001)
    assert sum("image/png" in output.get("data", {}) for output in shown) == 1


def plain(output: Any) -> str:
    """An output as text."""
    text: str = output.get("data", {}).get("text/plain", "")
    return text


def test_latency_grows_with_load_on_the_committed_sample() -> None:
    """What it says is of the records' own numbers."""
    shown, of_rate = outputs("latency"), defaultdict[str, list[float]](list)
    for line in (sample("open-loop") / "records.jsonl").read_text().splitlines():
        record = json.loads(line)
        of_rate[record["factors"]["rate"]].append(record["captures"]["p99"]["value"])
    told = " ".join(map(plain, shown)) + "".join(output.get("text", "") for output in shown)
    assert [rate for rate, p99s in of_rate.items() if f" {np.mean(p99s):.1f}" not in told] == []
    least, knee = (np.mean(of_rate[rate]) for rate in ("2000/s", "60000/s"))
    assert f"p99 {knee / 1e3:.0f} ms, {knee / least:.0f} times that of 2000/s" in told
    assert sum("image/png" in output.get("data", {}) for output in shown) == 2


def test_sosend_is_revisited_on_the_committed_sample() -> None:
    """What it says of today is of the raw counters; what it says of 2006 is of the message."""
    shown = outputs("sosend-revisited")
    said = "".join(output.get("text", "") for output in shown)
    demand: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for line in (sample("sosend") / "records.jsonl").read_text().splitlines():
        record = json.loads(line)
        rates = {}
        for who, counter in (("sender", ("rusage", "cpu_ns")), ("receiver", ("flow", "bytes"))):
            side = record[who]
            opened, closed = (np.sum(each) for each in side[counter[0]][counter[1]])
            rates[who] = (closed - opened) / np.diff(side["time_ns"])[0]
        of = record["factors"]
        demand[of["socket_buffer"], of["tso"]][record["block"]] = (
            rates["sender"] / rates["receiver"]
        )
    for size, then in (("32K", 1.393 / 2.179), ("64K", 1.418 / 2.296), ("128K", 1.587 / 2.484)):
        blocks = sorted(demand[size, "on"].keys() & demand[size, "off"].keys())
        d = [math.log(demand[size, "on"][block] / demand[size, "off"][block]) for block in blocks]
        today, before = 100 * math.expm1(float(np.mean(d))), 100 * (then - 1)
        assert f"{size}: today TSO changes the demand by {today:+.1f}% (" in said
        assert f"in 2006 by {before:+.1f}%" in said
    assert sum("image/png" in output.get("data", {}) for output in shown) == 1
    assert sum("sentence" in output.get("data", {}).get("text/html", "") for output in shown) == 2


def test_kernels_are_told_from_boots_on_the_committed_sample() -> None:
    """Means and intervals are those of scipy over the raw counters, and more runs help little."""
    shown = outputs("kernels")
    told = "".join(output.get("data", {}).get("text/plain", "") for output in shown)
    said = "".join(output.get("text", "") for output in shown)
    assert "emulated" in said
    logs: dict[tuple[str, ...], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for line in (sample("kernels") / "records.jsonl").read_text().splitlines():
        record = json.loads(line)
        opened, closed = (sum(each) for each in record["receiver"]["flow"]["bytes"])
        rate = (closed - opened) / np.diff(record["receiver"]["time_ns"])[0]
        logs[*record["factors"].values()][record["boot"]].append(math.log(rate))
    for context in {levels[1:] for levels in logs}:
        mine, base = (logs[kernel, *context] for kernel in ("6.12", "6.1"))
        naive = scipy.stats.ttest_ind(*(np.concatenate([*x.values()]) for x in (mine, base)))
        ends = (100 * math.expm1(end) for end in naive.confidence_interval(0.95))
        assert "{:+.1f} to {:+.1f}".format(*ends) in told
        of_boots = [[np.mean(each[boot]) for boot in sorted(each)] for each in (mine, base)]
        change = 100 * math.expm1(float(np.mean(np.subtract(*of_boots))))
        assert f" {change:.1f} " in told
    needed = [int(n) for n in re.findall(r"runs a boot: (\d+) boots", said)]
    assert len(needed) == 3
    assert needed == sorted(needed, reverse=True)
