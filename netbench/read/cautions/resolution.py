"""Windows that are short for the steps of /proc/stat."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from netbench.read.cautions.rule import Caution, CautionRule, Evidence
from netbench.read.stack import Runs

ERROR = 0.1  # of what a run reads: its standard error
OF_A_TICK = 6**-0.5  # sd of the difference of two times, each in whole ticks


class Resolution(CautionRule):
    """/proc/stat counts whole ticks, so CPU comes in steps and may exceed what the machine has."""

    name = "resolution"
    severity = 30
    about = (
        "The measured window is so short that the steps of procstat, whole clock ticks, alone give"
        f" the CPU time of one run a standard error of over {ERROR:.0%}."
    )
    reads = "`time_ns` of senders with `procstat`, CPU by procstat, and the fact `clock_ticks`"
    shows = "the shortest window; the error of one run, where it is the largest"
    remedy = "longer runs, the meter cpuidle, or the metrics by rusage, which count nanoseconds"

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
        errors: dict[tuple[str, str], float] = {}
        for c in evidence.cells:
            window = self.windows.get((c.cell, c.pair))
            counted = [c.intervals.get(f"{who}_cpu.procstat") for who in ("sender", "system")]
            least = min((each.mean for each in counted if each), default=0.0)
            if window is not None:
                at_once = OF_A_TICK / ticks / window if window else math.inf
                error = at_once / least if least > 0 else math.inf
                if error > ERROR:
                    errors[c.cell, c.pair] = error
        if errors:
            worst = max(errors, key=errors.__getitem__)
            window = self.windows[worst]
            yield self.caution(
                "The measured window is short for the steps of /proc/stat: CPU by procstat of one"
                " run is a rough estimate.",
                evidence.labels(errors),
                f"standard error of one run {errors[worst]:.0%} of what it reads, the most:"
                f" {window * 1e3:.3g} ms are {window * ticks:.2g} ticks of 1/{ticks} s",
            )
