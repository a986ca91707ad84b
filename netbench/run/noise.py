"""The noise monitor: cheap readings of every host around each block, and what moved between them,
kept beside the records.

What is of a whole kernel is read once for all hosts that share it, what is of a network once for
all hosts in one namespace. A reading never ends a campaign: what cannot be read is said in the
entry. docs/records.md has the format, analysis/noise.py the meaning.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from netbench.base.errors import EngineError, NetbenchError
from netbench.engine.worker import Worker
from netbench.model import Campaign
from netbench.run.host_facts import data_interface, own_boot_id
from netbench.run.noise_reading import Reading, Watch
from netbench.run.worker_pool import WorkerPool


class NoiseMonitor:
    """Readings around blocks. `keep` gets each entry of samples/noise.jsonl."""

    def __init__(
        self, campaign: Campaign, pool: WorkerPool, keep: Callable[[Mapping[str, Any]], None]
    ) -> None:
        self._campaign = campaign
        self._pool = pool
        self._keep = keep
        known = campaign.roles
        self._roles = {host: known[host] for host in campaign.hosts if host in known}
        self._watches: dict[str, Watch] = {}
        self._last: dict[str, Reading] = {}
        self._lost: dict[str, str] = {}
        self._here = own_boot_id()
        self._methods = {
            cell.transfer.send for cell in campaign.cells if not cell.transfer.tool.external
        }

    @contextmanager
    def around(self, block: int) -> Iterator[None]:
        """Read before a block and after it, also after one that is cut short, from hosts that still
        answer.
        """
        self.before()
        try:
            yield
        except BaseException:
            with suppress(NetbenchError, TimeoutError):  # why the block ends is what matters
                self.after(block)
            raise
        self.after(block)

    def forget(self) -> None:
        """Drop what was read: the hosts are going to be booted."""
        self._watches.clear()
        self._last = {}

    def before(self) -> None:
        """Read, unless the end of the last block was just read."""
        if self._last.keys() != self._roles.keys():
            self._last = self._read()

    def after(self, block: int) -> None:
        """Read, and keep what moved since `before`: an entry a host."""
        before, self._last = self._last, self._read()
        kernels = self._kernels()
        for host in self._roles:
            entry: dict[str, Any] = {"block": block, "host": host, "ns": [0, 0]}
            if host not in self._last:
                missing = {"all": self._lost.get(host, "no worker is there")}
            elif host not in before:
                missing = {"all": "nothing was read before the block"}
            else:
                missing = before[host].missing | self._last[host].missing
                entry |= self._moved(
                    before, self._last, host, kernels.get(self._boot_id(host), [host])
                )
            self._keep(entry | ({"missing": missing} if missing else {}))

    def _moved(
        self,
        before: Mapping[str, Reading],
        after: Mapping[str, Reading],
        host: str,
        mates: list[str],
    ) -> dict[str, Any]:
        one, other = before[host], after[host]
        counters = {
            name: [one.counters[name], value]
            for name, value in other.counters.items()
            if name in one.counters and value > one.counters[name]
        }
        entry: dict[str, Any] = {"ns": [one.ns, other.ns], "counters": counters}
        if not self._watches[host].kernel:
            return entry
        entry["kernel"] = mates
        if one.cpu and other.cpu:
            entry["cpu"] = {
                name: [one.cpu[name], value] for name, value in other.cpu.items() if name in one.cpu
            }
        if self._same_processes(before, after, mates) and not self._fetches():
            entry["own"] = [self._own(readings, host, mates) for readings in (before, after)]
        entry["gauges"] = {
            name: [value, other.gauges[name]]
            for name, value in one.gauges.items()
            if name in other.gauges
        }
        return entry

    def _own(self, readings: Mapping[str, Reading], host: str, mates: list[str]) -> int:
        """Ticks of our workers on a kernel, and of this process if it runs there."""
        return readings[host].controller + sum(
            ticks for mate in mates if mate in readings for ticks in readings[mate].workers.values()
        )

    @staticmethod
    def _same_processes(
        before: Mapping[str, Reading], after: Mapping[str, Reading], mates: list[str]
    ) -> bool:
        """Whether no worker of a kernel was replaced, which hides the lost one's CPU time."""
        sets = [
            {(mate, pid) for mate in mates if mate in r for pid in r[mate].workers}
            for r in (before, after)
        ]
        return sets[0] == sets[1] and all(mate in before for mate in mates)

    def _fetches(self) -> bool:
        """Whether kernel threads move data in some cell: then what is not our workers' may be the
        transfer's all the same.
        """
        workers = self._pool.workers().values()
        send = next(iter(workers)).catalogue.send if workers else {}
        return any(name in send and send[name].has("fetches") for name in self._methods)

    def _workers(self, host: str) -> list[Worker]:
        """The workers that a host has now, the one that is asked about the host first."""
        there = self._pool.workers()
        first = there.get((host, self._roles[host]))
        others = [
            worker
            for (name, role), worker in there.items()
            if name == host and role != self._roles[host]
        ]
        return [first, *others] if first is not None else []

    def _boot_id(self, host: str) -> str:
        workers = self._workers(host)
        return workers[0].hello.boot_id if workers else ""

    def _kernels(self) -> dict[str, list[str]]:
        """Hosts by their kernel; the first of each speaks for it."""
        hosts_of: dict[str, list[str]] = {}
        for host in self._roles:
            hosts_of.setdefault(self._boot_id(host), []).append(host)
        return hosts_of

    def _read(self) -> dict[str, Reading]:
        """A reading of every host that has a worker, all at the same time."""
        readings: dict[str, Reading] = {}
        self._lost = {}
        speakers = {hosts[0] for hosts in self._kernels().values()}
        local = [host for host in self._roles if self._campaign.hosts[host].local]

        def read(host: str) -> None:
            workers = self._workers(host)
            if not workers:
                return
            try:
                if host not in self._watches or self._watches[host].kernel != (host in speakers):
                    network = host not in local[1:]
                    self._watches[host] = Watch(
                        workers[0], self._interface(host), host in speakers, network
                    )
                readings[host] = self._watches[host].read(workers)
                if workers[0].hello.boot_id == self._here:
                    readings[host].controller = int(
                        sum(os.times()[:4]) * workers[0].hello.clock_ticks
                    )
            except (NetbenchError, TimeoutError) as error:
                self._lost[host] = str(error)

        if len(self._roles) == 1:
            read(next(iter(self._roles)))
        else:
            self._pool.each(read)
        return {host: readings[host] for host in self._roles if host in readings}

    def _interface(self, host: str) -> str:
        try:
            worker = self._pool.host_worker(host)
            return data_interface(self._campaign.hosts[host], worker, self._campaign.ip)
        except EngineError:
            return ""
