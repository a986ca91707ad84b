"""What a worker's answers may hold, so that no host can fill the controller's memory or give it
counters that mean nothing.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from netbench.base.errors import ProtocolError
from netbench.engine.binding import SAME, Edge, Hello, Vector, ffi, lib
from netbench.engine.catalogue import Catalogue, Row
from netbench.engine.frames import Value, number_of

ANSWER_BYTES = 1 << 20  # of an operation: the texts before and after, and what moved along
CPUS_MAX = 1 << 16
NUMBER_MAX = 2**63 - 1  # no counter comes near, and sums of two stay below 2**64
KINDS = ("counter", "proof", "readback")  # of what a run has vectors
SPARE_SAMPLES = 10  # timers are not exact
CLOCK_RATE = 0.01  # two clocks differ by less: adjtimex(2) slews by 0.05%, and crystals err less
CLOCK_STEP_NS = 10**7  # of coarse clocks
CLOCK = "; is its clock source stable? See there: dmesg | grep -i clocksource"
VECTOR_BYTES: int = ffi.sizeof("struct nb_vector")


def check_hello(hello: Hello) -> None:
    """Errors: ProtocolError for a host that cannot be."""
    limits = (
        ("CPUs", hello.cpus, CPUS_MAX),
        ("clock ticks a second", hello.clock_ticks, 10**6),
        ("ticks of its kernel a second", hello.tick_rate, 10**6),
        ("bytes a page", hello.page_size, 1 << 30),
    )
    for what, number, most in limits:
        if not 1 <= number <= most:
            raise ProtocolError(f"the worker says that its host has {number} {what}{SAME}")


def check_rows(rows: Iterable[Row], own: Iterable[Row]) -> None:
    """Errors: ProtocolError for descriptors that are not `own`, but for why something cannot be
    used there.
    """
    if [replace(row, why="") for row in rows] != [replace(row, why="") for row in own]:
        raise ProtocolError(f"the worker's descriptors are not those of this netbench{SAME}")


def checked(vectors: Iterable[Vector], catalogue: Catalogue, cpus: int) -> tuple[Vector, ...]:
    """Vectors of a run, each as its descriptor says. Errors: ProtocolError."""
    checked_vectors = tuple(vectors)
    items = {"run": 1, "stream": lib.NB_STREAMS_MAX, "cpu": cpus, "length": lib.NB_LENGTHS}
    for vector in checked_vectors:
        if vector.row >= len(catalogue.rows):
            raise ProtocolError(
                f"the worker sent counters of a row that it has not described{SAME}"
            )
        row = catalogue.rows[vector.row]
        if row.kind not in KINDS:
            wrong = True
        elif vector.text is not None:
            wrong = row.type != "text" or len(vector.text) > row.maximum
        else:
            wrong = row.type == "text" or not 1 <= len(vector.numbers) <= items[row.per]
        if wrong:
            raise ProtocolError(f"the worker sent a {row.name} that its descriptor forbids{SAME}")
        kept = row.kind != "readback" or row.per == "run"  # a digest is any number
        if kept and any(n is not None and n > NUMBER_MAX for n in (vector.ns, *vector.numbers)):
            raise ProtocolError(f"the worker sent a {row.name} beyond {NUMBER_MAX}{SAME}")
    return checked_vectors


def now_ns() -> int:
    """The controller's clock: no date, never set, and it goes on while this machine sleeps."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def check_times(vectors: Sequence[Vector], samples: Sequence[Vector], began: int) -> None:
    """The clock of a run's host, by a run that was prepared at `began` (now_ns).

    Errors: ProtocolError for a window that closes before it opens, for samples that run backwards,
    and for times that are further apart than the run took.
    """
    _check_window(vectors)
    times = [sample.ns for sample in samples]
    if any(later < earlier for earlier, later in itertools.pairwise(times)):
        raise ProtocolError(f"the times of the worker's samples run backwards{CLOCK}")
    times += [vector.ns for vector in vectors if vector.ns]
    span, took = max(times, default=0) - min(times, default=0), now_ns() - began
    if span > took * (1 + CLOCK_RATE) + CLOCK_STEP_NS:
        raise ProtocolError(
            f"the worker's times span {span / 1e9:.1f} s, but its run took {took / 1e9:.1f} s"
            f" here{CLOCK}"
        )


def _check_window(vectors: Iterable[Vector]) -> None:
    edges = [
        (vector.row, vector.ns) for vector in vectors if vector.edge == Edge.OPEN and vector.ns
    ]
    opened = dict(edges)
    for vector in vectors:
        if vector.edge == Edge.CLOSE and vector.ns < opened.get(vector.row, 0):
            raise ProtocolError(f"the worker's window closes before it opens{CLOCK}")


class SampleRoom:
    """Room for the samples of one run: no more than its duration, or the time since it was
    prepared, allows.
    """

    def __init__(self, catalogue: Catalogue, cpus: int, options: Mapping[str, Value]) -> None:
        self._interval = number_of(options, "sample", 0)
        self._duration = number_of(options, "duration", 0)
        self._began = time.monotonic_ns()
        self._taken = 0
        asked = str(options.get("meters", "")).split("\0")
        items = {"run": 1, "stream": number_of(options, "streams", 1), "cpu": cpus}
        flags = ("sampled", "sliced") if options.get("role") == "observe" else ("sampled",)
        counters = [
            items[row.per]
            for name, meter in catalogue.meters.items()
            if any(map(meter.has, flags)) and (name in asked or meter.has("always"))
            for row in meter.counters
        ]
        self._numbers = 8 * (1 + sum(counters))
        self._bytes = 8 * sum(counters) + VECTOR_BYTES * len(counters)

    def take(self, size: int) -> None:
        """A frame of samples, of so many bytes, has arrived. Errors: ProtocolError when it is more
        than there is room for.
        """
        self._taken += size
        if not self._interval:
            raise ProtocolError(f"the worker sent samples that were not asked for{SAME}")
        seen = self._duration or time.monotonic_ns() - self._began
        most = min(
            seen // self._interval + SPARE_SAMPLES,
            lib.NB_SAMPLES_MAX,
            lib.NB_SAMPLES_BYTES // self._numbers,
        )
        if self._taken > most * self._bytes:
            raise ProtocolError(
                f"the worker sent more samples than the run's time allows ({most}){SAME}"
            )
