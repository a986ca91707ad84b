"""Windows of few clock ticks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from netbench.analysis.cautions.base import Caution, CautionRule, Evidence
from netbench.analysis.record_shapes import Runs

FEW_TICKS = 10  # in a window: below, one tick more or less is over a tenth of a CPU


class Resolution(CautionRule):
    """/proc/stat counts whole ticks, so CPU comes in steps and may exceed what the machine has."""

    name = "resolution"
    severity = 30
    about = f"The measured window is shorter than {FEW_TICKS} clock ticks, so procstat is coarse."
    reads = "`time_ns` of senders with `procstat`, and the fact `clock_ticks`"
    shows = "the shortest window in ticks"
    remedy = "longer runs, or the metrics by rusage, which counts nanoseconds"

    def __init__(self) -> None:
        self.windows: dict[tuple[str, str], float] = {}  # the shortest in seconds

    def observe(self, runs: Runs) -> None:
        sender = runs.record.sender
        if sender and sender.time_ns and "procstat" in sender.meters:
            opening, closing = sender.time_ns
            place = runs.record.cell, runs.record.pair
            window = int(np.min(closing - opening)) / 1e9
            self.windows[place] = min(self.windows.get(place, window), window)

    def report(self, evidence: Evidence) -> Iterator[Caution]:
        hosts = evidence.result.hosts.values()
        ticks = min((entry.clock_ticks for host in hosts for entry in host), default=100)
        short = {p: window for p, window in self.windows.items() if window * ticks < FEW_TICKS}
        if short:
            shortest = min(short.values())
            yield self.caution(
                "The measured window is so short that CPU by procstat comes in coarse steps.",
                evidence.labels(short),
                f"{shortest * 1e3:.3g} ms are {shortest * ticks:.2g} ticks of 1/{ticks} s",
            )
