"""One meter alone on this machine, without a transfer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from netbench.conductor import readings
from netbench.conductor.worker_pool import open_channel
from netbench.engine.binding import Edge
from netbench.engine.catalogue import Named
from netbench.engine.heartbeat import Heartbeat
from netbench.engine.worker import Worker
from netbench.errors import EngineError, NotBuiltYet, RequestError
from netbench.model import Host

PLANNED = ("soak", "perf")
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
    if not SECONDS_MIN <= seconds <= SECONDS_MAX:
        raise RequestError(f"--seconds {seconds:g}: expected {SECONDS_MIN:g} (1 ms) to a day")
    worker = Worker(open_channel(Host("here")).start_mover(), "here")
    heartbeat = Heartbeat()
    heartbeat.add(worker)
    try:
        meter = _usable(name, worker.catalogue.meters)
        worker.prepare(
            {"role": "observe", "meters": name, "duration": int(seconds * 1e9), "sample": 0}
        )
        worker.go()
        worker.await_edge(Edge.CLOSE, seconds + GRACE_SECONDS)
        worker.stop()
        vectors = worker.result(GRACE_SECONDS).result
        side = readings.counters(vectors, worker.catalogue)
        return MeterReading(
            meter=name,
            clock_ticks=worker.hello.clock_ticks,
            units={row.name: row.unit for row in meter.counters},
            time_ns=side["time_ns"],
            counters=side[name],
            cpus=list(readings.edge_lines("here", vectors, worker.catalogue)),
        )
    finally:
        heartbeat.stop()
        worker.close()


def _usable(name: str, meters: Mapping[str, Named]) -> Named:
    """The meter of that name, if it can run alone here. Errors: RequestError, EngineError."""
    if name in PLANNED:
        raise NotBuiltYet(f"meter {name} is not built yet")
    alone = [meter for meter, named in meters.items() if not named.has("always")]
    if name not in alone:
        near = get_close_matches(name, alone, 1)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(alone)}"
        raise RequestError(f"meter {name!r} cannot run alone; {hint}")
    if why := meters[name].row.why:
        raise EngineError(0, 0, name, why, "run `list meters` to see which meters work here")
    return meters[name]
