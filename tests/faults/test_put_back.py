"""What `restore` and a replaced worker put back: what outlives a boot, shown modules."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from unittest.mock import Mock, create_autospec

import pytest

from netbench.base.errors import EngineError, HostBusy, NetbenchError, RequestError, WorkerLost
from netbench.engine.worker import Worker
from netbench.hosts.local import LocalChannel, LocalProcess
from netbench.kernels.boot.machine import Machine
from netbench.model import Host
from netbench.result.journal import Change, Restored
from netbench.run import single_meter
from netbench.run.restore import attempt
from netbench.settings.put_back import There, put_back
from tests.support.engine_pair import HELPER
from tests.support.running import process_state, wait_for
from tests.support.this_machine import ThisMachine

pytestmark = pytest.mark.root


@pytest.fixture
def helper() -> Iterator[Worker]:
    opened = Worker(LocalChannel("here").start_helper(), "here")
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("reads", "said"),
    [
        ("changed", "undone by "),
        ("original", "gone, the host was booted since"),
        ("other", "left as it is, as the host was booted since: it reads 'other'"),
    ],
)
def test_after_a_reboot_what_a_program_changed_is_compared_and_undone(
    tmp_path: Path, helper: Worker, reads: str, said: str
) -> None:
    """As a command: of a campaign that writes a file below /etc/sysctl.d."""
    file = tmp_path / "file"
    file.write_text(f"{reads}\n")
    did, undo = (("sh", "-c", f"echo {word} > {file}") for word in ("changed", "original"))
    mine = ("mine", "exec", did, "changed", "original\n", undo, ("cat", str(file)))
    change = Change(1, "here", "another boot", *mine)
    written, lines = list[Restored](), list[str]()
    there = {"here": There(helper, helper.hello.boot_id)}
    with pytest.raises(EngineError, match="look at it") if reads == "other" else nullcontext():
        lines.extend(put_back(there, [change], written.append))
    assert said in lines[0]
    assert file.read_text() == ("other\n" if reads == "other" else "original\n")
    assert written == [Restored((1,), "here")]


def test_after_a_reboot_what_the_kernel_held_is_gone(helper: Worker) -> None:
    change = Change(1, "here", "another boot", "sysctl.x", "file", ("/proc/sys/x",), "1", "0")
    (line,) = put_back({"here": There(helper, helper.hello.boot_id)}, [change], lambda _: None)
    assert line.endswith("gone, the host was booted since")


def test_a_host_that_is_in_use_keeps_no_other_from_being_put_back() -> None:
    failed: list[NetbenchError] = []
    busy, other = Mock(side_effect=HostBusy("h1: in use")), Mock()
    attempt([busy, other], failed)
    assert (list(map(str, failed)), other.called) == (["h1: in use"], True)


@pytest.mark.parametrize("theirs", [True, False], ids=["mount", "link"])
def test_modules_are_journalled_before_they_are_shown_and_can_be_hidden_again(
    tmp_path: Path, helper: Worker, theirs: bool
) -> None:
    """A controller that dies in between leaves them, and the next one knows where."""
    modules, place = tmp_path / "modules", tmp_path / "place"
    modules.mkdir()
    (modules / "modules.dep").touch()
    if theirs:
        place.mkdir()
    noted: list[tuple[str, bool, bool, bool]] = []

    def note(where: str, mounted: bool, shown: bool) -> None:
        noted.append((where, mounted, shown, (place / "modules.dep").exists()))

    machine = Machine(Host("here"), ThisMachine("here"), lambda: helper, note)
    left = machine.showing_modules(str(modules), str(place))
    left.__enter__()
    assert (place / "modules.dep").exists()
    assert noted == [(str(place), theirs, True, False)], "before it is made"
    assert machine.hide_modules(str(place), theirs), "what a dead controller left"
    assert noted[1:] == [(str(place), theirs, False, False)]
    assert place.exists() == theirs
    assert not machine.hide_modules(str(place), theirs), "nothing is left"


@pytest.mark.parametrize("stopped", [True, False])
def test_a_worker_that_is_stopped_is_ended_by_its_successor(stopped: bool) -> None:
    """One that runs leaves by itself: it may still undo."""
    before = Worker(LocalProcess(HELPER), "here")
    successor = Worker(LocalProcess(HELPER), "here")
    pid = before.hello.pid
    if stopped:
        os.kill(pid, signal.SIGSTOP)
        wait_for(lambda: successor.operate("worker", str(pid))[0] == "stopped\n")
    else:
        with pytest.raises(EngineError, match=f"process {pid} is not stopped"):
            successor.operate("worker", str(pid), "ended")
    successor.end_stopped(pid)
    assert (process_state(pid) == "Z") == stopped
    assert successor.operate("worker", str(os.getpid()))[0] == "ended\n", "no worker at all"
    before.close()
    successor.close()


@pytest.mark.parametrize("seconds", [1e-4, 1e6, float("nan")])
def test_a_time_that_no_meter_can_measure_is_refused(seconds: float) -> None:
    with pytest.raises(RequestError, match=r"--seconds .*: expected 0.001 \(1 ms\) to a day"):
        single_meter.read_meter("procstat", seconds)


def test_what_a_command_started_ends_with_its_helper_while_the_command_runs(
    tmp_path: Path, helper: Worker
) -> None:
    """It would go on changing the host after `restore` had looked. What an ended one left stays."""
    daemon, child = int(helper.operate("exec", ["sh", "-c", "sleep 1000 & echo $!"])[0]), 0
    began = tmp_path / "began"
    script = f"setsid sh -c 'echo $$ > {began}.new; mv {began}.new {began}; exec sleep 1000'; true"

    def ask() -> None:
        with suppress(WorkerLost):
            helper.operate("exec", ["sh", "-c", script])

    asked = threading.Thread(target=ask)
    asked.start()
    try:
        wait_for(began.exists, asked.is_alive)
        child = int(began.read_text())
        os.kill(helper.hello.pid, signal.SIGKILL)
        wait_for(lambda: not Path(f"/proc/{child}").exists())
        assert Path(f"/proc/{daemon}").exists()
    finally:
        for left in filter(None, (daemon, child)):
            with suppress(ProcessLookupError):
                os.kill(left, signal.SIGKILL)
        asked.join()


def test_what_somebody_else_has_set_since_is_told(helper: Worker) -> None:
    file, there = Path("/proc/sys/net/ipv4/tcp_fin_timeout"), There(helper, helper.hello.boot_id)
    change = Change(1, "here", there.boot_id, "fin", "file", (str(file),), "30", file.read_text())
    file.write_text("31")
    (told,) = put_back({"here": there}, [change], lambda _: None)
    assert (told[-36:], file.read_text()) == ("back; it read '31', not what was set", change.before)


def test_a_mounts_folder_goes_where_nothing_is_mounted_any_more() -> None:
    """As where a helper is killed between umount(8) and rmdir(2)."""
    change = Change(1, "here", "boot", "nfs", "mount", ("/run/x",), "h:/srv on", "none\n")
    worker = create_autospec(Worker, instance=True)
    worker.operate.side_effect = [("none\n", None), ("none\n", "none\n")]
    assert list(put_back({"here": There(worker, "boot")}, [change], lambda _: None)) == [
        f"here: {change}: put back"
    ]
    worker.operate.assert_called_with("mount", ("/run/x",), "none\n", restore=True)
