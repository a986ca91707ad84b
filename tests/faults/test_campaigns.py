"""What goes wrong in real life: each ends as a record with its reason, or an error."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from netbench import campaign
from netbench.base.errors import StoreError, WorkerLost
from netbench.engine.worker import Worker
from netbench.hosts import local
from netbench.hosts.local import LocalChannel
from netbench.result.store import Store
from netbench.run import conductor
from netbench.run.runner import Runner
from tests.support.hooks import hook
from tests.support.local import call, netbench_argv, ran
from tests.support.paths import ROOT
from tests.support.running import (
    BASE,
    LONG,
    SHORT,
    TWO,
    Running,
    resumed,
    run,
    sabotage,
    worker_pid,
)
from tests.support.screen import Screen
from tests.support.unfinished import unfinished

PORT = 15321  # of data; each process of the tests has a network of its own

# Peers


def kill(role: str) -> Callable[[Runner], None]:
    return lambda runner: os.kill(worker_pid(runner, role), signal.SIGKILL)


def reset(runner: Runner) -> None:
    filters = ["state", "established", "dst", "127.0.0.1", "dport", "=", str(PORT)]
    subprocess.run(["ss", "-K", *filters], check=True, capture_output=True)


def interject(runner: Runner) -> None:
    """Write into the other end of the pipe that the controller reads."""
    stream: Any = runner._pool.worker("here", "receiver").connection._stream
    Path(f"/proc/self/fd/{stream._out.fileno()}").write_bytes(b"general protection fault\n")


def stop(runner: Runner) -> None:
    os.kill(worker_pid(runner, "receiver"), signal.SIGSTOP)


MID_RUN = {
    "a receiver that is killed": (kill("receiver"), "interrupted", "gone"),
    "connections that are reset": (reset, "failed", "look at the other side's error"),
    "a worker that breaks the protocol": (
        interject,
        "interrupted",
        "here: received data that is not netbench's protocol (it starts with b'general protection",
    ),
    "a worker that is stopped": (stop, "interrupted", "fell silent"),
}


@pytest.mark.parametrize(
    "what", [pytest.param(w, marks=pytest.mark.slow if "stopped" in w else ()) for w in MID_RUN]
)
def test_what_breaks_in_mid_run_costs_that_run_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    act, status, reason = MID_RUN[what]
    pids: list[int] = []

    def acting(runner: Runner) -> None:
        pids.append(worker_pid(runner, "receiver"))
        act(runner)

    sabotage(monkeypatch, acting, 0.3)
    first, *others = run(TWO.replace("transfer: {", f"transfer: {{port: {PORT}, "), tmp_path)
    assert (first["status"], reason in first["reason"]) == (status, True), first["reason"]
    assert [r["status"] for r in others] == ["ok", "ok"], "the other cell, and this one again"
    assert not Path(f"/proc/{pids[0]}").exists(), "it is given up, or has left with its campaign"


def test_an_interrupted_worker_undoes_its_changes() -> None:
    """Ctrl-C while pairs run side by side: what takes longer than a look is not broken off again."""
    worker = Worker(LocalChannel("here").start_helper(), "here")
    undo = ["sh", "-c", "sleep 0.7"]
    worker.operate("exec", ["true"], hold=True, undo=undo)
    worker.interrupt()
    with pytest.raises(KeyboardInterrupt):
        worker.operate("exec", undo)
    worker.close()
    worker = Worker(LocalChannel("here").start_helper(), "here")
    worker.operate("exec", ["true"], hold=True, undo=undo)
    worker.interrupt()
    worker.clear_interrupt()
    worker.undo()
    worker.close()


def test_a_worker_that_stops_reading_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is stopped, and the order is larger than what a pipe holds."""
    monkeypatch.setattr(local, "PATIENCE_SECONDS", 0.2)
    worker = Worker(LocalChannel("here").start_helper(), "here")
    os.kill(worker.hello.pid, signal.SIGSTOP)
    with pytest.raises(
        WorkerLost, match=r"here: .*writing to it failed \(it has not read its input for 0.2 s\)"
    ):
        worker.operate("exec", ["echo", "x" * (1 << 20)])
    os.kill(worker.hello.pid, signal.SIGKILL)
    worker.close()


