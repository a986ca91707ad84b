"""What hangs: a sink that takes nothing more, a tool that never ends. Undo waits for none."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from netbench.base.errors import WorkerLost
from netbench.engine.worker import Worker
from netbench.result.store import Store
from netbench.run import external_tool, ledger, transfer
from netbench.run.host_locks import LOCK_SECONDS
from netbench.run.runner import Runner
from netbench.run.transfer import SLACK_SECONDS, exchange
from tests.support.engine_pair import Pair, open_pair
from tests.support.local import call
from tests.support.running import (
    Finished,
    Running,
    is_running,
    wait_for,
    waits_for_pipe,
    with_values,
    worker_pid,
)

pytestmark = pytest.mark.root

SYSCTL = Path("/proc/sys/net/ipv4/tcp_sack")
SOON_SECONDS = 30.0  # for what ends "within seconds", on a machine that others use
PORT = 17391
# of netbench: a cell is given up after its first failure, which is soon
HASTY = {"run__transfer__SLACK_SECONDS": 1.0, "run__ledger__FAILURES_IN_A_ROW": 1}
HASTY |= {"run__transfer__VERIFY_SECONDS": 1.0, "run__transfer__SLOWEST": 10**9}
HEAD = "netbench: 1\nname: s\nrepeat: {min: 1, max: 1}\nsettings: {sysctl.net.ipv4.tcp_sack: 0}\n"


@pytest.fixture
def stuck(tmp_path: Path) -> Iterator[str]:
    """A transfer that soon moves nothing more, and never ends by itself."""
    os.mkfifo(tmp_path / "pipe")
    keeper = os.open(tmp_path / "pipe", os.O_RDWR)  # else the first reader that leaves ends it
    sink = f"sink: {{file: {tmp_path / 'pipe'}, overwrite: true}}, port: {PORT}"
    yield f"verify: off\ntransfer: {{{sink}, duration: 10m, warmup: 0s, congestion: cubic}}\n"
    os.close(keeper)


def held() -> bool:
    return SYSCTL.read_text() == "0\n"


def listens() -> bool:
    return bool(subprocess.check_output(["ss", "-Hltn", f"sport = :{PORT}"]))


def begin(folder: Path, text: str, prefix: list[str] | None = None) -> Running:
    """Start a campaign and wait until a flow of it hangs."""
    assert not held()
    campaign = Running(folder, folder / "r", HEAD + text, prefix or ())
    wait_for(
        lambda: any(map(waits_for_pipe, campaign.workers())),
        lambda: campaign.process.poll() is None,
    )
    assert held()
    assert listens()
    return campaign


def end(campaign: Running, workers: list[int]) -> None:
    campaign.process.kill()
    campaign.process.communicate()
    for pid in workers:
        if Path(f"/proc/{pid}").exists():
            os.kill(pid, signal.SIGKILL)
    if held():
        SYSCTL.write_text("1\n")


@pytest.mark.parametrize(
    ("who", "number"), [("controller", signal.SIGKILL), ("workers", signal.SIGTERM)]
)
def test_undo_waits_for_no_flow(
    tmp_path: Path, stuck: str, who: str, number: signal.Signals
) -> None:
    campaign = begin(tmp_path, stuck)
    workers = campaign.workers()
    try:
        if who == "workers":
            os.kill(campaign.process.pid, signal.SIGSTOP)  # it would apply the settings anew
        for pid in [campaign.process.pid] if who == "controller" else workers:
            os.kill(pid, number)
        wait_for(lambda: not held(), seconds=30)
        wait_for(lambda: not listens(), seconds=SOON_SECONDS)
        wait_for(lambda: not any(map(is_running, workers)), seconds=SOON_SECONDS)
    finally:
        end(campaign, workers)


@pytest.mark.parametrize("how", ["limit", "interrupt"])
def test_a_run_that_hangs_ends_with_the_limit_and_with_the_first_interrupt(
    tmp_path: Path, stuck: str, how: str
) -> None:
    campaign = begin(tmp_path, stuck + ("limit: 5s\n" if how == "limit" else ""))
    workers = campaign.workers()
    try:
        if how == "interrupt":
            campaign.process.send_signal(signal.SIGINT)
        began = time.monotonic()
        code, said = campaign.end()
        assert time.monotonic() - began < SOON_SECONDS + (5 if how == "limit" else 0)
        assert code == (0 if how == "limit" else 130), said
        assert not held()
        assert not listens()
        assert not any(map(is_running, workers))
        (record,) = campaign.records()
        reason = "the campaign's limit is reached" if how == "limit" else "interrupted from the"
        assert record["status"] == "interrupted"
        assert record["reason"].startswith(reason)
        journal = Store.open(campaign.folder).journal
        assert journal.ended() == ("limit" if how == "limit" else "interrupted")
        assert journal.outstanding("here") == []
    finally:
        end(campaign, workers)


@pytest.mark.parametrize("verify", ["off", "on"])
def test_a_run_that_hangs_fails_and_the_next_cell_has_its_settings(
    tmp_path: Path, stuck: str, verify: str
) -> None:
    """The worker whose flow hangs leaves, and another one applies the settings anew."""
    text = stuck.replace("10m", "200ms").replace("verify: off", f"verify: {verify}")
    campaign = begin(tmp_path, text + "sweep: {pin: [none, same]}\n", with_values(**HASTY))
    code, said = campaign.end()
    assert code == 1, said
    assert [record["status"] for record in campaign.records()] == ["failed", "failed"]
    for record in campaign.records() if verify == "off" else ():
        asked = record["settings"]["sender"]["sysctl.net.ipv4.tcp_sack"]
        assert (asked["asked"], asked["read"]) == ("0", "0")
    assert not held()


@pytest.mark.parametrize(
    ("where", "what", "role"),
    [(Runner, "_measure", ""), (transfer, "verify", ""), (transfer, "verify", "sender")],
)
def test_what_fails_because_a_worker_was_lost_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: Any, what: str, role: str
) -> None:
    """A mover, or a helper (""). Half of the settings are gone with that."""
    honest, step, runners = getattr(where, what), Runner._step, list[Runner]()

    def seen(self: Runner, *words: Any) -> None:
        runners.append(self)
        step(self, *words)

    def fail(*words: Any) -> Any:
        monkeypatch.setattr(where, what, honest)
        runner = runners[-1]
        pid = worker_pid(runner, role) if role else runner._pool.holder("here").hello.pid
        os.kill(pid, signal.SIGTERM)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        if role:
            return honest(*words)
        raise TimeoutError("no answer in time")

    monkeypatch.setattr(Runner, "_step", seen)
    monkeypatch.setattr(where, what, fail)
    text = HEAD.replace("verify: off", "verify: true")
    text += "transfer: {duration: 20ms, warmup: 0s, congestion: cubic}\n"
    campaign = Finished(tmp_path, tmp_path / "r", text)
    code, said = campaign.end()
    assert code == 0, said
    records = campaign.records()
    wanted = ["interrupted", "ok"] if what == "_measure" else ["ok"]
    assert [record["status"] for record in records] == wanted
    assert not held()


def test_what_lost_workers_held_is_put_back_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last attempt loses its worker too: the journal knows what that held."""
    honest = Runner._measure

    def measure(self: Runner, *arguments: Any) -> Any:
        os.kill(self._pool.holder("here").hello.pid, signal.SIGKILL)
        return honest(self, *arguments)

    monkeypatch.setattr(Runner, "_measure", measure)
    text = HEAD + "transfer: {duration: 1s, warmup: 0s, congestion: cubic}\n"
    campaign = Finished(tmp_path, tmp_path / "r", text)
    code, said = campaign.end()
    assert code == 1, said
    assert "3 times in a row" in said
    assert [record["status"] for record in campaign.records()] == ["interrupted"] * 3
    assert not held()
    assert Store.open(campaign.folder).journal.outstanding("here") == []


