"""Time of /proc/stat that went missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from netbench.analysis.cautions.base import Caution, CautionRule, Evidence
from netbench.analysis.counters import delta, window_seconds
from netbench.analysis.host_cpus import cpus_online
from netbench.analysis.record_tables import Runs
from netbench.record import SIDES

STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
TOLERATED = 0.01  # of CPUs x window


@dataclass
class _Sum:
    """Ticks of all states and seconds of windows, over the ok runs of a (cell, pair, host)."""

    runs: int = 0
    ticks: float = 0.0
    seconds: float = 0.0


class States(CautionRule):
    """Every moment of every CPU is in one state of /proc/stat."""

    name = "states"
    severity = 62
    about = (
        f"All states of procstat together differ by more than {TOLERATED:.0%} from the time that"
        " all CPUs had within the window: the kernel charged time to the wrong window, or to"
        " nothing."
    )
    reads = "all counters of `procstat`, `time_ns`, and the facts `cpus_online` and `clock_ticks`"
    shows = "the sum of states as a share of CPUs x window, where it is farthest from all of it"
    remedy = "longer runs, or the meter soak, which measures time that was taken from it"

    def __init__(self) -> None:
        self.sums: dict[tuple[str, str, str], _Sum] = {}

    def observe(self, runs: Runs) -> None:
        record = runs.record
        if record.status != "ok":
            return
        for who in SIDES:
            side = record.side(who)
            if side is None or "procstat" not in side.meters:
                continue
            ticks: list[Any] = [delta(side, "procstat", state) for state in STATES]
            window: Any = window_seconds(side)
            if window is None or any(each is None for each in ticks):
                continue
            counted = np.sum(ticks, axis=0).astype(float)
            known = ~np.isnan(counted + window)
            at = self.sums.setdefault((record.cell, record.pair, side.host), _Sum())
            at.runs += int(np.count_nonzero(known))
            at.ticks += sum(counted[known].tolist())
            at.seconds = sum(window[known].tolist(), at.seconds)

    def report(self, evidence: Evidence) -> Iterator[Caution]:
        shares: dict[tuple[str, str, str], float] = {}
        for (cell, pair, host), at in self.sums.items():
            cpus = cpus_online(evidence.result.hosts.get(host, ()))
            if not cpus:
                continue
            whole = cpus * at.seconds * evidence.ticks(host)
            # One tick more or less of each CPU and run is how the kernel counts.
            if abs(at.ticks - whole) > max(TOLERATED * whole, cpus * at.runs):
                shares[cell, pair, host] = at.ticks / whole
        if shares:
            worst = max(shares, key=lambda place: abs(shares[place] - 1))
            yield self.caution(
                "The states of /proc/stat do not add up to the time of all CPUs: CPU by procstat is"
                " off by about as much.",
                evidence.labels((cell, pair) for cell, pair, _ in shares),
                f"{shares[worst]:.1%} of CPUs x window on {worst[2]}, mean of"
                f" {self.sums[worst].runs} runs",
            )
