"""A part as an engine's task: killed, it goes on from its records, and never twice at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from netbench.base.errors import PlaceError, RequestError, StoreError
from netbench.base.locked import lock
from netbench.fleet import dask_engine, part_task
from netbench.fleet.dask_engine import FRUITLESS, Places, _Engine
from netbench.fleet.part_task import (
    CAMPAIGN,
    PROGRESS,
    RUN,
    STOP,
    PartTask,
    is_leased,
    is_stopped,
    run_part,
    write_state,
)
from netbench.result.journal import Ended, Journal
from tests.support.local import Command, call, netbench_argv
from tests.support.running import stored_records, wait_for

TEXT = """\
netbench: 1
name: fleet
verify: off
hosts: {a: local, b: local}
pairs: [{sender: a, receiver: a}, {sender: b, receiver: b}]
transfer: {duration: 20ms, warmup: 2ms, congestion: cubic}
repeat: {min: 30, max: 30}
"""
SYSCTL = Path("/proc/sys/net/ipv4/tcp_no_metrics_save")


@pytest.fixture
def task(tmp_path: Path) -> PartTask:
    (tmp_path / CAMPAIGN).write_text(TEXT)
    write_state(tmp_path, RUN)
    return PartTask(str(tmp_path), 1, 2, 1)


def controller(task: PartTask) -> int:
    """The process that the part's lease names."""
    return int((task.own / part_task.LEASE).read_text().split()[2])


def records(task: PartTask) -> int:
    return len(stored_records(task.result)) if task.result else 0


class Started(threading.Thread):
    """A task on a thread, as on a worker of Dask's."""

    def __init__(self, task: PartTask) -> None:
        super().__init__()
        self.task = task
        self.code: int | None = None
        self.start()

    def run(self) -> None:
        self.code = run_part(self.task)

    def await_records(self, number: int) -> None:
        wait_for(lambda: records(self.task) >= number, self.is_alive)

    def end(self) -> int | None:
        self.join(60)
        return self.code


def test_a_part_that_is_stopped_is_gone_on_with_by_another_attempt(task: PartTask) -> None:
    """What kills do to parts is in test_engines.py."""
    first = Started(task)
    first.await_records(3)
    write_state(Path(task.folder), STOP)
    assert first.end() == 130
    assert SYSCTL.read_text() == "0\n"
    write_state(Path(task.folder), RUN)
    with pytest.raises(StoreError, match="part 1/2: attempt 1 was made already"):
        run_part(task)
    assert run_part(replace(task, attempt=2)) == 0
    assert task.result
    found = [r for r in stored_records(task.result) if r["status"] != "interrupted"]
    assert [(r["block"], r["pair"], r["status"]) for r in found] == [
        (block, "a>a", "ok") for block in range(30)
    ]


def test_no_part_is_run_twice_at_once(task: PartTask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_task, "LEASE_SECONDS", 0.0)
    task.own.mkdir()
    assert not is_leased(task.own)
    with (task.own / part_task.LEASE).open("w") as lease:
        lock(lease.fileno())
        print("node7 12 34", file=lease, flush=True)
        assert is_leased(task.own)
        with pytest.raises(
            StoreError, match=r"part 1/2 is run by another controller \(.* node7 12 34"
        ):
            run_part(task)
    assert not is_leased(task.own)


def test_a_controller_keeps_the_lease_when_its_task_is_gone(
    task: PartTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part_task, "_LAUNCH", "import time; time.sleep(60)")
    lease = task.own / part_task.LEASE
    running = Started(task)
    wait_for(lambda: lease.is_file() and lease.read_text().endswith("\n"), running.is_alive)
    assert lease.stat().st_mode & 0o077 == 0, "whoever may open it may hold it"
    files = Path(f"/proc/{controller(task)}/fd").iterdir()
    assert str(lease) in {os.readlink(file) for file in files}
    os.kill(controller(task), signal.SIGKILL)
    assert running.end() == -signal.SIGKILL
    assert not is_leased(task.own)


def test_another_version_of_netbench_is_refused(task: PartTask) -> None:
    with pytest.raises(RequestError, match="install the same version"):
        run_part(replace(task, version="0.0.0"))