# the second stops the worker's process that ends it
@pytest.mark.parametrize("first", ["", "kill -STOP $PPID;"])
def test_a_tool_that_never_ends_fails_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(external_tool, "SLACK_SECONDS", 1.0)
    monkeypatch.setattr(ledger, "FAILURES_IN_A_ROW", 1)
    said = f"echo $$ > pids; {first} sleep 1000"
    tool = f"tool: {{argv: [sh, -c, '{said}'], pattern: '(?P<rate>x)'}}"
    text = HEAD + f"transfer: {{{tool}, duration: 1s, warmup: 0s, congestion: cubic}}\n"
    began = time.monotonic()
    campaign = Finished(tmp_path, tmp_path / "r", text)
    code, said = campaign.end()
    assert code == 1, said
    assert {record["status"] for record in campaign.records()} == {"failed"}
    assert "has not ended within" in campaign.records()[0]["reason"]
    assert time.monotonic() - began < 60
    pid = int((tmp_path / "pids").read_text())
    wait_for(lambda: not is_running(pid), seconds=SOON_SECONDS)


def test_a_tool_ends_with_its_worker_although_what_ends_it_is_stopped(tmp_path: Path) -> None:
    first = "echo $$ $PPID > pids; kill -STOP $PPID; kill -KILL $(ps -o ppid= $PPID)"
    tool = f"tool: {{argv: [sh, -c, '{first}; sleep 1000'], pattern: '(?P<rate>x)'}}"
    text = HEAD + f"transfer: {{{tool}, duration: 1s, warmup: 0s, congestion: cubic}}\n"
    assert Running(tmp_path, tmp_path / "r", text).end()[0] == 1
    pids = (tmp_path / "pids").read_text().split()
    wait_for(lambda: not any(is_running(int(pid)) for pid in pids), seconds=SOON_SECONDS)


