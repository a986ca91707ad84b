"""What meters count on each kernel of a campaign while nothing of it runs there: at its start and
between blocks. Raw, for the records of the runs that follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from netbench.base.errors import EngineError, Lost
from netbench.engine.worker import Worker
from netbench.model import Campaign
from netbench.read.ratio_table import ENERGY, ENERGY_COUNTED
from netbench.read.soak import COUNTERS, SOAK
from netbench.run import readings
from netbench.run.single_meter import observe
from netbench.run.worker_pool import WorkerPool

SECONDS = 1.0  # of an idle window
IDLE_COUNTERS = {SOAK: COUNTERS, ENERGY: (ENERGY_COUNTED,)}
"""By meter, what is counted in idle windows. Each meter has windows of its own: soakers keep CPUs
busy.
"""

Counters = Mapping[str, list[Any]]
"""Counter -> [opening, closing]."""


class IdleCounts:
    """The latest idle windows of each kernel. `note` gets a line where none could be had."""

    def __init__(self, campaign: Campaign, pool: WorkerPool, note: Callable[[str], None]) -> None:
        self._campaign = campaign
        self._pool = pool
        self._note = note
        self._meters = [name for name in IDLE_COUNTERS if name in campaign.meters]
        self._by_boot: dict[str, dict[str, Counters]] = {}

    def measure(self) -> None:
        """Watch every kernel for SECONDS with each of these meters that a cell has, all kernels at
        the same time.
        """
        if not self._meters:
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
                self._note(f"{host}: no idle window: {error}")

        self._pool.each(watch)

    def _watch(self, worker: Worker) -> dict[str, Counters]:
        usable = [name for name in self._meters if not worker.catalogue.meters[name].row.why]
        return {name: self._count(worker, name) for name in usable}

    def _count(self, worker: Worker, meter: str) -> Counters:
        outcome = observe(worker, meter, SECONDS, {"footprint": self._campaign.footprint})
        side = readings.counters(outcome.result, worker.catalogue)
        names = [name for name in IDLE_COUNTERS[meter] if name in side.get(meter, {})]
        return {
            "idle_time_ns": side["time_ns"],
            **{f"idle_{name}": side[meter][name] for name in names},
        }

    def of(self, worker: Worker) -> Mapping[str, Counters]:
        """The latest idle windows of a worker's kernel, by meter; {} where there is none."""
        return self._by_boot.get(worker.hello.boot_id, {})
