"""Profile runs of whole campaigns: apart from measured ones, and gone when somebody is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from netbench import campaign, load
from netbench.engine.worker import Worker
from netbench.hosts.local import LocalChannel
from netbench.read.compare import changed
from netbench.read.load import load as load_result
from netbench.result.profile_files import ProfileRecord, read_folded, read_profile_runs
from netbench.run import conductor
from netbench.run.profiler import ProfileRunner
from netbench.run.recorder import Recorder
from tests.support.running import is_running, stored_records, wait_for
from tests.support.synthetic import Record, Synth

pytestmark = pytest.mark.root
TEXT = """\
netbench: 1
name: p
verify: off
transfer: {duration: 50ms, warmup: 10ms, sample: 10ms, congestion: reno}
sweep: {send: [write, sendfile]}
repeat: {min: 2, max: 2}
profile: {cells: all, seconds: 200ms, runs: 2}
"""


def run(text: str, results: Path) -> Path:
    conclusion = conductor.start(campaign.parse(text, "p.yaml"), results)
    assert (conclusion.why, conclusion.failed) == ("done", False)
    return conclusion.path


def profiles(result: Path) -> list[ProfileRecord]:
    return list(read_profile_runs(result))


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(TEXT, tmp_path_factory.mktemp("profiled"))


def test_profile_runs_are_beside_the_measured_ones(result: Path) -> None:
    assert [record["run"] for record in stored_records(result)] == [1, 2, 3, 4]
    assert len(load(result).runs) == 4
    done = profiles(result)
    assert [one.run for one in done] == [1, 2, 3, 4]
    assert [one.round for one in done] == [0, 0, 1, 1]
    assert sorted(one.cell for one in done) == ["send=sendfile"] * 2 + ["send=write"] * 2
    assert {(one.status, one.reason) for one in done} == {("ok", "")}


def test_a_profile_says_who_called_what_while_data_moved(result: Path) -> None:
    for one in profiles(result):
        assert one.sender
        assert one.receiver
        (profile,) = one.profiles.values()
        assert set(one.profiles) == {"system"}, "both ends are on one kernel"
        opened, closed = one.sender.time_ns or (0, 0)
        assert opened < profile.time_ns[0] < closed < profile.time_ns[1]
        assert profile.frequency == 997
        stacks = read_folded(result, profile)
        if profile.unit == "ticks":
            assert sum(stacks.values()) == profile.samples
        frames = {frame for stack in stacks for frame in stack}
        assert {"sender", "receiver"} <= frames
        assert any(frame.startswith("tcp_") and frame.endswith("_[k]") for frame in frames)
        assert profile.kernel_symbols > 10_000


def test_neither_the_soaker_is_sampled_nor_a_sink_that_is_a_file(tmp_path: Path) -> None:
    sinks = f"sink: [discard, {{file: {tmp_path}/out}}]"
    paced = TEXT.replace("congestion: reno", "congestion: reno, rate: 1Gb/s")
    text = paced.replace("send: [write, sendfile]", sinks)
    result = run(f"{text}meters: [procstat, soak]\n", tmp_path / "results")
    assert all("soak" in record["sender"] for record in stored_records(result))
    done = profiles(result)
    assert sorted(one.status for one in done) == ["ok"] * 2 + ["unsupported"] * 2
    for one in done:
        assert ("the sink is a file" in one.reason) == ("out" in one.cell)
        assert one.sender or one.reason
        assert not one.sender or "procstat" in one.sender.meters
        assert not one.sender or "soak" not in one.sender.meters


def test_a_campaign_that_was_stopped_in_its_profiles_goes_on_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest, kept = Recorder.keep_profile, []

    def stop_after_two(self: Recorder, *profiled: Any) -> None:
        honest(self, *profiled)
        kept.append(profiled)
        if len(kept) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Recorder, "keep_profile", stop_after_two)
    wanted = campaign.parse(TEXT, "p.yaml")
    conclusion = conductor.start(wanted, tmp_path)
    assert conclusion.why == "interrupted"
    assert not conductor.finished(conclusion.path, wanted)
    assert conductor.resume(conclusion.path, wanted).why == "done"
    assert conductor.finished(conclusion.path, wanted)
    done = profiles(conclusion.path)
    assert sorted((one.cell, one.round) for one in done) == [
        (f"send={send}", number) for send in ("sendfile", "write") for number in (0, 1)
    ]
    assert [one.run for one in done] == [1, 2, 3, 4]
    assert len(stored_records(conclusion.path)) == 4


def test_a_helper_that_is_killed_in_a_profile_run_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest, killed = ProfileRunner._measure, []

    def kill(self: ProfileRunner, *args: object) -> object:
        if not killed:
            killed.append(self._pool.helper("here").hello.pid)
            os.kill(killed[0], signal.SIGKILL)
        return honest(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(ProfileRunner, "_measure", kill)
    done = profiles(run(TEXT, tmp_path))
    assert killed
    assert [one.status for one in done] == ["ok"] * 4


def events(pid: int) -> int:
    """Perf events that a process has open."""
    folder = Path(f"/proc/{pid}/fd")
    return sum(os.readlink(link) == "anon_inode:[perf_event]" for link in folder.iterdir())


@pytest.mark.parametrize(
    ("end", "orders"),
    [
        (None, ("ready 997",)),
        (signal.SIGTERM, ("ready 997", "on")),
        (signal.SIGKILL, ("ready 997", "on", "off")),
    ],
)
def test_a_helper_that_ends_leaves_no_event_open(
    end: signal.Signals | None, orders: tuple[str, ...]
) -> None:
    worker = Worker(LocalChannel("here").start_helper(), "here")
    pid = worker.hello.pid
    for order in orders:
        worker.operate("profile", "sampling", order)
    assert (events(pid) > 0) == (orders[-1] != "off")
    if end:
        os.kill(pid, end)
    else:
        worker.abandon()
    wait_for(lambda: not is_running(pid))
    worker.abandon()


def test_changed_cells_are_those_beyond_the_baseline_with_it(tmp_path: Path) -> None:
    """Interrupts alone are no change: of some thirty metrics one differs soon."""

    def truth(factors: Mapping[str, str]) -> tuple[float, float, float]:
        faster = factors["send"] == "sendfile" and factors["pin"] == "none"
        return 33.0 if faster else 20.0, 0.6, 0.7

    def interrupted(record: Record) -> Record:
        many = 100_000 if record["factors"]["send"] == "splice" else 1000
        for at, side in enumerate(("sender", "receiver"), 1):
            record[side]["softirq"] = {"interrupts": [0, many], "namespace": [at, at]}
        return record

    made = Synth(
        factors={"send": ("write", "sendfile", "splice"), "pin": ("none", "same")},
        compare={"factor": "send", "baseline": "write", "margin": 0.05},
        truth=truth,
        pairs=("a>b",),
        edit=interrupted,
    )
    written = load_result(made.write(tmp_path / "r"))
    assert "interrupts" in written.metrics
    assert changed(written) == {("send=write,pin=none", "a>b"), ("send=sendfile,pin=none", "a>b")}
