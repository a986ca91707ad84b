"""What one run measured: the part of its record that its workers fill, and what is kept beside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from netbench.engine.binding import Vector
from netbench.result.record import NO_PROOF, NO_SETTINGS, Capture, Proof, Settings, SideCounters
from netbench.run import readings
from netbench.run.ends import End


@dataclass(frozen=True)
class Measurement:
    """`samples`: lines of samples/; `output`, `server_output`: what an external tool printed, and
    `captures` the numbers in it.
    """

    sender: SideCounters
    receiver: SideCounters
    settings: Settings = NO_SETTINGS
    proof: Proof = NO_PROOF
    samples: Sequence[Mapping[str, Any]] = ()
    output: str = ""
    server_output: str = ""
    captures: Mapping[str, Capture] = field(default_factory=dict)


def side_counters(end: End, vectors: Iterable[Vector], **notes: Any) -> SideCounters:
    """One side's counters of a result. `notes`: the other fields of SideCounters."""
    counters = readings.counters(vectors, end.worker.catalogue)
    time_ns = counters.pop("time_ns", None)
    for meter, idle in end.idle.items():
        if meter in counters:
            counters[meter] = {**counters[meter], **idle}
    return SideCounters(
        end.host.name, tuple(time_ns) if time_ns else None, meters=counters, **notes
    )