def test_a_folder_that_is_not_seen_there_is_refused_at_once(task: PartTask) -> None:
    """That of a share which is not mounted, or in whose place another account has made one."""
    (Path(task.folder) / CAMPAIGN).rename(kept := Path(task.folder) / "kept")
    with pytest.raises(RequestError, match=r"No such file .* its folder is not what it is where"):
        run_part(task)
    os.chown(kept, 65534, 65534)
    kept.rename(Path(task.folder) / CAMPAIGN)
    with pytest.raises(RequestError, match=r"part 1/2: .*/campaign.yaml belongs to nobody"):
        run_part(task)
    os.chown(task.folder, 65534, 65534)
    with pytest.raises(RequestError, match=r"part 1/2: .* belongs to nobody, who may exchange it"):
        run_part(task)
    assert not task.own.exists()


# Nobody but whoever runs a campaign in parts runs code by it


TEXT_OF_BORDER = """\
netbench: 1
name: fleet
verify: off
transfer: {duration: 100ms, warmup: 2ms, congestion: reno}
repeat: {min: 600, max: 600}
"""


def test_parts_on_this_machine_open_no_port_for_tasks(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(TEXT_OF_BORDER)
    argv = netbench_argv(["run", "fleet.yaml", "--engine", "dask", "--parts", "1"])
    with subprocess.Popen(argv, cwd=tmp_path, start_new_session=True) as run:
        try:
            records = "results/fleet/*-parts/1/fleet/*/records.jsonl"
            wait_for(lambda: any(tmp_path.glob(records)), lambda: run.poll() is None, 120)
            said = subprocess.run(["ss", "-Hltnp"], check=True, capture_output=True, text=True)
            assert f"pid={run.pid}," not in said.stdout
            assert b"distributed" not in Path(f"/proc/{run.pid}/maps").read_bytes()
        finally:
            os.killpg(run.pid, signal.SIGINT)
            assert run.wait(60) == 130


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("127.0.0.1:9", "127.0.0.1:9 is not tls://"),
        ("tls://127.0.0.1:9", "no files are named for tls://127.0.0.1:9"),
    ],
)
def test_a_scheduler_without_certificates_is_refused(
    tmp_path: Path, address: str, said: str
) -> None:
    pytest.importorskip("distributed")
    (tmp_path / "fleet.yaml").write_text(TEXT_OF_BORDER)
    done = call("run", tmp_path / "fleet.yaml", "--engine", "dask", "--scheduler", address)
    assert done.returncode == 2
    told = " ".join(done.stderr.split())
    for part in (said, "DASK_DISTRIBUTED__COMM__TLS__CA_FILE", "--insecure"):
        assert part in told


# What the engine of parts makes of what Dask says, without Dask


class Told:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, message: str) -> None:
        self.lines.append(message)

    show = say


class Future:
    """What a task has come to: an exit status, or an exception."""

    def __init__(self, outcome: object) -> None:
        self.over = outcome is not None
        self._outcome = outcome

    def done(self) -> bool:
        return self.over

    def cancel(self) -> None:
        """Dask's ends no task that was begun."""

    def result(self, timeout: float) -> object:
        if isinstance(self._outcome, BaseException):
            raise self._outcome
        return self._outcome


class Tasks:
    """Gives each attempt of each part its outcome; of a `fruitful` part with a record."""

    def __init__(self, outcomes: dict[int, list[object]], fruitful: bool = True) -> None:
        self.alive = True
        self._outcomes = outcomes
        self._fruitful = fruitful
        self.attempts: list[tuple[int, int]] = []

    def submit(self, task: PartTask) -> Any:
        self.attempts.append((task.number, task.attempt))
        result = task.own / "fleet" / "result"
        result.mkdir(parents=True, exist_ok=True)
        (result / "journal.jsonl").write_text("")
        if "done" in self._outcomes.get(0, []):
            Journal(result / "journal.jsonl").write(Ended("done"))
        with (result / "records.jsonl").open("a") as records:
            records.write("{}\n" if self._fruitful else "")
        (task.own / PROGRESS).write_text("run 1: send=write\nunfinish")
        left = self._outcomes.get(task.number, [])
        return Future(left.pop(0) if left else 0)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_engine, "LOOK_SECONDS", 0.0)


def engine(folder: Path, client: Tasks, told: Told) -> _Engine:
    write_state(folder, RUN)
    return _Engine(Places(2, client.submit, lambda: client.alive), folder, 2, told)