# Clocks


DAY = 86400


@pytest.fixture
def stepped(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of processes whose wall clock jumps by days, a hundred times a second."""
    step, stop = tmp_path / "step", threading.Event()
    step.write_bytes(struct.pack("q", 0))

    def jump() -> None:
        with step.open("r+b", 0) as mapped:
            for sign in itertools.cycle((1, -1)):
                os.pwrite(mapped.fileno(), struct.pack("q", sign * DAY), 0)
                if stop.wait(0.01):
                    return

    jumper = threading.Thread(target=jump)
    jumper.start()
    yield {
        **os.environ,
        "LD_PRELOAD": str(hook("clock_hook", tmp_path)),
        "NB_CLOCK_STEP": str(step),
    }
    stop.set()
    jumper.join()


def test_a_wall_clock_that_is_stepped_changes_nothing_but_dates(
    tmp_path: Path, stepped: dict[str, str]
) -> None:
    """For controller and workers, not this machine: the C library's functions are replaced."""
    campaign = Running(tmp_path, tmp_path / "r", LONG + "limit: 10m\n", env=stepped)
    campaign.await_records(10)
    campaign.process.send_signal(signal.SIGINT)
    code, said = campaign.end()
    assert code == 130, said
    kept = campaign.records()
    resumed(campaign.folder, stepped)
    records = campaign.records()
    assert records[: len(kept)] == kept
    good = [r for r in records if r["status"] == "ok"]
    assert [r["block"] for r in good] == list(range(40))
    times = [datetime.fromisoformat(r["started"]).timestamp() for r in records]
    assert max(times) - min(times) > DAY, "no record has seen the steps"
    for side in ("sender", "receiver"):
        windows = [r[side]["time_ns"][1] - r[side]["time_ns"][0] for r in good]
        assert 0 < min(windows) <= max(windows) < DAY * 10**9 / 2
    report = call("report", "--full", campaign.folder)
    assert (report.returncode, report.stderr) == (0, "")


# Meters


EMPTY_STAT = 'mount --bind /dev/null /proc/stat && exec "$@"'


@pytest.mark.root
@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (
            ["run", "f.yaml"],
            2,
            "error: here: meters: procstat cannot run here: /proc/stat counts no",
        ),
        (["run", "f.yaml", "--set", "meters=[rusage]"], 0, "throughput"),
    ],
)
def test_a_meter_that_cannot_run_is_found_before_anything_is_run(
    tmp_path: Path, words: list[str], code: int, says: str
) -> None:
    """As in a container that hides /proc/stat."""
    (tmp_path / "f.yaml").write_text(BASE + f"transfer: {{{SHORT}}}\n")
    argv = ["unshare", "--mount", "sh", "-c", EMPTY_STAT, "sh", *netbench_argv(words)]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert says in " ".join((done.stdout + done.stderr).split())
    assert (tmp_path / "results").exists() == (not code)


# Terminals and pipes


@pytest.fixture
def screens() -> Iterator[list[Screen]]:
    """Terminals that are closed with the test."""
    made: list[Screen] = []
    yield made
    for screen in made:
        screen.close()


@pytest.mark.parametrize("ignored", [False, True])
def test_a_terminal_that_closes_in_mid_run(
    tmp_path: Path, screens: list[Screen], ignored: bool
) -> None:
    """It hangs up and takes no more output. Who ignores that, as under nohup, wants to go on."""
    ignoring = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh"] if ignored else []

    def on_terminal(argv: list[str]) -> subprocess.Popen[Any]:
        screens.append(Screen(argv))
        return screens[0].process

    campaign = Running(tmp_path, tmp_path / "r", prefix=ignoring, start=on_terminal)
    campaign.await_records(3)
    workers, kept = campaign.workers(), campaign.records()
    screens[0].hang_up()
    code, _ = campaign.end()
    assert code == (0 if ignored else 130)
    assert [pid for pid in workers if Path(f"/proc/{pid}").exists()] == []
    assert Store.open(campaign.folder).journal.ended() == ("done" if ignored else "interrupted")
    assert (len(campaign.records()) == 40) == ignored
    resumed(campaign.folder)
    assert campaign.records()[: len(kept)] == kept
    assert [r["block"] for r in campaign.records() if r["status"] == "ok"] == list(range(40))


