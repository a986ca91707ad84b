"""Kit of the tests of faults: small campaigns, and ways to do something to them while they run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from netbench import campaign
from netbench.run import conductor
from netbench.run.runner import Runner
from netbench.run.worker_pool import ChannelFactory, open_channel
from tests.support.local import call, netbench_argv, ran

BASE = "netbench: 1\nname: f\nverify: off\nrepeat: {min: 1, max: 1}\n"
SHORT = "duration: 100ms, warmup: 20ms, congestion: cubic"
TWO = f"transfer: {{{SHORT.replace('100ms', '700ms')}}}\nsweep: {{pin: [none, same]}}\n"
LONG = "netbench: 1\nname: d\nverify: off\ntransfer: {duration: 20ms, warmup: 2ms, sample: 2ms}\nrepeat: {min: 40, max: 40}\n"
POWERS = "-dac_override,-dac_read_search"  # what lets root pass the permissions of files


def run(text: str, results: Path, channels: ChannelFactory = open_channel) -> list[dict[str, Any]]:
    """The records of a campaign that begins with BASE."""
    return run_whole(BASE + text, results, channels)[1]


def run_whole(
    text: str, results: Path, channels: ChannelFactory = open_channel
) -> tuple[conductor.Conclusion, list[dict[str, Any]]]:
    """How a campaign ended, and its records."""
    conclusion = conductor.start(campaign.parse(text, "f.yaml"), results, channels=channels)
    return conclusion, stored_records(conclusion.path)


def stored_records(folder: Path) -> list[dict[str, Any]]:
    """The whole records of a result, as an outside program reads them."""
    lines = (folder / "records.jsonl").read_text().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def sabotage(
    monkeypatch: pytest.MonkeyPatch, action: Callable[[Runner], None], after: float
) -> None:
    """Do something to the workers some time into the first run."""
    honest, done = Runner._measure, list[threading.Timer]()

    def measure(self: Runner, *args: Any) -> Any:
        timer = threading.Timer(after, action, [self])
        if not done:
            done.append(timer)
            timer.start()
        return honest(self, *args)

    monkeypatch.setattr(Runner, "_measure", measure)


def worker_pid(runner: Runner, role: str) -> int:
    return runner._pool.worker("here", role).hello.pid


def as_anyone(argv: Sequence[str | Path]) -> list[str]:
    """A command line that the permissions of files bind, also where root runs the tests."""
    bound = (
        ["setpriv", f"--bounding-set={POWERS}", f"--inh-caps={POWERS}"] if os.geteuid() == 0 else []
    )
    return [*bound, *map(str, argv)]


def with_values(**values: float) -> list[str]:
    """A prefix of netbench's command line that sets constants, as `run__worker_pool__NAME=2`."""
    code = "import sys, importlib\n"
    for key, value in values.items():
        *module, name = key.split("__")
        code += f"setattr(importlib.import_module('netbench.{'.'.join(module)}'), {name!r}, {value!r})\n"
    code += "from netbench.__main__ import main; sys.exit(main(sys.argv[4:]))"
    return [sys.executable, "-c", code]


def process_state(pid: int) -> str:
    """As in proc_pid_stat(5): Z is a zombie, T is stopped; "": there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except OSError:
        return ""


def is_running(pid: int) -> bool:
    """Whether a process is there, and no zombie."""
    return process_state(pid) not in ("", "Z")


def waits_for_pipe(pid: int) -> bool:
    """Whether a thread of a process waits until a pipe has room."""
    tasks = Path(f"/proc/{pid}/task").glob("*/wchan")
    return any("pipe_w" in task.read_text() for task in tasks)  # pipe_write, pipe_wait_writable


def wait_for(
    condition: Callable[[], bool], alive: Callable[[], bool] = lambda: True, seconds: float = 60
) -> None:
    """Until a condition holds, while what should bring it about lives: it is looked for."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert alive(), "it ended before"
        assert time.monotonic() < deadline
        time.sleep(0.005)


class Started:
    """A campaign that was written into `folder`, with its results below `results`."""

    def __init__(self, folder: Path, results: Path, text: str) -> None:
        (folder / "d.yaml").write_text(text)
        self.results = results
        self.words: list[str | Path] = ["run", folder / "d.yaml", "--results", results]

    def records(self) -> list[dict[str, Any]]:
        """Its whole records."""
        # A folder that is being made begins with a dot.
        files = list(self.results.glob("*/[!.]*/records.jsonl"))
        return stored_records(files[0].parent) if files else []

    @property
    def folder(self) -> Path:
        """Its result folder."""
        (found,) = self.results.glob("*/*")
        return found


class Finished(Started):
    """A campaign that has run to its end, in this process."""

    def __init__(self, folder: Path, results: Path, text: str) -> None:
        super().__init__(folder, results, text)
        self._done = call(*self.words)

    def end(self) -> tuple[int, str]:
        """Its exit status, and what it said on standard error as one line."""
        return self._done.returncode, " ".join(self._done.stderr.split())


class Running(Started):
    """A campaign of 40 runs as a user starts it; ended with the test that began it."""

    def __init__(
        self,
        folder: Path,
        results: Path,
        text: str = LONG,
        prefix: Sequence[str] = (),
        start: Callable[[list[str]], subprocess.Popen[Any]] | None = None,
        **popen: Any,
    ) -> None:
        super().__init__(folder, results, text)
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | popen
        argv = [*prefix, *netbench_argv(self.words)]
        self.process = (
            start(argv) if start else subprocess.Popen(argv, cwd=folder, text=True, **streams)
        )

    def await_records(self, number: int) -> None:
        """Wait until it has so many more records."""
        number += len(self.records())
        wait_for(lambda: len(self.records()) >= number or self.process.poll() is not None)
        assert len(self.records()) >= number, self.end()

    def workers(self, role: str = "") -> list[int]:
        """The pids of its workers, or of those in a role: mover or helper."""
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [int(c) for c in children if role in Path(f"/proc/{c}/cmdline").read_text()]

    def end(self) -> tuple[int, str]:
        """Its exit status, and what it said on standard error as one line."""
        _, err = self.process.communicate(timeout=60)
        return self.process.returncode, " ".join((err or "").split())


def resumed(folder: Path, env: Mapping[str, str] | None = None) -> list[int]:
    """The runs of a result after `resume` has ended it; with `env` in a process of its own."""
    if env is None:
        done = call("resume", folder)
    else:
        done = ran(netbench_argv(["resume", folder]), env=env)
    assert done.returncode == 0, done.stderr
    return [record["run"] for record in stored_records(folder)]