@pytest.mark.parametrize("verb", ["resume", "restore"])
def test_workers_that_stay_stopped_after_their_controller_died_are_ended(
    tmp_path: Path, verb: str
) -> None:
    """A new controller knows their pids by the lock, and what they hold by the journal."""
    text = HEAD + "transfer: {duration: 1s, warmup: 0s, congestion: cubic}\n"
    campaign = Running(tmp_path, tmp_path / "r", text)
    wait_for(held, lambda: campaign.process.poll() is None)
    workers = campaign.workers()
    try:
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)
        campaign.process.kill()
        campaign.process.communicate()
        begun = time.monotonic()
        said = call(verb, campaign.folder)
        assert said.returncode == 0, said.stderr
        assert time.monotonic() - begun < LOCK_SECONDS, "the lock was not waited for"
        assert not held()
    finally:
        end(campaign, workers)


# Each takes as long as a worker may be silent.
SLOW = (("prepared", "sender", True), ("the end", "receiver", True), ("go", "sender", False))
STOPPED = [
    ("go", "receiver", False),
    *(pytest.param(*each, marks=pytest.mark.slow) for each in SLOW),
]


def exchanged(pair: Pair, prepared: Callable[..., object], **bound: int) -> None:
    """One run, with something to do once both sides are prepared."""
    common = {"token": os.urandom(16), "streams": 1, "address": "127.0.0.1", **bound}
    sent = {**common, "role": "send", "method": "write", "chunk": 65536}
    received = {**common, "role": "receive", "method": "read", "receive_chunk": 65536}
    exchange(pair.sender, pair.receiver, sent, received, prepared=prepared)


@pytest.mark.parametrize(("instant", "side", "bounded"), STOPPED)
def test_a_run_with_a_stopped_side_is_lost_and_has_not_failed(
    side: str, instant: str, bounded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The side that lives cannot connect, or waits for the other: a consequence, and soon."""
    with open_pair() as pair:
        stopped: Worker = getattr(pair, side)
        pid = stopped.hello.pid

        def stop(*_: object) -> None:
            os.kill(pid, signal.SIGSTOP)

        if instant != "prepared":
            last = "result" if bounded else "stop"
            named = last if instant == "the end" else "await_edge"
            honest = getattr(pair.sender, named)
            monkeypatch.setattr(pair.sender, named, lambda *words: (stop(), honest(*words))[1])
        prepared = stop if instant == "prepared" else lambda _: None
        began = time.monotonic()
        try:
            with pytest.raises(WorkerLost, match=f"{side}: the worker (is gone: it fell|do)"):
                exchanged(pair, prepared, **{"bytes": 10**11} if bounded else {"duration": 10**8})
        finally:
            with suppress(ProcessLookupError):  # that it is given up has killed it
                os.kill(pid, signal.SIGKILL)
        assert time.monotonic() - began < SLACK_SECONDS
        assert stopped.lost
        assert not {pair.sender, pair.receiver}.difference({stopped}).pop().lost


def test_a_receiver_that_dies_before_the_sender_connects_is_lost() -> None:
    """That its port refuses the connection is a consequence."""
    with open_pair() as pair:

        def kill(*_: object) -> None:
            pid = pair.receiver.hello.pid
            os.kill(pid, signal.SIGKILL)
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)

        with pytest.raises(WorkerLost, match="receiver: the worker is gone"):
            exchanged(pair, kill, duration=10**8)
        assert not pair.sender.lost
