"""The executor of Apply and Restore: a pair's settings on its hosts, known to the journal, held by
a worker, read back.
"""

from __future__ import annotations

import os
import threading
import time
from collections import ChainMap
from pathlib import Path
from typing import Any

from netbench.conductor.worker_pool import WorkerPool
from netbench.errors import EngineError, HostError
from netbench.journal import Journal
from netbench.model import Campaign
from netbench.plan import Unit
from netbench.settings.base import Peers, SettingContext
from netbench.settings.catalogue import find, side_of
from netbench.settings.scope import HostSettings, layers, put_back

LOCK_SECONDS = 25.0  # a worker of ours that lost its controller is gone by then
LOCK_PAUSE = 0.2
_BUSY = "the campaign {} is using this host; wait for it to end, or stop it"
_HANGS = (
    "a worker of this campaign that was lost has not ended within {:.0f} s: it waits in the kernel"
    " (for a device, or an NFS server that is gone); see `dmesg` there, and go on when it has ended"
)
Read = dict[str, dict[str, str]]
"""What each side's settings read: side -> setting -> level."""


Applied = tuple[Read, dict[str, list[str]]]
"""That, and what else moved: `HOST.NAME` -> [before, after]."""


def asked_of(campaign: Campaign, unit: Unit, side: str) -> dict[str, str]:
    """A side's settings as they are asked for, without their side."""
    one = unit.pair.sender == unit.pair.receiver
    return dict(ChainMap(*wanted_of(campaign, unit, "" if one else side)))


def wanted_of(campaign: Campaign, unit: Unit, side: str) -> list[dict[str, str]]:
    """The layers that a host is to hold as this side of a unit's pair; "" as both."""

    def word(name: str, level: str) -> str:
        found = find(name, campaign.commands)
        return found[0].word_for(level, side) if found else level

    wanted = layers(campaign.settings, unit.cell.settings, campaign.commands, side)
    return [{name: word(name, level) for name, level in layer.items()} for layer in wanted]


def meant(campaign: Campaign, key: str, word: str) -> str:
    """A level of a setting in the words in which it reads back."""
    found = find(key, campaign.commands)
    return found[0].parse(word) if found else word


def holder_of(campaign: Campaign, path: Path) -> str:
    """Who locks the hosts for a result: its campaign's name and its folder's."""
    return f"{campaign.name[:24]}/{path.name}"


def context_of(campaign: Campaign, host: str, worker: Any) -> SettingContext:
    """Where a host's settings are made, and what it has to do with the campaign's other hosts."""
    ip = campaign.ip
    files = [
        cell.transfer.source.path for cell in campaign.cells if cell.transfer.source.kind == "file"
    ]
    hosts = campaign.hosts
    receivers = [
        hosts[pair.receiver].data_address(ip) for pair in campaign.pairs if pair.sender == host
    ]
    senders = [
        hosts[pair.sender].data_address(ip) for pair in campaign.pairs if pair.receiver == host
    ]
    peers = Peers(*(tuple(dict.fromkeys(names)) for names in (files, receivers, senders)))
    return SettingContext(host, worker, hosts[host].data_address(ip), hosts[host].interface, peers)


