"""Cautions: each fault is found, with place and remedy; a sound campaign has none."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

from netbench.read.cautions.rule import Caution, rules
from netbench.report.source import Source
from netbench.stats.series import autocorrelation, drift, instabilities, outliers
from tests.support.synthetic import Record, Synth, failed, scaled

TWO = ("snd>rcv",)


def found(folder: Path) -> dict[str, Caution]:
    return {c.kind: c for c in Source.of(folder).cautions}


def change(record: Record, **paths: Any) -> Record:
    """The record with values put at `side__group__name` paths."""
    for path, value in paths.items():
        *above, last = path.split("__")
        inner = record
        for key in above:
            inner = inner[key]
        inner[last] = value
    return record


def read_again(record: Record) -> Record:
    """A file read through NFS, cold at first, until the time is up; the server counts none."""
    record["sender"] |= {"cache": "cold", "resident": 0, "source_size": 9}
    del record["sender"]["flow"]["bytes"]
    return record


def slow(record: Record, share: float = 0.5) -> Record:
    """One run at half speed."""
    return scaled(record, share) if record["run"] == 6 else record


def unseen(record: Record) -> Record:
    """Ticks found the CPU idle, where it was busy in the kernel."""
    counted = record["sender"]["procstat"]
    missed = counted["system"][1] - counted["system"][0]
    counted["idle"][1] += missed
    counted["system"][1] -= missed
    return record


def one_of(runs: Sequence[int], edit: Callable[[Record], Record]) -> Synth:
    """A campaign on two hosts of which these runs are edited."""
    return Synth(pairs=TWO, edit=lambda r: edit(r) if r["run"] in runs else r)


def changed(**paths: Any) -> Synth:
    """One of whose records all have these values."""
    return Synth(pairs=TWO, edit=lambda r: change(r, **paths))


def congestion(asked: str | None, read: str) -> dict[str, str | None]:
    return {"asked": asked, "read": read}


def bbr(record: Record) -> Record:
    if record["factors"]["send"] == "sendfile":
        record["settings"]["sender"]["congestion"] = congestion(None, "bbr")
    return record


def bare(record: Record) -> Record:
    """Without a meter of CPU time."""
    for side in ("sender", "receiver"):
        record[side] = {name: record[side][name] for name in ("host", "time_ns", "flow")}
    return record


def asking(record: Record) -> Record:
    """Of requests, 1,000 a second."""
    values = {"transactions": (1000.0, "1/s"), "latency": (900.0, "µs")}
    told = {name: {"text": "", "value": v, "unit": unit} for name, (v, unit) in values.items()}
    return record | {"captures": told}


def left_alone(record: Record) -> Record:
    """As somebody else changes it in the middle."""
    note = {"asked": "as_is", "read": "19"[record["run"] > 9]}
    return change(record, settings__sender__mtu=note, settings__receiver__mtu=note)


BUFFER = {"asked": 4194304, "read": 425984}
RENO, DEFAULT = congestion("reno", "cubic"), congestion("cubic or default", "bbr")
CUT = {"cut": {"sender": 5.1, "receiver": 9.0}}
PLACES: dict[str, str | tuple[str, ...]] = {
    "drift": "snd>rcv",
    "congestion": "",
    "no_cpu": "",
    "shared": "here>here",
    "burst": ("bytes=1M", "requests=10", "connections=4"),
}
MANY = {"requests": ("9000",)}
FAULTS = [
    ("outlier", "run 6: ", Synth(pairs=TWO, edit=slow)),
    ("drift", "Kendall", Synth(pairs=TWO, runs=20, drift=0.1)),
    ("congestion", "bbr in 2 cells; cubic in 2 cells", Synth(pairs=TWO, edit=bbr)),
    ("retransmits", "120 segments in 40", changed(sender__tcp__retransmits=[[1], [4]])),
    ("buffers", "425984", changed(settings__sender__send_buffer=BUFFER)),
    ("setting", "cubic", changed(settings__sender__congestion=RENO)),
    ("setting", "read bbr", changed(settings__sender__congestion=DEFAULT)),
    ("contradicted", "by rusage: ", Synth(pairs=TWO, edit=unseen)),
    ("mechanism", "40 of 40", changed(proof__receiver__read_calls=[[5], [5], [5]])),
    ("max", "asked ±2.5%", Synth(pairs=TWO, spread=0.2)),
    ("interrupted", "asked", Synth(pairs=TWO, runs=3, repeat={"min": 5, "max": 9})),
    ("few", "n is", Synth(pairs=TWO, runs=3)),
    ("refused", "of 40", one_of([2], lambda r: failed(r, "refused", "tso is fixed"))),
    ("failed", "of 40", one_of([2], lambda r: failed(r, "failed", "reset by peer"))),
    ("cache", "in 40 runs", changed(sender__resident=5, sender__source_size=9)),
    ("cache", "in 40 runs", Synth(pairs=TWO, edit=read_again)),
    ("unverified", "nothing keeps it", changed(unverified="nothing keeps it")),
    ("cut", "for 9 s at most", one_of([3, 4], lambda r: r | CUT)),
    ("rejected_connections", "80 connections", changed(receiver__rejected_connections=2)),
    ("missing", "1 of 40", one_of([3], lambda r: change(r, receiver__tool={"rate": "?"}))),
    ("no_demand", "of 40", one_of([3], lambda r: change(r, receiver__tool={"rate": "8Gb/s"}))),
    ("burst", "of 20", Synth({"bytes": ("1M", "1G")}, pairs=TWO)),
    ("burst", "of 20", Synth({"requests": ("10", "9000")}, pairs=TWO, edit=asking)),
    ("burst", "of 20", Synth({"requests": ("10", "9" * 401)}, pairs=TWO, edit=asking)),
    ("burst", "of 20", Synth({"connections": ("1", "4")} | MANY, pairs=TWO, edit=asking)),
    ("setting", "read 1 and 9", Synth(pairs=TWO, edit=left_alone)),
    ("shared", "boot id", Synth()),
    ("no_cpu", "no CPU metric", Synth(pairs=TWO, edit=bare)),
    ("dependence", "rises over time", Synth(pairs=TWO, runs=20, drift=0.01, spread=0.001)),
]


@pytest.mark.parametrize(("kind", "evidence", "synth"), FAULTS)
def test_each_fault_is_found(tmp_path: Path, kind: str, evidence: str, synth: Synth) -> None:
    caution = found(synth.write(tmp_path / "r"))[kind]
    where = PLACES.get(kind, "send=")
    assert any(place.startswith(where) for place in caution.where) or not where
    assert evidence in caution.evidence
    assert caution.what.endswith(".")
    assert caution.remedy


def test_what_was_left_alone_is_one_caution(tmp_path: Path) -> None:
    """Of all cells and both sides."""
    cautions = Source.of(Synth(pairs=TWO, edit=left_alone).write(tmp_path / "r")).cautions
    (told,) = (c for c in cautions if c.kind == "setting")
    assert told.what.startswith("The sender and receiver's mtu was left as it is")
    assert len(told.where) == 4, "each cell once"


def test_a_tool_that_times_its_few_bytes_itself_is_no_burst(tmp_path: Path) -> None:
    made = Synth({"bytes": ("1M", "2M"), "tool": ("none", "iperf3")}, pairs=TWO)
    where = found(made.write(tmp_path / "r"))["burst"].where
    assert where
    assert all("tool=none" in place for place in where)


def test_the_width_is_that_of_what_closes_a_cell(tmp_path: Path) -> None:
    """The ratio, where there is a baseline: drift is in the means, and not in it."""
    asked = {"factor": "send", "baseline": "readwrite"}
    made = Synth({"send": ("readwrite", "sendfile")}, compare=asked, spread=0.04, drift=0.3)
    source = Source.of(made.write(tmp_path / "r"))
    ((c,),) = (source.comparisons[name] for name in source.result.repeat.metrics)
    width = f"widest ±{math.sqrt(c.high / c.low) - 1:.1%} (throughput), asked ±2.5% of the ratio"
    assert width in next(each.evidence for each in source.cautions if each.kind == "max")


def test_hosts_that_differ_are_named(tmp_path: Path) -> None:
    folder = Synth(pairs=TWO, boots=2).write(tmp_path / "r")
    facts = json.loads((folder / "facts.json").read_text())
    facts["hosts"]["snd"][0]["facts"]["kernel"] = "6.18.0"
    (folder / "facts.json").write_text(json.dumps(facts))
    caution = found(folder)["facts"]
    assert ("are excluded" in caution.what, "snd" in caution.where) == (True, True)
    assert "snd: kernel was 6.18.0" in caution.evidence


def worded(record: Record) -> Record:
    """`yes` is `on` and 64K is 65536; a setting that is not as asked is refused before a run."""
    settings = {"tso": {"asked": "yes", "read": "on"}}
    record["settings"]["sender"] |= settings | {"gso_max_size": {"asked": "64K", "read": "65536"}}
    return record


@pytest.mark.parametrize(
    "synth",
    [
        Synth(pairs=TWO),
        Synth({"socket_buffer": ("32K", "64K")}, pairs=TWO),  # which the kernel doubles
        Synth(pairs=TWO, edit=worded),
    ],
)
def test_a_sound_campaign_on_two_hosts_has_none(tmp_path: Path, synth: Synth) -> None:
    assert found(synth.write(tmp_path / "r")) == {}


def test_cut_line_is_said(tmp_path: Path) -> None:
    folder = Synth(pairs=TWO).write(tmp_path / "r")
    (folder / "records.jsonl").write_bytes((folder / "records.jsonl").read_bytes()[:-9])
    assert "truncated" in found(folder)


def test_swept_kernels_are_no_mixed_facts(tmp_path: Path) -> None:
    folder = Synth({"kernel": ("a", "b")}, pairs=TWO, boots=2).write(tmp_path / "r")
    assert not {"facts", "kernels"} & found(folder).keys()


def test_a_run_within_a_percent_of_its_cell_is_no_outlier(tmp_path: Path) -> None:
    for share in (0.98, 0.995):
        made = Synth(pairs=TWO, spread=1e-4, edit=partial(slow, share=share))
        assert ("outlier" in found(made.write(tmp_path / str(share)))) == (share < 0.99)


def test_each_rule_has_its_own_place_in_a_report_and_says_what_its_reference_needs() -> None:
    severities = [rule.severity for rule in rules()]
    assert severities == sorted(set(severities), reverse=True)
    for rule in rules():
        assert all((rule.about.endswith("."), rule.remedy)), rule.name


SERIES: dict[
    str, tuple[Callable[[np.ndarray], bool], Callable[[np.random.Generator], np.ndarray]]
] = {
    "drift": (
        lambda x: drift(x)[1] < 0.002,
        lambda rng: np.linspace(0, 4, 20) + rng.normal(0, 1, 20),
    ),
    "autocorrelation": (
        lambda x: autocorrelation(x)[1] < 0.002,
        lambda rng: np.cumsum(rng.normal(0, 1, 30)),
    ),
    "outliers": (lambda x: bool(outliers(x)), lambda rng: np.append(rng.normal(0, 1, 15), 30.0)),
}
"""By test whether it suspects a series, and a series of which it should."""


@pytest.mark.parametrize("name", SERIES)
def test_false_alarms_are_rare_and_what_is_there_is_seen(name: str) -> None:
    """At most one sound cell in a hundred is suspected by each test."""
    is_suspected, faulty = SERIES[name]
    for n in (8, 10, 30):
        draws = np.random.default_rng(n).normal(100, 1, (1500, n))
        assert np.mean([is_suspected(x) for x in draws]) <= 0.01
    rng = np.random.default_rng(4)
    assert np.mean([is_suspected(faulty(rng)) for _ in range(100)]) >= 0.8


def test_too_few_values_tell_nothing() -> None:
    assert instabilities(np.array([1.0, 2.0, 3.0])) == []
    assert instabilities(np.ones(20)) == []


@pytest.mark.parametrize("n", [8, 64, 65, 129, 1000])
@pytest.mark.parametrize("levels", [3, 10**6])
def test_drift_is_kendalls_tau(n: int, levels: int) -> None:
    """Of any number of values, with ties and without: those are pairs, too, of tau-a."""
    rng = np.random.default_rng([n, levels])
    values = rng.integers(0, levels, n) + rng.integers(0, 2) * np.arange(n) * levels / n
    ties = np.unique(values, return_counts=True)[1]
    pairs, tied = n * (n - 1) / 2, (ties * (ties - 1) / 2).sum()
    tau = scipy.stats.kendalltau(np.arange(n), values).statistic
    assert drift(values)[0] == pytest.approx(tau * math.sqrt(1 - tied / pairs))
