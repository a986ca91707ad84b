"""What soakers count on each kernel of a campaign while nothing of it runs there: at its start and
between blocks. Raw, for the records of the runs that follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from netbench.analysis.soak import COUNTERS, SOAK
from netbench.conductor import readings
from netbench.conductor.single_meter import observe
from netbench.conductor.worker_pool import WorkerPool
from netbench.engine.worker import Worker
from netbench.errors import EngineError, Lost
from netbench.model import Campaign

SECONDS = 1.0  # of an idle window

Counters = Mapping[str, list[Any]]
"""Counter -> [opening, closing]."""


class IdleCounts:
    """The latest idle window of each kernel. `note` gets a line where none could be had."""

    def __init__(self, campaign: Campaign, pool: WorkerPool, note: Callable[[str], None]) -> None:
        self._campaign = campaign
        self._pool = pool
        self._note = note
        self._by_boot: dict[str, Counters] = {}

    def measure(self) -> None:
        """Watch every kernel for SECONDS, all at the same time, where a cell has soak."""
        if SOAK not in self._campaign.meters:
            return
        speakers: dict[str, str] = {}
        for host in self._campaign.roles:
            speakers.setdefault(self._pool.boot_id(host), host)

        def watch(host: str) -> None:
            if host not in speakers.values():
                return
            try:
                worker = self._pool.host_worker(host)
                self._by_boot[worker.hello.boot_id] = self._watch(worker)
            except (EngineError, Lost, TimeoutError) as error:
                self._note(f"{host}: no idle window for soak: {error}")

        self._pool.each(watch)

    def _watch(self, worker: Worker) -> Counters:
        more = {"footprint": self._campaign.footprint}
        outcome = observe(worker, SOAK, SECONDS, more)
        side = readings.counters(outcome.result, worker.catalogue)
        counted = {f"idle_{name}": side[SOAK][name] for name in COUNTERS if name in side[SOAK]}
        return {"idle_time_ns": side["time_ns"], **counted}

    def of(self, worker: Worker) -> Counters:
        """The latest idle window of a worker's kernel; {} where there is none."""
        return self._by_boot.get(worker.hello.boot_id, {})
