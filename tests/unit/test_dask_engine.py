"""What the engine of parts makes of what Dask says, without Dask."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from netbench.base.errors import PlaceError, RequestError, StoreError
from netbench.fleet import dask_engine
from netbench.fleet.dask_engine import FRUITLESS, Places, _Engine
from netbench.fleet.part_task import PROGRESS, RUN, PartTask, is_stopped, write_state
from netbench.result.journal import Ended, Journal
from tests.support.local import Command


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

    def result(self, timeout: float) -> object:
        if isinstance(self._outcome, BaseException):
            raise self._outcome
        return self._outcome


class Tasks:
    """Gives each attempt of each part its outcome; by default it is done. An attempt of a part that
    is `fruitful` adds a record.
    """

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
    client = Tasks({1: [None], 2: [None]})
    run = engine(tmp_path, client, Told())

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
    assert [part.code for part in run.parts] == [1, 1]
    assert told.lines[-1] == "the Dask scheduler is gone: all parts end"


def test_without_dask_the_extra_is_named(
    netbench: Command, small_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = netbench("run", small_file, "--engine", "dask", "--scheduler", "tls://here:1")
    assert done.returncode == 2
    assert "pip install 'netbench[dask]'" in done.stderr
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
