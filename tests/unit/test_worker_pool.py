"""Waiting for hosts that are lost."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter

import pytest

from netbench import campaign
from netbench.base.errors import HostError, HostGone
from netbench.hosts.host_channel import Channel
from netbench.hosts.local import LocalChannel, LocalProcess
from netbench.model import Host
from netbench.run import worker_pool
from netbench.run.worker_pool import WorkerPool
from tests.unit.conftest import PAIRS, Pressing


def test_hosts_that_are_lost_one_after_another_are_waited_for_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Until something is done again: then the next one that is lost is waited for anew."""
    monkeypatch.setattr(worker_pool, "RECONNECT_SECONDS", 0.1)
    monkeypatch.setattr(worker_pool, "RECONNECT_PAUSE", 0.01)
    tried = Counter[str]()

    def silent(host: Host) -> Channel:
        tried[host.name] += 1
        raise HostError(f"{host.name}: no answer")

    with WorkerPool(campaign.parse(PAIRS, "p.yaml"), silent) as pool:

        def wait_for(host: str, role: str) -> int:
            pool.dismiss(host, role)
            with pytest.raises(HostGone, match="no lost host was back within 0 s"):
                pool.worker(host, role)
            return tried[host]

        assert wait_for("a", "sender") > 1
        assert (wait_for("b", "receiver"), wait_for("c", "sender")) == (1, 1)
        pool.reached()
        assert wait_for("d", "receiver") > 1


def test_each_lost_worker_of_a_host_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first may come back by a connection that dies before the second."""
    monkeypatch.setattr(worker_pool, "RECONNECT_PAUSE", 0.01)
    starts = list[str]()

    class Dying(LocalChannel):
        def start_mover(self, run_as: str = "") -> LocalProcess:
            starts.append(run_as)
            if len(starts) == 4:
                raise HostError("the connection is lost")
            return super().start_mover(run_as)

    one = "netbench: 1\nname: o\nhosts: {here: local}\n"
    roles = ("sender", "receiver")
    with WorkerPool(campaign.parse(one, "o.yaml"), lambda host: Dying(host.name)) as pool:
        before = [pool.worker("here", role) for role in roles]
        for role in roles:
            pool.dismiss("here", role)
        after = [pool.worker("here", role) for role in roles]
        assert not set(before) & set(after)
        assert len(starts) == 5


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_is_not_held_up_by_what_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "INTERRUPT_SECONDS", 0.1)
    never, once, ended = threading.Event(), threading.Lock(), list[str]()

    def act(host: str) -> None:
        if once.acquire(blocking=False):
            os.kill(os.getpid(), signal.SIGINT)
        never.wait(60)
        ended.append(host)

    with WorkerPool(campaign.parse(PAIRS, "p.yaml")) as pool, pytest.raises(KeyboardInterrupt):
        pool.each(act)
    assert ended == []
    never.set()


def test_an_interrupt_while_a_worker_is_started_is_one_of_that_worker_too() -> None:
    """Else a run that begins on it would outlast the campaign's limit."""

    class Interrupting(LocalChannel):
        def start_mover(self, run_as: str = "") -> LocalProcess:
            started = super().start_mover(run_as)
            pool.interrupt()
            return started

    one = "netbench: 1\nname: o\nhosts: {here: local}\n"
    with WorkerPool(campaign.parse(one, "o.yaml"), lambda host: Interrupting(host.name)) as pool:
        worker = pool.worker("here", "sender")
        with pytest.raises(KeyboardInterrupt):
            worker.connection.next_frame(time.monotonic() + 2)


def test_an_interrupt_while_threads_are_started_waits_for_what_they_do(
    pressing: Pressing,
) -> None:
    """Two threads that read from one worker would take each other's answers."""
    done = list[str]()
    never = threading.Event()

    def act(host: str) -> None:
        never.wait(0.1)
        done.append(host)

    with WorkerPool(campaign.parse(PAIRS, "p.yaml")) as pool:
        with pressing(), pytest.raises(KeyboardInterrupt):
            pool.each(act)
        assert sorted(done) == ["a", "b", "c", "d"]