def test_what_is_lost_is_tried_again_as_another_attempt(tmp_path: Path) -> None:
    lost = [RuntimeError("KilledWorker"), -9, 1, StoreError("attempt 4 was made already"), 0]
    client, told = Tasks({2: [*lost]}), Told()
    run = engine(tmp_path, client, told)
    assert run.run()
    assert [part.code for part in run.parts] == [0, 0]
    assert client.attempts == [(1, 1), *((2, attempt) for attempt in range(1, 6))]
    assert told.lines[2:] == [
        f"part 2/2: {why}; it goes on from its {n}"
        for why, n in (
            ("its task was lost", "1 record"),
            ("its controller was killed", "2 records"),
            ("its campaign was lost", "3 records"),
            ("attempt 4 was made already", "4 records"),
        )
    ]
    assert told.lines[:2] == ["part 1/2: run 1: send=write", "part 2/2: run 1: send=write"]
    assert not is_stopped(tmp_path)


def test_attempts_that_add_nothing_are_given_up(tmp_path: Path) -> None:
    client, told = Tasks({1: [-9] * 10}, fruitful=False), Told()
    run = engine(tmp_path, client, told)
    assert run.run()
    assert [part.code for part in run.parts] == [1, 0]
    assert len(client.attempts) == FRUITLESS + 1
    assert told.lines[-1] == "part 1/2: its controller was killed, 3 times in a row: given up"


@pytest.mark.parametrize("outcome", [0, 1, 2, RequestError("another version")])
def test_what_has_ended_is_not_tried_again(tmp_path: Path, outcome: object) -> None:
    client = Tasks({0: ["done"], 1: [outcome]})
    run = engine(tmp_path, client, Told())
    assert run.run()
    assert client.attempts == [(1, 1), (2, 1)]
    assert run.parts[0].code == (2 if isinstance(outcome, RequestError) else outcome)


def test_an_interrupt_stops_all_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = engine(tmp_path, Tasks({1: [None], 2: [None]}), Told())

    def interrupt(seconds: float) -> None:
        if not is_stopped(tmp_path):
            raise KeyboardInterrupt
        for part in run.parts:
            assert part.future
            part.future.over = True  # type: ignore[attr-defined]

    monkeypatch.setattr(dask_engine.time, "sleep", interrupt)
    assert not run.run()
    assert is_stopped(tmp_path)


def test_a_scheduler_that_is_gone_ends_all_parts(tmp_path: Path) -> None:
    client, told = Tasks({1: [None]}), Told()
    client.alive = False
    run = engine(tmp_path, client, told)
    assert run.run()
    assert [(part.code, part.why) for part in run.parts] == [(1, dask_engine.GONE)] * 2
    assert told.lines[-1] == "the Dask scheduler is gone: all parts end"


def test_without_dask_the_extra_is_named(
    netbench: Command, small_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = netbench("run", small_file, "--engine", "dask", "--scheduler", "tls://here:1")
    assert done.returncode == 2
    assert "pip install distributed" in done.stderr
    assert netbench("run", small_file, "--parts", "2").returncode == 2


@pytest.mark.root
@pytest.mark.parametrize(("owner", "mode"), [(65534, 0o755), (0, 0o777)])
def test_parts_are_not_run_where_others_may_exchange_them(
    tmp_path: Path, owner: int, mode: int
) -> None:
    """Their campaign is found by its path, and may run commands as root."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, owner, -1)
    theirs.chmod(mode)
    ours = SimpleNamespace(text="netbench: 1\n")
    with pytest.raises(PlaceError, match=r"exchange .*choose another place with --results"):
        dask_engine._prepared(theirs / "c" / "1", ours)  # type: ignore[arg-type]
    theirs.chmod(0o1777)
    assert owner or dask_engine._prepared(theirs / "c" / "1", ours)  # type: ignore[arg-type]
    (tmp_path / "ours").mkdir()
    (theirs / "link").symlink_to(tmp_path / "ours")
    (theirs / "below").mkdir(exist_ok=True)
    (tmp_path / "link").symlink_to(theirs / "below")
    for link in (theirs / "link", tmp_path / "link"):
        with pytest.raises(PlaceError, match="may exchange it") if owner else nullcontext():
            dask_engine._prepared(link / "1", ours)  # type: ignore[arg-type]
