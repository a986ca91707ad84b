"""One meter alone on this machine, without a transfer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from netbench.base.errors import EngineError, Lost, ProtocolError, RequestError
from netbench.engine.binding import SAME, Edge
from netbench.engine.catalogue import Named
from netbench.engine.heartbeat import Heartbeat
from netbench.engine.worker import Outcome, Worker
from netbench.model import NOTHING, Campaign, Host
from netbench.read.metrics import ENERGY, ENERGY_COUNTED, SOAK, SOAK_COUNTERS
from netbench.run import readings
from netbench.run.worker_pool import WorkerPool, open_channel

SECONDS_MIN, SECONDS_MAX = 0.001, 86_400.0
GRACE_SECONDS = 30.0  # beyond the meter's own time


@dataclass(frozen=True)
class MeterReading:
    """A meter's counters at both edges of a window.

    `clock_ticks` a second is the unit of procstat; `units` is by counter; `counters` are [opening,
    closing] by counter; `cpus`, of meters that count CPUs, has a line an edge, one number a CPU.
    """

    meter: str
    clock_ticks: int
    units: Mapping[str, str]
    time_ns: list[int]
    counters: Mapping[str, list[Any]]
    cpus: list[dict[str, Any]]  # a line of samples: its keys are meters and counters


def read_meter(name: str, seconds: float) -> MeterReading:
    """Run one meter for some seconds. Errors: RequestError for a meter or time; EngineError."""
    check_seconds(seconds)
    with own_worker() as worker:
        return reading_of(worker, name, observe(worker, name, seconds))


def check_seconds(seconds: float) -> None:
    """Errors: RequestError for a time that no meter can measure."""
    if not SECONDS_MIN <= seconds <= SECONDS_MAX:
        raise RequestError(f"--seconds {seconds:g}: expected {SECONDS_MIN:g} (1 ms) to a day")


@contextmanager
def own_worker() -> Iterator[Worker]:
    """A worker on this machine, for as long as the context lasts. Errors: those of a worker."""
    worker = Worker(open_channel(Host("here")).start_mover(), "here")
    heartbeat = Heartbeat()
    heartbeat.add(worker)
    try:
        yield worker
    finally:
        heartbeat.stop()
        worker.close()


def observe(
    worker: Worker, name: str, seconds: float, more: Mapping[str, int] = NOTHING
) -> Outcome:
    """A run that reads one meter alone, with `more` options. Errors: RequestError for a meter that
    cannot run alone; those of a worker.
    """
    _usable(name, worker.catalogue.meters)
    duration = int(seconds * 1e9)
    worker.prepare({"role": "observe", "meters": name, "duration": duration, "sample": 0, **more})
    worker.go()
    worker.await_edge(Edge.CLOSE, seconds + GRACE_SECONDS)
    worker.stop()
    return worker.result(GRACE_SECONDS)


def reading_of(worker: Worker, name: str, outcome: Outcome) -> MeterReading:
    """What one meter counted."""
    side = readings.counters(outcome.result, worker.catalogue)
    return MeterReading(
        meter=name,
        clock_ticks=worker.hello.clock_ticks,
        units={row.name: row.unit for row in worker.catalogue.meters[name].counters},
        time_ns=side["time_ns"],
        counters=side[name],
        cpus=list(readings.edge_lines("here", outcome.result, worker.catalogue)),
    )


def _usable(name: str, meters: Mapping[str, Named]) -> None:
    """Errors: RequestError for a meter that cannot run alone; EngineError where it cannot run."""
    alone = [meter for meter, named in meters.items() if not named.has("always")]
    if name not in alone:
        near = get_close_matches(name, alone, 1)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(alone)}"
        what = "cannot run alone" if name in meters else "is not known"
        raise RequestError(f"meter {name!r} {what}; {hint}")
    if why := meters[name].row.why:
        raise EngineError(0, 0, name, why, "run `list meters` to see which meters work here")


IDLE_SECONDS = 1.0  # of an idle window
IDLE_COUNTERS = {SOAK: SOAK_COUNTERS, ENERGY: (ENERGY_COUNTED,)}
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
        """Watch every kernel at once, with each of these meters that a cell has."""
        if not self._meters:
            return

        def watch(host: str) -> None:
            try:
                worker = self._pool.host_worker(host)
                usable = (m for m in self._meters if not worker.catalogue.meters[m].row.why)
                counts = {name: self._count(worker, name) for name in usable}
                self._by_boot[worker.hello.boot_id] = counts
            except (EngineError, Lost, TimeoutError) as error:
                self._note(f"{host}: no idle window: {error}")

        self._pool.each(watch, [hosts[0] for hosts in self._pool.kernels()])

    def _count(self, worker: Worker, meter: str) -> Counters:
        outcome = observe(worker, meter, IDLE_SECONDS, {"footprint": self._campaign.footprint})
        side = readings.counters(outcome.result, worker.catalogue)
        if "time_ns" not in side:
            raise ProtocolError(f"{worker.host}: the worker's result has no window{SAME}")
        names = [name for name in IDLE_COUNTERS[meter] if name in side.get(meter, {})]
        return {
            "idle_time_ns": side["time_ns"],
            **{f"idle_{name}": side[meter][name] for name in names},
        }

    def of(self, worker: Worker) -> Mapping[str, Counters]:
        """The latest idle windows of a worker's kernel, by meter; {} where there is none."""
        return self._by_boot.get(worker.hello.boot_id, {})
