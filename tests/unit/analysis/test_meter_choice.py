"""Which meter a bare CPU metric is by."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from scipy import stats

from netbench.read.campaigns import compare_results
from netbench.read.load import load
from netbench.read.matching import match
from netbench.read.meter_choice import contradictions
from tests.support.synthetic import Record, Synth
from tests.unit.analysis.test_cautions import unseen

TWO = ("snd>rcv",)


def test_a_meter_that_missed_what_processes_used_is_passed_over_in_all_cells(
    tmp_path: Path,
) -> None:
    """Also in cells in which it is right: what is compared is by one meter."""

    def edit(record: Record) -> Record:
        return unseen(record) if record["factors"]["send"] == "sendfile" else record

    result = load(Synth(pairs=TWO, edit=edit).write(tmp_path))
    assert {(c.metric, c.meter) for c in result.contradicted} >= {("sender_cpu", "procstat")}
    assert {"send=sendfile" in c.cell for c in result.contradicted} == {True}
    order = result.meters["sender_cpu"]
    assert order.index("rusage") < order.index("procstat")
    for name in ("sender_cpu", "sender_demand"):
        assert result.runs[name].equals(result.runs[f"{name}.rusage"])
    assert result.runs["receiver_cpu"].equals(result.runs["receiver_cpu.procstat"])


def test_a_meter_that_is_passed_over_is_in_no_cell(tmp_path: Path) -> None:
    """Not where a cell lacks the better one, either."""

    def edit(record: Record) -> Record:
        if record["factors"]["send"] == "sendfile":
            record["sender"].pop("rusage")
        return unseen(record)

    result = load(Synth(pairs=TWO, edit=edit).write(tmp_path))
    assert result.contradicted
    assert set(result.runs["send"][result.runs["sender_cpu"].notna()]) == {"readwrite"}
    assert result.meters["sender_cpu"][0] == "rusage"


def test_ticks_say_nothing_of_a_window_of_a_few(tmp_path: Path) -> None:
    def edit(record: Record) -> Record:
        for side in ("sender", "receiver"):
            opened, closed = record[side]["time_ns"]
            record[side]["time_ns"] = [opened, opened + (closed - opened) // 250]
        return record

    runs = load(Synth(pairs=TWO, edit=edit).write(tmp_path / "short")).runs
    assert not {"system_cpu.procstat", "softirq_time"} & set(runs)
    assert "softirq_time" in load(Synth(pairs=TWO).write(tmp_path / "whole")).metrics
    assert runs["system_cpu"].equals(runs["system_cpu.rusage"])


def test_a_cell_is_by_one_meter(tmp_path: Path) -> None:
    """That which most of its runs have; one in which it failed has no number of another."""

    def edit(record: Record) -> Record:
        if record["run"] % 3 == 0 and record["factors"]["send"] == "sendfile":
            del record["sender"]["procstat"]["softirq"]
        elif record["run"] % 3 == 1:
            del record["sender"]["rusage"]
        return record

    result = load(Synth(pairs=TWO, edit=edit).write(tmp_path))
    runs = result.runs
    assert not result.contradicted
    for name in ("sender_cpu", "sender_demand"):
        assert runs[name].equals(runs[f"{name}.procstat"])
        assert runs[name].isna().sum() == runs.eval("run % 3 == 0 and send == 'sendfile'").sum() > 0
    assert runs["receiver_cpu"].notna().all()


def test_cells_and_results_are_compared_by_one_meter(tmp_path: Path) -> None:
    """Though a better one ran in some, as of windows that are long enough for ticks."""

    def edit(record: Record) -> Record:
        for side in ("sender", "receiver") if "sendfile" in record["cell"] else ():
            record[side].pop("procstat", None)
        return record

    less, whole = (load(Synth(edit=each).write(tmp_path / str(each))) for each in (edit, None))
    assert less.runs["system_cpu"].equals(less.runs["system_cpu.rusage"])
    assert whole.runs["system_cpu"].equals(whole.runs["system_cpu.procstat"])
    assert [each.meters["system_cpu"][0] for each in (less, whole)] == ["rusage", "procstat"]
    for metric in ("system_cpu", "system_cpu.rusage"):
        whys = {c.why for c in compare_results(less, whole, match(less, whole).matches, metric)}
        assert whys == ({"A's is by rusage, B's by procstat; name the meter, as system_cpu.rusage"}
                        if metric == "system_cpu" else {""})  # fmt: skip


@pytest.mark.parametrize("n", [2, 3, 12])
def test_short_is_what_a_one_sided_t_test_of_all_places_finds(n: int) -> None:
    def frame(shift: float) -> pd.DataFrame:
        used = pd.Series([1 + 0.01 * (i % 3) for i in range(n)])
        noise = pd.Series([0.02 * (i % 2) - 0.01 * (i % 5) for i in range(n)])
        runs = {"system_cpu.procstat": used - shift + noise, "system_cpu.rusage": used}
        return pd.DataFrame({"cell": ["c"] * n, "pair": ["p"] * n} | runs)

    for shift in (-0.05, 0.0, 0.005, 0.01, 0.02, 0.05):
        runs = frame(shift)
        test = stats.ttest_rel(
            runs["system_cpu.rusage"], runs["system_cpu.procstat"], alternative="greater"
        )
        assert bool(contradictions(runs)) == (n > 2 and test.pvalue < 0.05)
