"""Reading a result folder: what a killed controller leaves, what is refused, the columns."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from netbench.base.errors import ReportError, StoreError
from netbench.base.json_lines import to_line
from netbench.read.derive import metrics_of
from netbench.read.load import load
from netbench.result.record import parse_record
from netbench.result.store import Store
from tests.support.synthetic import Record, Synth, failed
from tests.unit.analysis.test_ratios import side as ratio_side


def test_frame_holds_every_run_in_order(tmp_path: Path) -> None:
    synth = Synth(runs=3)
    found, records = load(synth.write(tmp_path / "r")), list(synth.records())
    for name in ("run", "cell", "block"):
        assert found.runs[name].tolist() == [r[name] for r in records]
    assert found.runs["pin"].tolist() == [r["factors"]["pin"] for r in records]
    parsed = [parse_record(to_line(r), "test") for r in records]
    expected = [metrics_of(r, {"here": 100}, shared=True)["system_demand"] for r in parsed]
    assert found.runs["system_demand"].tolist() == expected
    assert found.shared == {"here>here": True}
    assert found.about == "Numbers that were made up, to judge the report by."


@pytest.mark.parametrize("cut", [700, 1])
def test_a_truncated_last_line_is_left_out_as_resume_will(tmp_path: Path, cut: int) -> None:
    """Even one without its newline alone: resume cuts it off and runs it again."""
    folder = Synth(runs=3).write(tmp_path / "r")
    file = folder / "records.jsonl"
    file.write_bytes(file.read_bytes()[:-cut])
    found, store = load(folder), Store.open(folder)
    store.lock()
    store.close()
    assert len(found.runs) == len(list(store.records())) == 11
    assert found.truncated


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"schema": 2, "run": ', "not JSON"),
        ("", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"schema": 1}', "expected schema 2"),
        ('{"schema": 2, "run": 5}', "not a record"),
        ("SECOND", "run 2 is recorded twice"),
        ("UNPLANNED", "'nowhere' is not in plan.json"),
        ("NUMBERS", "not a record"),
    ],
)
def test_any_other_bad_line_is_an_error_with_its_number(
    tmp_path: Path, line: str, said: str
) -> None:
    folder = Synth(runs=3).write(tmp_path / "r")
    file = folder / "records.jsonl"
    lines = file.read_text().splitlines()
    made: Record = json.loads(lines[1])
    receiver = {"host": "here", "time_ns": [1, 2], "flow": {"bytes": [[1], ["x"]]}}
    swaps: dict[str, Record] = {
        "SECOND": made,
        "UNPLANNED": made | {"run": 99, "cell": "nowhere"},
        "NUMBERS": made | {"run": 99, "receiver": receiver},
    }
    lines[5] = json.dumps(swaps[line]) if line in swaps else line
    file.write_text("\n".join(lines) + "\n")
    with pytest.raises(StoreError, match=r"records\.jsonl:6: ") as error:
        load(folder)
    assert said in str(error.value)


def test_a_plan_whose_baseline_no_cell_has(tmp_path: Path) -> None:
    folder = Synth(runs=1).write(tmp_path / "r")
    plan = json.loads((folder / "plan.json").read_text())
    plan["compare"] = {"factor": "send", "baseline": "nosuch"}
    (folder / "plan.json").write_text(json.dumps(plan))
    with pytest.raises(StoreError, match=r"plan\.json: .*no cell has its baseline 'nosuch'"):
        load(folder)


@pytest.mark.parametrize("gone", ["plan.json", "records.jsonl"])
def test_a_folder_that_is_no_result(tmp_path: Path, gone: str) -> None:
    folder = Synth(runs=1).write(tmp_path / "r")
    (folder / gone).unlink()
    with pytest.raises(ReportError, match="is not a result folder"):
        load(folder)


def test_runs_that_did_not_get_so_far_have_no_number(tmp_path: Path) -> None:
    def edit(record: Record) -> Record:
        is_refused = record["factors"]["send"] == "sendfile"
        return failed(record, "refused", "sg is fixed") if is_refused else record

    found = load(Synth(runs=3, edit=edit).write(tmp_path / "r"))
    refused = found.runs[found.runs["status"] == "refused"]
    assert refused["throughput"].isna().all()
    assert (len(found.ok), refused["reason"].tolist()) == (6, ["sg is fixed"] * 6)


def broken_proof(record: Record) -> Record:
    """A completion after the window counts, too."""
    proof = record["proof"]["sender"]
    if record["factors"]["send"] == "sendfile" and record["block"] == 1:
        proof["sendfile_calls"] = [[12], [12], [12]]
    if record["factors"]["send"] == "zerocopy" and record["block"] == 0:
        proof["copied"] = [[0], [0], [3]]
    return record


def test_mechanisms_that_did_not_engage_are_marked(tmp_path: Path) -> None:
    factors = {"send": ("sendfile", "zerocopy", "readwrite")}
    found = load(Synth(factors, runs=4, edit=broken_proof).write(tmp_path / "r"))
    marked = found.runs[found.runs["engaged"] != ""]
    assert set(zip(marked["send"], marked["block"], marked["engaged"], strict=True)) == {
        ("sendfile", 1, "sender: sendfile_calls stayed 0"),
        ("zerocopy", 0, "sender: copied counted 3"),
    }
    assert found.proofs["send=sendfile", "here>here", "sender", "sendfile_calls"].broken == 1


def test_readbacks_are_counted(tmp_path: Path) -> None:
    found = load(Synth(factors={"socket_buffer": ("32K", "64K")}, runs=4).write(tmp_path / "r"))
    buffers = [
        (r.side, r.asked, r.read, r.runs) for r in found.readbacks if r.name == "send_buffer"
    ]
    assert buffers == [("sender", "32768", "65536", 4), ("sender", "65536", "131072", 4)]


def uneven(record: Record) -> Record:
    """Records of many shapes, with counters that were reset, missing or beyond an int64."""
    run, sender, receiver = record["run"], record["sender"], record["receiver"]
    for who, side in (("sender", sender), ("receiver", receiver)):
        meters = ratio_side(side["host"], 1, 1 if who == "sender" else 2)
        side |= {name: meters[name] for name in ("softirq", "perf", "energy")}
    if run % 3 == 0:
        receiver["flow"]["bytes"] = [[50], [2]]
    if run % 4 == 0:
        sender["rusage"]["cpu_ns"] = [9, 3]
    if run % 5 == 0:
        sender["perf"]["cycles_running_ns"] = [7, 7]
    if run % 6 == 0:
        sender["softirq"]["link_rx_packets"] = [5, 4]
    if run % 7 == 0:
        del receiver["perf"]
    if run % 8 == 0:
        sender["time_ns"] = [5, 5]
    if run % 9 == 0:
        sender["energy"]["counted_uj"] = [2**64 - 7, 2**64 - 1]
    if run % 10 == 0:
        receiver["tool"] = {"bytes": 10**10 + run, "seconds": run / 3 if run % 20 else 0.0}
    if run % 11 == 0:
        receiver["tool"] = {"rate": f"{run} Mb/s"}
    return record


def test_metrics_of_many_runs_at_once_are_those_of_each(tmp_path: Path) -> None:
    found = load(Synth(pairs=("a>b",), runs=40, edit=uneven).write(tmp_path / "r"))
    assert not found.contradicted
    lines = (tmp_path / "r" / "records.jsonl").read_bytes().splitlines()
    expected = [metrics_of(parse_record(line, "x"), {"a": 100, "b": 100}, False) for line in lines]
    assert set(found.metrics) == {name for each in expected for name in each}
    for name in found.metrics:
        numbers = found.runs[name].tolist()
        assert [None if math.isnan(x) else x for x in numbers] == [
            each.get(name) for each in expected
        ]


@pytest.mark.parametrize(
    ("ticks", "one_kernel"),
    [({}, ""), ({"c": 250}, ""), ({}, "ab")],
    ids=["alike", "a clock of its own", "one kernel"],
)
def test_metrics_of_many_pairs_at_once_are_those_of_each(
    tmp_path: Path, ticks: dict[str, int], one_kernel: str
) -> None:
    folder = Synth(pairs=("a>b", "b>c", "c>a"), runs=4).write(tmp_path / "r")
    facts: dict[str, Any] = json.loads((folder / "facts.json").read_text())
    for host, (boot,) in facts["hosts"].items():
        boot["clock_ticks"] = ticks.get(host, 100)
        boot["boot_id"] = "one" if host in one_kernel else host
    (folder / "facts.json").write_text(json.dumps(facts))
    found = load(folder)
    lines = (folder / "records.jsonl").read_bytes().splitlines()
    of_hosts = dict.fromkeys("abc", 100) | ticks
    assert found.shared == {"a>b": one_kernel == "ab", "b>c": False, "c>a": False}
    for i, record in enumerate(parse_record(line, "x") for line in lines):
        expected = metrics_of(record, of_hosts, set(record.pair.split(">")) <= set(one_kernel))
        said = found.runs.iloc[i]
        assert said["pair"] == record.pair
        for name in found.metrics:
            if "." in name:  # of a meter: which one is the best is said of all runs
                assert said[name] == expected[name] if name in expected else math.isnan(said[name])
