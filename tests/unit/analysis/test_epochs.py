"""Which runs are pooled where kernels are swept: boots of one must agree, kernels need not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from netbench.facts import comparison
from netbench.read.cautions.rule import Caution
from netbench.read.cells import cells_of
from netbench.read.compare import in_result
from netbench.read.epochs import Epochs, is_mixed
from netbench.read.load import load
from netbench.read.result import Result
from netbench.report.blocks import Table
from netbench.report.build import build
from netbench.report.source import Source
from netbench.result.files import HostEntry
from tests.support.synthetic import Record, Synth, failed

SYNTH = Synth({"kernel": ("old", "new")}, runs=8, boots=4, pairs=("snd>rcv",))


def made(folder: Path, changes: Mapping[int, Mapping[str, str]]) -> Result:
    """A result whose sender had other facts in some boots."""
    SYNTH.write(folder)
    told = json.loads((folder / "facts.json").read_text())
    for entry in told["hosts"]["snd"]:
        entry["facts"] |= changes.get(entry["boot"], {})
    (folder / "facts.json").write_text(json.dumps(told))
    return load(folder)


def left_out(result: Result) -> set[int]:
    """The boots whose runs are not pooled."""
    return set(result.runs.loc[result.runs["excluded"] != "", "boot"])


def warned(result: Result) -> dict[str, Caution]:
    return {c.kind: c for c in Source(result).cautions}


OLD, NEW = ([boot for boot, kernel in SYNTH.booted() if kernel == k] for k in ("old", "new"))


def test_kernels_keep_no_runs_apart(tmp_path: Path) -> None:
    other = {"clock_source": "hpet", "tcp_rmem": "1 2 3", "memory": "7 kB"}
    result = load(replace(SYNTH, kernels={"new": other}).write(tmp_path / "r"))
    assert not left_out(result)
    assert [c.intervals["throughput"].n for c in cells_of(result)] == [4, 4]
    told = warned(result)
    assert set(told) == {"kernels", "builds"}
    assert told["kernels"].what in {
        f"On {host}, {one} and {other} differ in more than the kernel: clock_source."
        for host in ("snd", "rcv")
        for one, other in (("old", "new"), ("new", "old"))
    }


def test_a_kernel_that_was_built_anew_is_another(tmp_path: Path) -> None:
    """Same release, same level, but the last two boots ran what was built in between."""
    result = made(tmp_path / "r", {key: {"kernel_build": "#2 SMP new"} for key in NEW[2:]})
    assert left_out(result) == set(NEW[:2])
    assert set(result.runs["excluded"]) == {"", "snd: kernel_build was #1 SMP new, then #2 SMP new"}
    assert [c.intervals["throughput"].n for c in cells_of(result)] == [4, 2]
    assert "4 of 16 ok runs" in warned(result)["facts"].what


@pytest.mark.parametrize(
    ("fact", "usual", "odd", "at"),
    [
        ("command_line", "quiet", "quiet mitigations=off", 1),
        ("turbo", "off", "on", 0),  # the new kernel never says: that is not taken from the old one
    ],
)
def test_what_one_boot_alone_had_is_not_pooled(
    tmp_path: Path, fact: str, usual: str, odd: str, at: int
) -> None:
    told = {boot: {fact: odd if boot == OLD[at] else usual} for boot in OLD}
    assert left_out(made(tmp_path / "r", told)) == {OLD[at]}


def test_facts_that_vary_between_boots_of_one_kernel_are_named(tmp_path: Path) -> None:
    memory = {boot: {"memory": "8 kB" if boot == NEW[1] else "7 kB"} for boot in NEW}
    told = warned(made(tmp_path / "r", memory))["facts"].what
    assert told == "memory of snd changed between boots; no run is excluded for that."


def entry(boot: int, kernel: str, run: int, **facts: str) -> HostEntry:
    known = {"kernel": kernel, "kernel_build": "#1", "tcp_sack": "1"} | facts
    return HostEntry(boot, "", 100, known, from_run=run)


def told(entries: list[HostEntry], handled: list[str], last: int = 6, counted: int = 1) -> str:
    """Of a campaign with ok runs in the epochs of its run `last`, and of its run `counted`."""
    epochs = Epochs({"snd": entries}, handled, ["snd>rcv"])
    runs = [epochs.of("snd>rcv", run, 1) for run in (last, counted)]
    return epochs.not_pooled("snd>rcv", runs[0], runs)


def test_a_resumed_campaign_is_told_only_of_changes_within_a_kernel() -> None:
    entries = [entry(1, "6.1", 1), entry(2, "6.12", 4), entry(3, "6.1", 7)]
    assert told(entries, ["kernel"]) == told(entries, [], last=7) == ""
    assert told(entries, []).startswith("snd: kernel was 6.12, then 6.1, as in earlier runs: these")
    assert "6.1: once a new run is ok" in told(entries, [], counted=4), "none was ok before run 4"
    said = told([*entries[:2], entry(3, "6.1", 7, tcp_sack="0")], ["kernel"], last=1)
    assert said.startswith("snd: tcp_sack was 1, then 0: once")


def test_runs_in_which_a_fact_changed_never_count() -> None:
    entries = [entry(1, "6", 1), entry(1, "6", 7, tcp_sack="0"), entry(1, "6", 9)]
    hosts = {"snd": [entries[0], replace(entries[1], changed_from=4), entries[2]]}
    epochs = Epochs(hosts, [], ["snd>rcv"])
    of_runs = [epochs.of("snd>rcv", run, 1) for run in range(1, 10)]
    assert [is_mixed(epoch) for epoch in of_runs] == [*[False] * 3, *[True] * 3, *[False] * 3]
    assert of_runs[0] == of_runs[8] != of_runs[7]
    said = epochs.describe("snd>rcv", of_runs[3], of_runs[8])
    assert said == "snd: tcp_sack was 1, then 0, in these runs"


def test_a_kernel_that_did_not_come_up_is_not_taken_for_the_one_before(tmp_path: Path) -> None:
    """The runs that it would have had failed, with the number of the boot that was there before."""
    booted = SYNTH.booted()
    lost, kernel = booted[3]
    before = booted[2][0]

    def down(record: Record) -> Record:
        if record["boot"] != lost:
            return record
        return failed(record, "failed", f"boot: {kernel}: it did not come up") | {"boot": before}

    synth = replace(SYNTH, edit=down, compare={"factor": "kernel", "baseline": "old"})
    result = load(synth.write(tmp_path / "r"))
    assert result.kernels == {boot: each for boot, each in booted if boot != lost}
    assert {c.cell: c.intervals["throughput"].n for c in cells_of(result)} == {
        f"kernel={each}": 3 if each == kernel else 4 for each in ("old", "new")
    }
    table = build(tmp_path / "r").section("boots").blocks[0]
    assert isinstance(table, Table)
    assert [row[0] for row in table.rows] == [str(boot) for boot, _ in booted if boot != lost]
    assert {row[4] for row in table.rows} == {2}


def test_what_was_booted_twice_for_one_round_stays_in_it(tmp_path: Path) -> None:
    """Killed in its third boot and resumed: numbers run on, blocks say which round it is."""
    third = SYNTH.booted()[2][0]

    def again(record: Record) -> Record:
        late = record["boot"] > third or (record["boot"] == third and record["block"] % 2 == 1)
        return record | {"boot": record["boot"] + late}

    folder = replace(SYNTH, edit=again).write(tmp_path / "r")
    told = json.loads((folder / "facts.json").read_text())
    for entries in told["hosts"].values():
        for each in entries[2:]:
            each["boot"] += each["boot"] > third
        entries.insert(3, entries[2] | {"boot": third + 1, "boot_id": "again"})
    (folder / "facts.json").write_text(json.dumps(told))
    result = load(folder)
    rounds = [result.rounds[boot] for boot in sorted(result.rounds)]
    assert (rounds, len(result.kernels)) == ([0, 0, 1, 1, 1, 2, 2, 3, 3], 9)
    (found,) = in_result(result, "throughput", "kernel", "old")
    assert (found.unit, found.n) == ("boot", 4)
    assert sorted(c.intervals["throughput"].n for c in cells_of(result)) == [4, 5]


def test_a_few_kilobytes_of_memory_are_no_change(tmp_path: Path) -> None:
    result = made(tmp_path / "r", {boot: {"memory": f"{995612 + 4 * boot} kB"} for boot in NEW})
    assert warned(result).keys() == {"builds"}
    assert not comparison.same("memory", "995612 kB", "885612 kB")
    assert not comparison.same("kernel", "6.1", "6.2")
    held = " (hold it: settings: {sysctl.net.ipv4.tcp_rmem: VALUE})"
    assert [comparison.remedy(name) for name in ("tcp_rmem", "cpu_model")] == [held, ""]


def test_a_setting_that_is_held_keeps_no_runs_apart(tmp_path: Path) -> None:
    """Facts are read before settings are applied: what a host came up with no run may have seen."""
    folder = tmp_path / "r"
    assert left_out(made(folder, {boot: {"tcp_rmem": f"4096 131072 {boot}"} for boot in OLD}))
    plan = json.loads((folder / "plan.json").read_text())
    for side in ("", "sender.", "receiver."):
        held = {f"{side}sysctl.net.ipv4.tcp_rmem": "4096 131072 6291456"}
        (folder / "plan.json").write_text(json.dumps(plan | {"held": held}))
        assert bool(left_out(load(folder))) == (side == "receiver."), "the other host's may differ"
