"""The settings that a campaign holds on its hosts: each host locked, each change journalled."""

from __future__ import annotations

import threading

from netbench.conductor.host_locks import HostLocks
from netbench.conductor.setting_context import context_of
from netbench.conductor.worker_pool import WorkerPool
from netbench.engine.worker import Worker
from netbench.errors import EngineError, Lost
from netbench.journal import Journal
from netbench.model import Campaign
from netbench.settings.put_back import put_back
from netbench.settings.scope import HostSettings


class HeldSettings:
    """The settings of each host, through the worker that it has now."""

    def __init__(
        self, campaign: Campaign, pool: WorkerPool, locks: HostLocks, journal: Journal
    ) -> None:
        self._campaign = campaign
        self._pool = pool
        self._locks = locks
        self._journal = journal
        self._hosts: dict[str, tuple[Worker, HostSettings]] = {}
        self._number_lock = threading.Lock()
        self._last_change = journal.last_change()

    def claim(self) -> None:
        """Lock every host, and put back what an earlier worker of this campaign left. Errors:
        HostBusy; EngineError; Lost.
        """

        def claim(host: str) -> None:
            self.of(host)

        self._pool.each(claim)

    def of(self, host: str) -> HostSettings:
        """A host's settings. A worker that is new has locked the host first, and has put back what
        the one before left. Errors: as claim.
        """
        worker = self._pool.holder(host)
        known = self._hosts.get(host)
        if known and known[0] is worker:
            return known[1]
        self._locks.lock(host)
        boot_id = worker.hello.boot_id
        for _ in put_back(worker, boot_id, self._journal.outstanding(host), self._journal.write):
            pass
        settings = HostSettings(
            context_of(self._campaign, host, worker),
            self._campaign.commands,
            self._journal.write,
            self._next_change,
            boot_id,
        )
        self._hosts[host] = worker, settings
        return settings

    def restore(self) -> None:
        """Put back everything, on every host, receivers first; by the journal what a worker held
        that is lost. Errors: EngineError, Lost or TimeoutError of the first thing that could not
        be; others are put back.
        """
        failed: EngineError | Lost | TimeoutError | None = None
        roles = self._campaign.roles
        for host in sorted(self._hosts, key=lambda host: roles[host]):
            try:
                self._restore(host)
            except (EngineError, Lost, TimeoutError) as error:
                failed = failed or error
        if failed:
            raise failed

    def _restore(self, host: str) -> None:
        worker, settings = self._hosts[host]
        if self._pool.is_current(host, worker):
            try:
                settings.undo()
            except (Lost, TimeoutError):
                self._pool.dismiss_holder(host)
        if self._journal.outstanding(host):
            self.of(host)

    def _next_change(self) -> int:
        """The number of the next change: hosts of several lanes change at the same time."""
        with self._number_lock:
            self._last_change += 1
            return self._last_change
