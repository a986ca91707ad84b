"""Locks of a campaign's hosts: one campaign of an account, and one that has root, at a time.

A campaign with root takes a lock that only root can take, and that of the account which it logs in
with. Of campaigns of other accounts it knows only what they say of themselves: these are a caution.

A worker that was lost, or that belongs to an earlier controller of the same result, is waited for:
what it still puts back would undo what is set now. One that is stopped would never end: it is
killed, and what it held is undone from the journal.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable

from netbench.base.errors import EngineError, HostBusy, HostError
from netbench.base.ownership import own_users
from netbench.engine.worker import Worker
from netbench.model import Campaign
from netbench.result.store import Store
from netbench.run.worker_pool import WorkerPool
from netbench.settings.named import find, side_of

LOCK_SECONDS = 60.0
"""A worker of ours that lost its controller is gone by then; as long again for each setting whose
program may undo it, which has 30 s and may be looked at."""
LOCK_PAUSE = 0.2
BUSY = (
    "the campaign {} is using this host (process {} there); wait for it to end, or stop it; where"
    " it is dead already, `restore` its result"
)
OTHERS = (
    "campaign {}, of another account or with a /tmp of its own, seems to use this host, and would"
    " disturb this one; agree on who measures when"
)
_NAME = re.compile(r"[!-~]{1,60}")
_UNFIT = re.compile(r"[^!-~]")
HANGS = (
    "a lost worker of this campaign (process {}) has not exited within {:.0f} s: it waits in the"
    " kernel for a device, or for an NFS server that does not answer; see `dmesg` on the host, and"
    " run `resume` when the worker has exited"
)


class HostLocks:
    """The locks that a campaign's workers hold for one result."""

    def __init__(
        self,
        campaign: Campaign,
        pool: WorkerPool,
        result: str,
        say: Callable[[str], None] = lambda line: None,
        identity: str = "",
    ) -> None:
        """`result`: what other campaigns are told, as `result_name` gives it. `say` gets a line for
        each campaign of another account. `identity`: the store's.
        """
        self._pool, self._identity = pool, identity
        self.say = say
        self._said: set[tuple[str, str]] = set()
        self._result = result
        self.scopes = ("host", "kernel") if changes_kernel(campaign) else ("host",)
        # Hosts that share a namespace share its lock by sharing a name.
        self._name = f"{result}+{os.urandom(4).hex()}"
        self._patience = LOCK_SECONDS * (1 + len(campaign.commands))

    def lock(self, host: str) -> None:
        """Lock a host through its present workers. Errors: HostBusy, of another campaign; Lost."""
        worker, mover = self._pool.holder(host), self._pool.host_worker(host)
        for scope in self.scopes:
            self._take(worker, scope, mover)
        if mover is not worker:
            self._take(mover, "host", worker)
        self._name_others(host, mover)

    def _name_others(self, host: str, worker: Worker) -> None:
        """Say which campaigns of other accounts claim to use a host."""
        others = {_result(hint) for hint in _lines(worker, "hints")} - {self._result}
        for other in sorted(others):
            if (host, other) not in self._said:
                self._said.add((host, other))
                self.say(f"{host}: {OTHERS.format(other)}")

    def _take(self, worker: Worker, scope: str, other: Worker) -> None:
        """`other`: it knows lost workers of its own kind."""
        deadline = time.monotonic() + self._patience
        while True:
            refusal = None
            try:
                worker.operate("lock", scope, self._name)
            except EngineError as error:
                refusal = error
            holder, pids = lock_holders(worker, scope)
            if refusal and not holder and refusal.errno:
                raise HostError(f"{worker.host}: {refusal}") from refusal
            if holder and _result(holder) != self._result:
                why = BUSY.format(_result(holder), *pids[:1] or [0])
                raise HostBusy(f"{worker.host}: {why}") from refusal
            of_kernel = [e.hello for e in self._pool.workers().values()]
            present = {e.pid for e in of_kernel if e.boot_id == worker.hello.boot_id}
            lost = [pid for pid in pids if pid not in present]
            if not refusal and not lost:
                return
            for pid in lost:
                for each in {worker, other}:
                    each.end_stopped(pid, self._identity)
            if time.monotonic() > deadline:
                why = HANGS.format(*lost[:1] or [0], self._patience)
                raise HostError(f"{worker.host}: {why}") from refusal
            time.sleep(LOCK_PAUSE)


def result_name(campaign: Campaign, store: Store) -> str:
    """The holder that others see on locked hosts: the campaign's name and its folder's."""
    own = store.path.is_symlink() and store.path.lstat().st_uid in own_users()  # `latest`
    name = (store.path.resolve() if own else store.path.absolute()).name
    return f"{campaign.name[:24]}/{_UNFIT.sub('_', name)[:26]}"


def refuse_busy(pool: WorkerPool) -> None:
    """Whether another campaign uses a host, before anything is made. Errors: HostBusy."""

    def look(host: str) -> None:
        for worker in (pool.host_worker(host), pool.holder(host)):
            holder, pids = lock_holders(worker, "host")
            if holder:
                raise HostBusy(f"{host}: {BUSY.format(_result(holder), *pids[:1] or [0])}")

    pool.each(look)


def changes_kernel(campaign: Campaign) -> bool:
    """Whether a setting of a campaign is seen in all network namespaces of a kernel."""
    keys = {key for cell in campaign.cells for key in cell.settings} | campaign.settings.keys()
    settings = (find(side_of(key)[1], campaign.commands) for key in keys)
    return any(setting.is_whole_kernel(what) for setting, what in filter(None, settings))


def _result(holder: str) -> str:
    """The result that a lock is held for."""
    return holder.rpartition("+")[0] or holder


def lock_holders(worker: Worker, scope: str) -> tuple[str, list[int]]:
    """The name of a lock's holders, and their pids on the host; "" where there is none."""
    name, *pids = _lines(worker, scope) or [""]
    return name, [int(pid) for pid in pids if pid.isdecimal()]


def _lines(worker: Worker, what: str) -> list[str]:
    """What the operation `lock` reads, without what is no name of a holder."""
    try:
        lines = worker.operate("lock", what)[0].splitlines()
    except EngineError:
        return []
    return [line for line in lines if _NAME.fullmatch(line)]
