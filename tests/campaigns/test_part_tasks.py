"""A part as an engine's task: killed, it goes on from its records, and never twice at once."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from netbench.base.errors import RequestError, StoreError
from netbench.fleet import part_task
from netbench.fleet.part_task import CAMPAIGN, RUN, STOP, PartTask, is_leased, run_part, write_state
from tests.support.local import call, netbench_argv
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
        fcntl.flock(lease, fcntl.LOCK_EX)
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
    files = Path(f"/proc/{controller(task)}/fd").iterdir()
    assert str(lease) in {os.readlink(file) for file in files}
    os.kill(controller(task), signal.SIGKILL)
    assert running.end() == -signal.SIGKILL
    assert not is_leased(task.own)


def test_another_version_of_netbench_is_refused(task: PartTask) -> None:
    with pytest.raises(RequestError, match="install the same version"):
        run_part(replace(task, version="0.0.0"))


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
