"""What idle CPUs lose, which soak subtracts, has moved during the campaign."""

from __future__ import annotations

from collections.abc import Iterator

from netbench.analysis.cautions.base import Caution, CautionRule, Evidence
from netbench.analysis.soak import SOAK, idle_counted
from netbench.record import SIDES, Record

MOVED = 0.005  # of a CPU's time: what the meter is accurate to


class IdleShare(CautionRule):
    """Each idle window is in the records of the block that follows it."""

    name = "idle"
    severity = 95
    about = (
        f"The share of time that idle CPUs lose, which soak subtracts, moved by {MOVED:.1%} of a"
        " CPU or more between blocks. CPU by soak is off by up to as much."
    )
    reads = "the idle windows in the records' counters of soak"
    shows = "the least and the largest idle share, and the number of idle windows"
    remedy = "keep other machines of the same hypervisor and other programs quiet, and repeat"

    def __init__(self) -> None:
        self._shares: dict[str, dict[int, float]] = {}  # by host and opening of the idle window

    def observe(self, record: Record) -> None:
        """Take in a record."""
        for who in SIDES:
            side = record.side(who)
            counters = side.meters.get(SOAK) if side else None
            if side is None or not counters or "idle_time_ns" not in counters:
                continue
            idle = idle_counted(counters)
            if idle is not None:
                opened = counters["idle_time_ns"][0]
                self._shares.setdefault(side.host, {})[opened] = idle.interrupted

    def report(self, evidence: Evidence) -> Iterator[Caution]:
        for host, by_window in self._shares.items():
            least, most = min(by_window.values()), max(by_window.values())
            if most - least >= MOVED:
                yield self.caution(
                    f"Idle CPUs of {host} lost between {least:.1%} and {most:.1%} of their time,"
                    " which soak subtracts.",
                    (host,),
                    f"{len(by_window)} idle windows between blocks",
                )
