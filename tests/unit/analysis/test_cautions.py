"""Cautions: each fault is found, named with its place and remedy; a sound campaign has none; tests
for series are calibrated.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

from netbench.read import cautions
from netbench.read.cautions.all_rules import kinds_of_rules
from netbench.read.cautions.rule import Caution, CautionRule
from netbench.read.cells import cells_of
from netbench.read.load import load
from netbench.report.source import Source
from netbench.stats.series import autocorrelation, drift, instabilities, outliers
from tests.support.synthetic import SECOND, Record, Synth, failed

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
    """A file that the receiver reads through NFS, cold at first, until the time is up; its server
    counts no bytes.
    """
    record["sender"] |= {"cache": "cold", "resident": 0, "source_size": 9}
    del record["sender"]["flow"]["bytes"]
    return record


def slow(record: Record) -> Record:
    """One run at half speed."""
    if record["run"] == 6:
        counted = record["receiver"]["flow"]["bytes"]
        counted[1][0] = counted[0][0] + (counted[1][0] - counted[0][0]) // 2
    return record


def wandering(record: Record) -> Record:
    """What an idle CPU loses goes from 1% to 2.8%, a block at a time."""
    block = record["block"]
    record["sender"]["soak"] = {
        "idle_time_ns": [block * SECOND, (block + 1) * SECOND],
        "idle_taken_ns": [0, int(SECOND * (0.01 + 0.002 * block))],
        "idle_switched_ns": [0, 0],
        "idle_stalled_ns": [0, 0],
        "idle_stolen_ns": [0, 0],
        "idle_quanta": [0, 2_000_000],
        "idle_worked_ns": [0, SECOND // 2],
        "idle_cpus": [1, 1],
    }
    return record


def bbr(record: Record) -> Record:
    if record["factors"]["send"] == "sendfile":
        record["settings"]["sender"]["congestion"] = {"asked": None, "read": "bbr"}
    return record


def clamped(record: Record) -> Record:
    return change(record, settings__sender__send_buffer={"asked": 4194304, "read": 425984})


def unasked(record: Record) -> Record:
    return change(record, settings__moved={"sender.tso": ["on", "off"]})


def cut(record: Record) -> Record:
    return record | ({"cut": {"sender": 5.1, "receiver": 9.0}} if record["run"] in (3, 4) else {})


def unseen(record: Record) -> Record:
    """Ticks found the CPU idle, where it was busy in the kernel."""
    counted = record["sender"]["procstat"]
    missed = counted["system"][1] - counted["system"][0]
    counted["idle"][1] += missed
    counted["system"][1] -= missed
    return record


def no_call(record: Record) -> Record:
    return change(record, proof__receiver__read_calls=[[5], [5], [5]])


@pytest.mark.parametrize(
    ("kind", "synth", "where", "evidence"),
    [
        ("outlier", Synth(pairs=TWO, edit=slow), "send=", "run 6: "),
        ("drift", Synth(pairs=TWO, runs=20, drift=0.1), "snd>rcv", "Kendall"),
        ("congestion", Synth(pairs=TWO, edit=bbr), "", "bbr in 2 cells; cubic in 2 cells"),
        (
            "retransmits",
            Synth(pairs=TWO, edit=lambda r: change(r, sender__tcp__retransmits=[[1], [4]])),
            "send=",
            "120 segments in 40",
        ),
        ("buffers", Synth(pairs=TWO, edit=clamped), "send=", "425984"),
        (
            "setting",
            Synth(
                pairs=TWO,
                edit=lambda r: change(
                    r, settings__sender__congestion={"asked": "reno", "read": "cubic"}
                ),
            ),
            "send=",
            "cubic",
        ),
        (
            "setting",
            Synth(
                pairs=TWO,
                edit=lambda r: change(
                    r,
                    settings__sender__congestion={"asked": "cubic or default", "read": "bbr"},
                ),
            ),
            "send=",
            "read bbr, and cubic at the other end",
        ),
        ("resolution", Synth(pairs=TWO, duration=0.03), "send=", "standard error of one run"),
        ("contradicted", Synth(pairs=TWO, edit=unseen), "send=", "by rusage: "),
        ("moved", Synth(pairs=TWO, edit=unasked), "send=", "4 cells"),
        ("mechanism", Synth(pairs=TWO, edit=no_call), "send=", "40 of 40"),
        ("max", Synth(pairs=TWO, spread=0.2), "send=", "asked ±2.5%"),
        ("interrupted", Synth(pairs=TWO, runs=3, repeat={"min": 5, "max": 9}), "send=", "asked"),
        ("few", Synth(pairs=TWO, runs=3), "send=", "n is"),
        (
            "refused",
            Synth(
                pairs=TWO,
                edit=lambda r: failed(r, "refused", "tso is fixed") if r["run"] == 2 else r,
            ),
            "send=",
            "of 40",
        ),
        (
            "failed",
            Synth(
                pairs=TWO,
                edit=lambda r: failed(r, "failed", "reset by peer") if r["run"] == 2 else r,
            ),
            "send=",
            "of 40",
        ),
        (
            "cache",
            Synth(pairs=TWO, edit=lambda r: change(r, sender__resident=5, sender__source_size=9)),
            "send=",
            "in 40 runs",
        ),
        ("cache", Synth(pairs=TWO, edit=read_again), "send=", "in 40 runs"),
        (
            "unverified",
            Synth(pairs=TWO, edit=lambda r: r | {"unverified": "nothing keeps it"}),
            "send=",
            "nothing keeps it",
        ),
        ("cut", Synth(pairs=TWO, edit=cut), "send=", "for 9 s at most"),
        (
            "rejected_connections",
            Synth(pairs=TWO, edit=lambda r: change(r, receiver__rejected_connections=2)),
            "send=",
            "80 connections",
        ),
        (
            "missing",
            Synth(
                pairs=TWO,
                edit=lambda r: change(r, receiver__tool={"rate": "?"}) if r["run"] == 3 else r,
            ),
            "send=",
            "1 of 40",
        ),
        ("shared", Synth(), "here>here", "boot id"),
        ("idle", Synth(pairs=TWO, edit=wandering), "snd", "10 idle windows"),
        ("facts", Synth(pairs=TWO, boots=2), "snd", "snd: kernel was 6.18.0"),
        (
            "emulated",
            Synth(pairs=TWO, facts={"snd": {"emulated": "QEMU TCG"}}),
            "snd",
            "the fact `emulated`",
        ),
        (
            "virtual_machine",
            Synth(pairs=TWO, facts={"snd": {"lab_guest": "KVM"}}),
            "snd",
            "the fact `lab_guest`",
        ),
        (
            "dependence",
            Synth(pairs=TWO, runs=20, drift=0.01, spread=0.001),
            "send=",
            "rises over time (Kendall's tau +0.",
        ),
    ],
)
def test_each_fault_is_found(
    tmp_path: Path, kind: str, synth: Synth, where: str, evidence: str
) -> None:
    folder = synth.write(tmp_path / "r")
    if kind == "facts":
        facts = json.loads((folder / "facts.json").read_text())
        facts["hosts"]["snd"][0]["facts"]["kernel"] = "6.18.0"
        (folder / "facts.json").write_text(json.dumps(facts))
    caution = found(folder)[kind]
    assert any(place.startswith(where) for place in caution.where) or not where
    assert evidence in caution.evidence
    assert caution.what.endswith(".")
    assert caution.remedy


def test_engines_that_differ_are_named(tmp_path: Path) -> None:
    folder = Synth(pairs=TWO).write(tmp_path / "r")
    facts = json.loads((folder / "facts.json").read_text())
    facts["hosts"]["snd"][-1]["engine"] = "0.0.9"
    (folder / "facts.json").write_text(json.dumps(facts))
    caution = found(folder)["facts"]
    assert caution.what == "The hosts ran different engines."
    assert "snd 0.0.9 " in caution.evidence
    assert set(caution.where) == {"snd", "rcv"}


def test_a_sound_campaign_on_two_hosts_has_none(tmp_path: Path) -> None:
    assert found(Synth(pairs=TWO).write(tmp_path / "r")) == {}


def test_what_moved_in_the_same_cells_is_one_caution(tmp_path: Path) -> None:
    def several(record: Record) -> Record:
        moved = {"snd.tx-tcp-segmentation": ["on", "off"], "rcv.mtu": ["1500", "1400"]}
        other = (
            {"snd.rx-gro-list": ["off", "on"]} if record["factors"]["send"] == "sendfile" else {}
        )
        return change(record, settings__moved=moved | other)

    source = Source.of(Synth(pairs=TWO, edit=several).write(tmp_path / "r"))
    said = {c.what: len(c.where) for c in source.cautions if c.kind == "moved"}
    assert said == {
        "Something else moved with a setting: rcv.mtu from 1500 to 1400, snd.tx-tcp-segmentation from on to off.": 4,
        "Something else moved with a setting: snd.rx-gro-list from off to on.": 2,
    }


def test_one_of_something_is_said_as_one(tmp_path: Path) -> None:
    one = found(Synth({"send": ("write",)}, pairs=TWO, runs=1).write(tmp_path / "r"))
    assert one["few"].what == "1 cell has one run, which has no interval."
    two = found(Synth({"send": ("write", "sendfile")}, pairs=TWO, runs=1).write(tmp_path / "s"))
    assert two["few"].what == "2 cells have one run, which has no interval."


def test_a_run_without_a_window_is_said(tmp_path: Path) -> None:
    def closed(record: Record) -> Record:
        if record["run"] == 6:
            record["sender"]["time_ns"][1] = record["sender"]["time_ns"][0]
        return record

    caution = found(Synth(pairs=TWO, edit=closed).write(tmp_path / "r"))["resolution"]
    assert "0 ms are 0 ticks" in caution.evidence


def test_cut_line_is_said(tmp_path: Path) -> None:
    folder = Synth(pairs=TWO).write(tmp_path / "r")
    (folder / "records.jsonl").write_bytes((folder / "records.jsonl").read_bytes()[:-9])
    assert "truncated" in found(folder)


def test_doubled_buffers_are_as_asked(tmp_path: Path) -> None:
    assert "buffers" not in found(
        Synth({"socket_buffer": ("32K", "64K")}, pairs=TWO).write(tmp_path / "r")
    )


def test_a_level_in_other_words_is_as_asked(tmp_path: Path) -> None:
    """`yes` is `on` and 64K is 65536; a setting that is not as asked is refused before anything is
    run.
    """

    def worded(record: Record) -> Record:
        settings = {
            "tso": {"asked": "yes", "read": "on"},
            "gso_max_size": {"asked": "64K", "read": "65536"},
        }
        record["settings"]["sender"] |= settings
        return record

    assert found(Synth(pairs=TWO, edit=worded).write(tmp_path / "r")) == {}


def test_swept_kernels_are_no_mixed_facts(tmp_path: Path) -> None:
    folder = Synth({"kernel": ("a", "b")}, pairs=TWO, boots=2).write(tmp_path / "r")
    assert not {"facts", "kernels"} & found(folder).keys()


def test_outliers_are_named_and_counted(tmp_path: Path) -> None:
    with_it = load(Synth(pairs=TWO, edit=slow).write(tmp_path / "r"))
    assert sum(c.n for c in cells_of(with_it)) == 40


@pytest.mark.parametrize("rule", kinds_of_rules(), ids=lambda rule: rule.name)
def test_every_rule_says_what_its_reference_needs(rule: type[CautionRule]) -> None:
    for text in (rule.about, rule.reads, rule.shows, rule.remedy):
        assert text
    assert rule.about.endswith(".")


def test_each_rule_has_its_own_file_and_place_in_a_report() -> None:
    rules = kinds_of_rules()
    files = {file.stem for file in Path(cautions.__path__[0]).glob("*.py")}
    files -= {"__init__", "rule", "all_rules"}
    assert sorted(rule.__module__.rpartition(".")[2] for rule in rules) == sorted(files)
    severities = [rule.severity for rule in rules]
    assert severities == sorted(set(severities), reverse=True)


@pytest.mark.parametrize("kind", [rule for rule in kinds_of_rules() if hasattr(rule, "observe")])
def test_a_rule_sees_each_record_once_and_keeps_nothing_for_the_next_report(
    tmp_path: Path, kind: type[CautionRule], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    monkeypatch.setattr(kind, "observe", lambda _, runs: seen.extend(runs.record.run.tolist()))
    folder = Synth(pairs=TWO, runs=2, edit=cut).write(tmp_path / "r")
    one, two = Source.of(folder), Source.of(folder)
    assert sorted(seen) == sorted(2 * list(range(1, 9)))
    assert not set(one.rules) & set(two.rules)


SERIES: dict[str, Callable[[np.ndarray], bool]] = {
    "drift": lambda x: drift(x)[1] < 0.002,
    "autocorrelation": lambda x: autocorrelation(x)[1] < 0.002,
    "outliers": lambda x: bool(outliers(x)),
}


@pytest.mark.parametrize("name", list(SERIES))
@pytest.mark.parametrize("n", [8, 10, 30])
def test_false_alarms_are_rare(name: str, n: int) -> None:
    """At most one sound cell in a hundred is suspected by each test."""
    draws = np.random.default_rng(n).normal(100, 1, (1500, n))
    assert np.mean([SERIES[name](x) for x in draws]) <= 0.01


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("drift", lambda rng: np.linspace(0, 4, 20) + rng.normal(0, 1, 20)),
        ("autocorrelation", lambda rng: np.cumsum(rng.normal(0, 1, 30))),
        ("outliers", lambda rng: np.append(rng.normal(0, 1, 15), 30.0)),
    ],
)
def test_what_is_there_is_seen(
    name: str, make: Callable[[np.random.Generator], np.ndarray]
) -> None:
    rng = np.random.default_rng(4)
    assert np.mean([SERIES[name](make(rng)) for _ in range(100)]) >= 0.8


def test_too_few_values_tell_nothing() -> None:
    assert instabilities(np.array([1.0, 2.0, 3.0])) == []
    assert instabilities(np.ones(20)) == []


@pytest.mark.parametrize("n", [8, 64, 65, 129, 1000])
@pytest.mark.parametrize("levels", [3, 10**6])
def test_drift_is_kendalls_tau(n: int, levels: int) -> None:
    """Of any number of values, with ties and without."""
    rng = np.random.default_rng([n, levels])
    values = rng.integers(0, levels, n) + rng.integers(0, 2) * np.arange(n) * levels / n
    found = scipy.stats.kendalltau(np.arange(n), values)
    pairs = n * (n - 1) / 2
    ties = np.unique(values, return_counts=True)[1]
    without_ties = pairs - (ties * (ties - 1) / 2).sum()
    assert drift(values)[0] == pytest.approx(
        found.statistic * math.sqrt(pairs * without_ties) / pairs
    )
