"""One meter alone on this machine, without a transfer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from netbench.base.errors import EngineError, RequestError
from netbench.engine.binding import Edge
from netbench.engine.catalogue import Named
from netbench.engine.heartbeat import Heartbeat
from netbench.engine.worker import Outcome, Worker
from netbench.model import NOTHING, Host
from netbench.run import readings
from netbench.run.worker_pool import open_channel

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
    """Run one meter for some seconds. Errors: RequestError for an unknown meter or time;
    EngineError.
    """
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
        raise RequestError(f"meter {name!r} cannot run alone; {hint}")
    if why := meters[name].row.why:
        raise EngineError(0, 0, name, why, "run `list meters` to see which meters work here")
