"""Windows of few clock ticks, and loads that ticks tell badly."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from netbench.analysis.cautions.base import Caution, CautionRule, Evidence
from netbench.analysis.host_cpus import cpus_online
from netbench.analysis.record_tables import Runs
from netbench.analysis.tick_error import samples_a_second, tick_error

FEW_TICKS = 10  # in a window: below, one tick more or less is over a tenth of a CPU
ERROR = 0.1  # of what a run reads: its standard error


class Resolution(CautionRule):
    """/proc/stat counts whole ticks, so CPU comes in steps and may exceed what the machine has; and
    what the kernel samples at ticks has the error of a sample.
    """

    name = "resolution"
    severity = 30
    about = (
        f"The measured window is shorter than {FEW_TICKS} clock ticks, or so short for its load"
        f" that sampling at ticks has a standard error of over {ERROR:.0%}: procstat is coarse."
    )
    reads = (
        "`time_ns` of senders with `procstat`, CPU by procstat, and the facts `clock_ticks`,"
        " `tick_rate` and `cpus_online`"
    )
    shows = "the shortest window in ticks; the error of one run, where it is the largest"
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
        errors = {place: e for place, e in self._errors(evidence).items() if place not in short}
        if errors:
            worst = max(errors.values())
            yield self.caution(
                "The measured window is too short for what ticks tell of this load: CPU by procstat"
                " of one run is a rough estimate.",
                evidence.labels(errors),
                f"standard error of one run {worst:.0%} of what it reads, the most",
            )

    def _errors(self, evidence: Evidence) -> dict[tuple[str, str], float]:
        """The standard error of one run by procstat, as a share, where it is over ERROR."""
        errors: dict[tuple[str, str], float] = {}
        for c in evidence.cells:
            place, (sender, receiver) = (c.cell, c.pair), c.pair.split(">")
            if not self.windows.get(place):
                continue
            counted = {"sender": sender, "receiver": receiver}
            if evidence.result.shared.get(c.pair):
                counted = {"system": sender}
            for who, host in counted.items():
                entries = evidence.result.hosts.get(host, ())
                busy = c.intervals.get(f"{who}_cpu.procstat")
                cpus, hz = cpus_online(entries), samples_a_second(entries)
                if busy is None or busy.mean <= 0 or not cpus or not hz:
                    continue
                error = tick_error(busy.mean, cpus, hz, self.windows[place]) / busy.mean
                if error > max(ERROR, errors.get(place, 0)):
                    errors[place] = error
        return errors
