"""Who may use a host: campaigns that follow each other, and hosts that are one machine."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest

from netbench import campaign
from netbench.base.errors import HostBusy
from netbench.engine.worker import Worker
from netbench.model import Campaign
from netbench.plan.plan import Unit
from netbench.result.journal import Journal
from netbench.run import host_locks
from netbench.run.held_settings import HeldSettings
from netbench.run.host_locks import HostLocks
from netbench.run.worker_pool import WorkerPool

TEXT = """\
netbench: 1
name: locks
hosts: {snd: local, rcv: local}
transfer: {duration: 60ms, warmup: 20ms}
settings: {sysctl.net.ipv4.tcp_sack: 1}
"""


@pytest.fixture
def two() -> Campaign:
    """Two hosts of a campaign, which are this one."""
    return campaign.parse(TEXT, "locks.yaml")


def held(
    two: Campaign,
    pool: WorkerPool,
    result: str = "locks/result",
    say: Callable[[str], None] = lambda line: None,
) -> HeldSettings:
    return HeldSettings(two, pool, HostLocks(two, pool, result, say), Journal())


def refused(two: Campaign) -> None:
    """Another campaign does not get the hosts."""
    why = "the campaign locks/result is using this host"
    with WorkerPool(two) as other, pytest.raises(HostBusy, match=why):
        held(two, other, "other/result").claim()


def test_hosts_that_are_one_machine_outlive_the_loss_of_their_workers(two: Campaign) -> None:
    with WorkerPool(two) as pool:
        ours = held(two, pool)
        ours.claim()
        for lost in (("snd", "rcv"), ("snd",), ("rcv",)):
            for host in lost:
                pool.dismiss_holder(host)
                pool.dismiss(host, "sender" if host == "snd" else "receiver")
            if len(lost) == 1:
                refused(two)  # the other one's have it as well
            ours.claim()
        refused(two)


def test_a_worker_that_is_new_locks_its_host_whatever_it_sets(two: Campaign) -> None:
    nothing = campaign.parse(TEXT.partition("settings")[0], "locks.yaml")
    with WorkerPool(nothing) as pool, WorkerPool(two) as other:
        ours, unit = held(nothing, pool), cast(Unit, SimpleNamespace(pair=nothing.pairs[0]))
        ours.claim()
        for host, role in (("snd", "sender"), ("rcv", "receiver")):
            pool.dismiss_holder(host)
            pool.dismiss(host, role)
        held(two, other, "other/result").claim()
        for act in (lambda: ours.renew(unit), lambda: ours._look("snd")):
            with pytest.raises(HostBusy, match="the campaign other/result is using this host"):
                act()


def test_a_controller_waits_for_the_worker_of_the_one_before_and_then_holds_the_lock(
    two: Campaign,
) -> None:
    """Of the same result: what its worker still puts back would undo what is set now."""
    order: list[str] = []
    with WorkerPool(two) as later:
        ours = held(two, later)
        with WorkerPool(two) as earlier:
            held(two, earlier).claim()
            later.start_all()

            def claim() -> None:
                ours.claim()
                order.append("later one has it")

            waiting = threading.Thread(target=claim)
            waiting.start()
            waiting.join(0.3)
            order.append("earlier one leaves")
        waiting.join()
        assert order == ["earlier one leaves", "later one has it"]
        refused(two)


def test_a_lock_that_is_released_after_it_was_refused_is_taken(
    two: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever had it has left when its name is looked for."""
    honest = host_locks.lock_holders
    with WorkerPool(two) as ours, WorkerPool(two) as theirs:
        held(two, theirs, "other/result").claim()
        leaves = ["snd", "rcv"]

        def look(worker: Worker, scope: str) -> tuple[str, list[int]]:
            while leaves:
                host = leaves.pop()
                theirs.dismiss_holder(host)
                theirs.dismiss(host, "sender" if host == "snd" else "receiver")
            return honest(worker, scope)

        monkeypatch.setattr(host_locks, "lock_holders", look)
        HostLocks(two, ours, "locks/result").lock("snd")
        assert not leaves, "the lock was refused first"


def test_what_other_accounts_say_of_themselves_is_a_caution(two: Campaign) -> None:
    """Any account can bind such a name, and its bytes reach no terminal."""
    said: list[str] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as hint, WorkerPool(two) as pool:
        hint.bind("\0netbench.campaign.theirs/1\x1b[31m+2")
        ours = held(two, pool, say=said.append)
        ours.claim()
        pool.dismiss("snd", "sender")
        ours.claim()
    assert [line for line in said if "campaign theirs/1?[31m, of another account" not in line] == []
    assert sorted(line.partition(":")[0] for line in said) == ["rcv", "snd"], "once each"


def test_hosts_of_different_kernels_are_put_back_at_the_same_time(
    two: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that does not answer keeps no other waiting. That they are two kernels is made up."""
    both = threading.Barrier(2)
    with WorkerPool(two) as pool:
        ours = held(two, pool)
        ours.claim()
        monkeypatch.setattr(pool, "boot_ids", lambda: {"snd": "one", "rcv": "another"})
        honest = ours._restore

        def together(host: str) -> None:
            both.wait(timeout=30)
            honest(host)

        monkeypatch.setattr(ours, "_restore", together)
        ours.restore()
