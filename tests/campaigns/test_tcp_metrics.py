"""What TCP learns in one run is not handed to the next; seen by `ip tcp_metrics`."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netbench import campaign
from netbench.base.errors import EngineError
from netbench.engine.worker import Worker
from netbench.hosts.local import LocalChannel
from netbench.plan.plan import Plan
from netbench.result.journal import Journal
from netbench.run import conductor
from netbench.run.held_settings import HeldSettings
from netbench.run.host_locks import HostLocks
from netbench.run.runner import Runner
from netbench.run.worker_pool import WorkerPool
from tests.support.local import call, out
from tests.support.running import stored_records, wait_for

pytestmark = [pytest.mark.root, pytest.mark.netns]

NO_SAVE = Path("/proc/sys/net/ipv4/tcp_no_metrics_save")
PLAIN = """\
netbench: 1
name: plain
hosts: {here: local}
transfer: {duration: 40ms, warmup: 5ms, congestion: cubic}
repeat: {min: 2, max: 2}
"""


def learnt() -> list[str]:
    """The addresses of which TCP has learnt something, as iproute2 shows them."""
    return [line.split()[0] for line in out("ip", "tcp_metrics", "show").splitlines()]


def connect() -> None:
    """A connection over loopback that moves some data, and is closed."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        far, _ = server.accept()
        near.sendall(bytes(20_000))
        near.shutdown(socket.SHUT_WR)
        while far.recv(65536):
            pass
        far.close()
        near.recv(1)
        near.close()


@pytest.fixture(autouse=True)
def learning() -> Iterator[None]:
    """A namespace whose kernel saves, and has learnt something of the loopback's address alone."""
    was = NO_SAVE.read_text()
    NO_SAVE.write_text("0")
    subprocess.run(["ip", "tcp_metrics", "flush"], check=True)
    connect()
    assert learnt() == ["127.0.0.1"]
    yield
    NO_SAVE.write_text(was)
    subprocess.run(["ip", "tcp_metrics", "flush"], check=True)


def facts(path: Path) -> dict[str, Any]:
    return dict(json.loads((path / "facts.json").read_text())["hosts"]["here"][-1])


def start(text: str, results: Path) -> Path:
    conclusion = conductor.start(campaign.parse(text, "plain.yaml"), results)
    assert (conclusion.why, conclusion.failed) == ("done", False)
    return conclusion.path


def test_no_run_inherits_what_the_one_before_has_learnt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, list[str]]] = []
    honest = Runner._measure

    def measure(self: Runner, *args: Any) -> Any:
        seen.append((NO_SAVE.read_text(), learnt()))
        return honest(self, *args)

    monkeypatch.setattr(Runner, "_measure", measure)
    path = start(PLAIN, tmp_path)
    assert set(map(str, seen)) == {str(("1\n", []))}, "before the verification and each run"
    assert (NO_SAVE.read_text(), learnt()) == ("0\n", []), "nothing was saved by a run either"
    known = facts(path)
    assert known["facts"]["tcp_no_metrics_save"] == "1"
    assert known["facts"]["tcp_metrics"] == "none"
    assert "not_held" not in known
    assert all("tcp_metrics" not in str(record["settings"]) for record in stored_records(path))
    assert "tcp_metrics]" not in call("report", "--full", path).stdout


def test_a_campaign_can_keep_what_tcp_learns_and_sweep_it(tmp_path: Path) -> None:
    """And the kernel then hands it on: the entry is there after the runs."""
    path = start(f"{PLAIN}settings: {{tcp_metrics: keep}}\n", tmp_path)
    assert learnt() == ["127.0.0.1"]
    assert '"change"' not in (path / "journal.jsonl").read_text(), "it was so before"
    assert facts(path)["facts"]["tcp_no_metrics_save"] == "0"
    assert "tcp_metrics]" not in call("report", "--full", path).stdout, "it was asked for"
    path = start(f"{PLAIN}sweep: {{tcp_metrics: [drop, keep]}}\n", tmp_path)
    for record in stored_records(path):
        level = record["factors"]["tcp_metrics"]
        noted = record["settings"]["sender"]["tcp_metrics"]
        assert (record["status"], noted["read"]) == ("ok", level), record
    assert NO_SAVE.read_text() == "0\n"


def test_a_helper_that_is_lost_is_replaced_and_holds_it_again() -> None:
    plain = campaign.parse(PLAIN, "plain.yaml")
    with WorkerPool(plain) as pool:
        pool.start_all()
        held = HeldSettings(plain, pool, HostLocks(plain, pool, "plain/result"), Journal())
        held.claim()
        lost = pool.helper("here")
        pool.dismiss("here", "helper")
        wait_for(lambda: NO_SAVE.read_text() == "0\n")  # it has undone what it held
        connect()
        held.renew(*Plan(plain).units)
        assert pool.helper("here") is not lost
        assert (NO_SAVE.read_text(), learnt()) == ("1\n", [])
        held.restore()
        assert NO_SAVE.read_text() == "0\n"


def test_hosts_of_one_kernel_take_turns_and_the_first_puts_back_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two at the same time would both find what came before, or one what the other has set."""
    three = PLAIN.replace("{here: local}", "{a: local, b: local, c: local}")
    pairs = ", ".join(f"{{sender: {a}, receiver: {b}}}" for a, b in ("ab", "ac", "cb"))
    plain = campaign.parse(f"{three}pairs: [{pairs}]\n", "plain.yaml")
    inside = threading.Semaphore()
    honest = HeldSettings._hold_own

    def alone(self: HeldSettings, *args: Any) -> None:
        assert inside.acquire(blocking=False), "another host is being claimed"
        honest(self, *args)
        inside.release()

    monkeypatch.setattr(HeldSettings, "_hold_own", alone)
    with WorkerPool(plain) as pool:
        pool.start_all()
        held = HeldSettings(plain, pool, HostLocks(plain, pool, "plain/result"), Journal())
        held.claim()
        assert NO_SAVE.read_text() == "1\n"
        held.restore()
    assert NO_SAVE.read_text() == "0\n"


def test_the_operation_counts_what_other_tools_show() -> None:
    worker = Worker(LocalChannel("here").start_mover(), "here")
    assert worker.operate("tcp_metrics", "addresses")[0] == "1\n"
    with pytest.raises(EngineError, match="a mover does not change the host"):
        worker.operate("tcp_metrics", "addresses", "none")
    worker.close()
    worker = Worker(LocalChannel("here").start_helper(), "here")
    for target, value, why in (
        ("addresses", "some", "TCP can only be made to forget"),
        ("127.0.0.1", "none", "write addresses"),
    ):
        with pytest.raises(EngineError, match=why):
            worker.operate("tcp_metrics", target, value)
    assert learnt() == ["127.0.0.1"]
    assert worker.operate("tcp_metrics", "addresses", "none") == ("1\n", "none\n")
    assert learnt() == []
    worker.close()
