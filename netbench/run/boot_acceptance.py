"""Accepting hosts that were booted: their links are up, their clocks run as fast as this machine's,
and their facts are those of earlier boots of the same kernel.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from netbench.base.errors import EngineError
from netbench.facts.comparison import change, differences, remedy
from netbench.model import Campaign
from netbench.result.files import HostEntry, Hosts
from netbench.run.clock_rates import why_clocks_differ
from netbench.run.host_facts import read_all
from netbench.run.worker_pool import WorkerPool

READY_SECONDS, READY_PAUSE = 30.0, 0.5  # until links and services of a booted host are there
OF_NETBENCH = ("engine", "layout")  # facts that no boot changes
Entries = Mapping[str, HostEntry]
"""An entry of facts.json by host."""


class BootAcceptance:
    """`stored_facts` gives the entries of facts.json by host, of all boots so far."""

    def __init__(
        self,
        campaign: Campaign,
        pool: WorkerPool,
        stored_facts: Callable[[], Hosts],
    ) -> None:
        self._campaign = campaign
        self._pool = pool
        self._stored_facts = stored_facts

    def wait(self, kernel: str, build: int | None) -> tuple[Entries, str]:
        """Wait until the hosts are ready: what was read of them, and what is still wrong after
        30 s, or with their clocks ("": nothing). Errors: EngineError; Lost.
        """
        deadline = time.monotonic() + READY_SECONDS
        while True:
            entries = {
                host: replace(entry, on=kernel, build=build)
                for host, entry in read_all(self._campaign, self._pool).items()
            }
            why = self._why_not_ready(entries)
            if not why:
                return entries, why_clocks_differ(self._pool)
            if time.monotonic() >= deadline:
                return entries, why
            time.sleep(READY_PAUSE)

    def _why_not_ready(self, entries: Entries) -> str:
        stored = self._stored_facts()
        for host, entry in entries.items():
            known = stored.get(host, ())
            same_kernel = [one for one in known if (one.on, one.build) == (entry.on, entry.build)]
            why = self._why_no_interface(host)
            if not why and same_kernel:
                why = self._differences(host, same_kernel[-1], entry)
            if why:
                return why
        return ""

    def _why_no_interface(self, host: str) -> str:
        """Why no interface of a host has its data address, or ""."""
        address = self._campaign.hosts[host].data_address(self._campaign.ip)
        try:
            self._pool.host_worker(host).operate("interface", address)
        except EngineError as error:
            return str(error)
        return ""

    def _differences(self, host: str, earlier: HostEntry, entry: HostEntry) -> str:
        """Facts that differ from those of an earlier boot, apart from what the campaign sets; or
        "".
        """
        handled = [key for key in self._campaign.handled if key != "kernel"]
        changes = [
            change(*one) + remedy(one[0])
            for one in differences(earlier.known, entry.known, handled)
            if not one[0].startswith(OF_NETBENCH)
        ]
        if not changes:
            return ""
        return f"{host}: otherwise than in boot {earlier.boot}: {'; '.join(changes)}"