class Applier:
    """Brings hosts to a unit's settings and back. `holder` names who locks the hosts."""

    def __init__(
        self,
        campaign: Campaign,
        pool: WorkerPool,
        holder: str,
        journal: Journal,
    ) -> None:
        self._campaign = campaign
        self._pool = pool
        self._holder = holder
        self._journal = journal
        self._roles = campaign.roles
        self._hosts: dict[str, HostSettings] = {}
        self._workers: dict[str, object] = {}
        self._turn = threading.Lock()
        self._name = self._another_name()
        self._locked: dict[str, tuple[object, str]] = {}  # by host: who locked it, in which name
        self._last = journal.last_change()

    def claim(self) -> None:
        """Lock every host, and put back what an earlier worker of this campaign left. Errors:
        HostBusy; EngineError.
        """

        def claim(host: str) -> None:
            self._claim(host)

        self._pool.each(claim)

    def enter(self, unit: Unit) -> Applied:
        """Bring both hosts to a unit's settings: what they read, and what else moved (`HOST.NAME`
        -> [before, after]).

        Errors: SettingRefused where a host does not take a level; those of losing a worker.
        """
        read: Read = {}
        moved: dict[str, list[str]] = {}
        for _, host, wanted in reversed(
            self._sides(unit)
        ):  # a receiver may lean on what its sender holds
            self._claim(host).release(wanted)
        for side, host, wanted in self._sides(unit):
            held = self._claim(host)
            levels, others = held.hold(wanted)
            moved |= {f"{host}.{name}": change for name, change in others.items()}
            read |= dict.fromkeys([side] if side else ["sender", "receiver"], levels)
        return read, moved

    def read_again(self, unit: Unit) -> Read:
        """What a unit's settings read now. Errors: as enter."""
        read: Read = {}
        for side, host, _ in self._sides(unit):
            read |= dict.fromkeys(
                [side] if side else ["sender", "receiver"], self._claim(host).read_again()
            )
        return read

    def restore(self) -> None:
        """Put back everything, on every host. Errors: EngineError of the first thing that could not
        be; others are put back.
        """
        failed: EngineError | None = None
        for host, held in sorted(
            self._hosts.items(), key=lambda one: self._roles[one[0]]
        ):  # receivers first
            if self._pool.is_current(host, self._workers[host]):
                try:
                    held.undo()
                except EngineError as error:
                    failed = failed or error
        if failed:
            raise failed

    def _sides(self, unit: Unit) -> list[tuple[str, str, list[dict[str, str]]]]:
        """(side, host, layers) of both ends, or of the one host that is both."""
        pair = unit.pair
        ends = (
            [("", pair.sender)]
            if pair.sender == pair.receiver
            else [("sender", pair.sender), ("receiver", pair.receiver)]
        )
        found = []
        for side, host in ends:
            found.append((side, host, wanted_of(self._campaign, unit, side)))
        return found

    def _claim(self, host: str) -> HostSettings:
        """The settings of a host, through the worker that it has now."""
        worker = self._pool.host_worker(host)
        if self._workers.get(host) is worker:
            return self._hosts[host]
        self.lock(host)
        left = self._journal.outstanding(host)
        for _ in put_back(worker, worker.hello.boot_id, left, self._journal.write):
            pass
        place = context_of(self._campaign, host, worker)
        self._workers[host] = worker
        self._hosts[host] = HostSettings(
            place, self._campaign.commands, self._journal.write, self._number, worker.hello.boot_id
        )
        return self._hosts[host]

    def _number(self) -> int:
        with self._turn:
            self._last += 1
            return self._last

    def lock(self, host: str) -> None:
        """Lock a host for this campaign, waiting for a worker of its own that has lost its
        controller. Errors: HostBusy.
        """
        worker = self._pool.host_worker(host)
        name = self._another_name() if host in self._locked else self._name
        self._take(host, worker, "host", name)
        if self._needs_kernel():
            self._take(host, worker, "kernel", name)
        self._locked[host] = worker, name

    def _another_name(self) -> str:
        """Hosts that share a namespace share its lock by sharing a name; a worker that was lost, or
        was an earlier controller's, has locked in another one, and is waited for.
        """
        return f"{self._holder}+{os.urandom(4).hex()}"

    def _is_ours(self, holder: str) -> bool:
        """Whether a worker that this campaign has now holds a lock, of a host that shares it."""
        locked = dict(self._locked).items()
        return any(
            name == holder and self._pool.is_current(host, worker)
            for host, (worker, name) in locked
        )

    def _take(self, host: str, worker: Any, what: str, name: str) -> None:
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                worker.operate("lock", what, name)
            except EngineError as error:
                holder = _holder(worker, what)
                if self._is_ours(holder):
                    return
                own = _result(holder) == self._holder
                if own and time.monotonic() < deadline:
                    time.sleep(LOCK_PAUSE)
                    continue
                words = (
                    _HANGS.format(LOCK_SECONDS)
                    if own
                    else _BUSY.format(_result(holder))
                    if holder
                    else str(error)
                )
                raise HostBusy(f"{host}: {words}") from error
            return

    def _needs_kernel(self) -> bool:
        keys = [
            *self._campaign.settings,
            *(key for cell in self._campaign.cells for key in cell.settings),
        ]
        found = [find(side_of(key)[1], self._campaign.commands) for key in dict.fromkeys(keys)]
        return any(setting.is_whole_kernel(what) for setting, what in filter(None, found))


def refuse_busy(campaign: Campaign, pool: WorkerPool) -> None:
    """Look whether another campaign uses a host, before anything is made for this one. Errors:
    HostBusy.
    """

    def look(host: str) -> None:
        holder = _holder(pool.host_worker(host), "host")
        if holder:
            raise HostBusy(f"{host}: {_BUSY.format(_result(holder))}")

    pool.each(look)


class HostBusy(HostError):
    """Another campaign uses the host."""


def _result(holder: str) -> str:
    """The result that a lock is held for."""
    return holder.rpartition("+")[0] or holder


def _holder(worker: Any, what: str) -> str:
    try:
        return str(worker.operate("lock", what)[0]).strip()
    except EngineError:
        return ""