def test_a_closed_pipe_does_not_change_the_exit_status(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        failing = f"sweep: {{port: [15000-15999, {taken.getsockname()[1]}]}}\n"
        campaign = Running(tmp_path, tmp_path / "r", LONG.replace("40", "10") + failing)
        campaign.await_records(3)
        for stream in (campaign.process.stdout, campaign.process.stderr):
            assert stream is not None
            stream.close()
        assert campaign.process.wait(60) == 1, "of the port that is taken"
    assert sum(r["status"] == "ok" for r in campaign.records()) == 10


def test_an_answer_on_a_full_disk_is_an_error() -> None:
    with Path("/dev/full").open("w") as full:
        streams: Any = {"stdout": full, "stderr": subprocess.PIPE}
        done = subprocess.run(netbench_argv(["--help"]), **streams, text=True, check=False)
    assert done.returncode == 1
    says = "netbench: cannot write to standard output: No space left on device; free some space, or redirect it elsewhere"
    assert done.stderr.splitlines()[-1] == says
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("word", "code", "dead"), [("methods", 0, "stderr"), ("none", 2, "both")])
def test_unwritable_streams_do_not_change_another_exit_status(
    tmp_path: Path, word: str, code: int, dead: str
) -> None:
    """A device without room; else a pipe without a reader: buffers fail once more at exit."""
    reader, writer = os.pipe()
    os.close(reader)
    with Path("/dev/full").open("w") as full, os.fdopen(writer, "w") as unread:
        streams = {"stderr": full, "stdout": unread if dead == "both" else subprocess.DEVNULL}
        done = subprocess.run(netbench_argv(["list", word]), cwd=tmp_path, check=False, **streams)
    assert done.returncode == code


# The controller


def test_a_python_without_the_packages_says_what_to_do() -> None:
    done = ran([sys.executable, "-S", "-m", "netbench", "transfer", "duration=1s"], cwd=ROOT)
    assert done.returncode == 2
    assert f"{sys.executable} has no package" in done.stderr
    assert "run `make`" in done.stderr


def test_an_unexpected_exception_is_reported_without_a_traceback() -> None:
    code = "import sys; from netbench import __main__\nfrom netbench.cli import parser\nparser.run = lambda argv: {}['nothing']\nsys.exit(__main__.main(['plan', 'c']))"
    plain, dev = (ran([sys.executable, *more, "-c", code]) for more in ([], ["-X", "dev"]))
    assert (plain.returncode, len(plain.stderr.splitlines())) == (1, 1)
    says = "netbench: this is a defect of netbench: KeyError at <string>:3: 'nothing'; records that"
    assert plain.stderr.startswith(says)
    assert "Traceback" in dev.stderr


def test_a_changed_campaign_is_not_resumed_under_the_old_records(tmp_path: Path) -> None:
    text = BASE + f"transfer: {{{SHORT}}}\nsweep: {{chunk: [4K, 64K]}}\n"
    first = conductor.start(campaign.parse(text, "f.yaml"), tmp_path)
    before = (first.path / "records.jsonl").read_bytes()
    with pytest.raises(
        StoreError, match=r"campaign\.yaml no longer matches plan\.json: `cells` differs"
    ):
        conductor.resume(unfinished(first.path), campaign.parse(text.replace("4K", "8K"), "f.yaml"))
    assert (first.path / "records.jsonl").read_bytes() == before


def test_windows_are_measured_by_the_monotonic_clock(tmp_path: Path) -> None:
    """Stepping this machine's clock would step everybody's: no other clock is asked for."""
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    record, *_ = run(f"transfer: {{{SHORT}}}\n", tmp_path)
    after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    for side in ("sender", "receiver"):
        assert before < record[side]["time_ns"][0] < record[side]["time_ns"][1] < after
    sources = (ROOT / "native" / "src").rglob("*.[ch]")
    assert [
        str(file)
        for file in sources
        if "CLOCK_REALTIME" in file.read_text() or "gettimeofday(" in file.read_text()
    ] == []
