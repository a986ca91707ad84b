"""What notebooks use: frames with units, plots as Axes, comparisons, and the notebooks from start to
end.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pandas as pd
import pytest
import scipy.stats
from matplotlib import pyplot
from matplotlib.axes import Axes
from nbclient import NotebookClient

import netbench
from netbench.errors import ReportError
from netbench.report import csv
from tests.support.paths import ROOT
from tests.support.synthetic import Record, Synth, failed

NOTEBOOKS = ROOT / "notebooks"


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> netbench.Results:
    def edit(record: Record) -> Record:
        return failed(record, "failed", "reset by peer") if record["run"] == 7 else record

    return netbench.load(Synth(runs=8, edit=edit).write(tmp_path_factory.mktemp("r") / "r"))


def test_runs_hold_all_runs_with_units(result: netbench.Results) -> None:
    frame = result.runs
    assert list(frame.columns[:13]) == [
        "run",
        "cell",
        "pair",
        "block",
        "boot",
        "send",
        "pin",
        "status",
        "reason",
        "engaged",
        "started",
        "excluded",
        "noise",
    ]
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
    pd.testing.assert_frame_equal(
        read, result.cells.astype({"send": "str", "pin": "str"}), check_dtype=False
    )


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
    assert means.get_yticklabels()[0].get_text() == "readwrite · none"
    assert len(means.lines[0].get_xdata()) == 31  # every ok run is a dot
    assert result.plot.means("throughput", ax=means) is means
    with pytest.raises(ReportError, match="no metric 'speed'"):
        result.plot.means("speed")
    pyplot.close("all")


def test_dir_shows_the_api() -> None:
    shown = dir(netbench)
    assert {"Results", "load", "transfer"} <= set(shown)
    assert all(hasattr(netbench, name) for name in shown)
    assert "os" not in shown


def test_words_and_previews(result: netbench.Results) -> None:
    assert "31 runs" not in repr(result)
    assert "32 runs of 4 cells" in repr(result)
    assert result.text(100).startswith("synthetic: summary")
    assert "<table" in result._repr_html_()
    assert result.html().startswith("<!doctype html>")


def test_importing_netbench_is_cheap() -> None:
    code = "import sys, netbench; from netbench import errors; sys.exit(bool({'pandas', 'numpy', 'matplotlib', 'fabric'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    with pytest.raises(AttributeError):
        _ = netbench.nothing


def outputs(name: str) -> list[Any]:
    """What the cells of a notebook show when they are run; as committed they show nothing."""
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells)
    NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": str(NOTEBOOKS)}}
    ).execute()
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def test_first_look_runs(result: netbench.Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETBENCH_SAMPLE", str(result.path.parent))
    shown = outputs("first-look")
    assert any("moves" in output.get("text", "") for output in shown)
    assert sum("text/html" in output.get("data", {}) for output in shown) >= 4
    assert sum("image/png" in output.get("data", {}) for output in shown) == 2


def test_meters_are_told_apart_on_the_committed_sample() -> None:
    """The interval and the numbers of runs are those of scipy over the committed records."""
    shown = outputs("cpu-meters")
    said = "".join(output.get("text", "") for output in shown)
    (folder,) = [
        file.parent
        for file in sorted((ROOT / "results/sample").glob("**/plan.json"))
        if json.loads(file.read_text())["name"] == "sample"
    ]
    runs = netbench.load(folder).runs
    logs = np.log(runs["system_cpu.procstat"] / runs["system_cpu.rusage"])
    half = scipy.stats.t.ppf(0.975, len(logs) - 1) * scipy.stats.sem(logs)
    low, high = (100 * np.expm1(logs.mean() + sign * half) for sign in (-1, 1))
    assert f"95% interval {low:+.1f} to {high:+.1f}%" in said
    needed = [int(n) for n in re.findall(r"so (\d+) runs for ±1%", said)]
    assert len(needed) == 2
    assert needed[0] > 2 * needed[1]
    assert sum("image/png" in output.get("data", {}) for output in shown) == 1
