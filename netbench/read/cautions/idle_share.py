"""What idle CPUs lose, which soak subtracts, has moved during the campaign."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from netbench.read.cautions.rule import Caution, CautionRule, Evidence
from netbench.read.soak import SOAK, idle_share
from netbench.read.stack import Runs
from netbench.result.record import SIDES

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

    def observe(self, runs: Runs) -> None:
        """Take in runs."""
        for who in SIDES:
            side = runs.record.side(who)
            share = None if side is None else idle_share(side)
            if side is None or share is None:
                continue
            opened = np.atleast_1d(side.meters[SOAK]["idle_time_ns"][0])
            known = self._shares.setdefault(side.host, {})
            for at, one in zip(opened, np.atleast_1d(share), strict=True):
                if not np.isnan(one):
                    known[int(at)] = float(one)

    def report(self, evidence: Evidence) -> Iterator[Caution]:
        for host, by_window in self._shares.items():
            if not by_window:
                continue
            least, most = min(by_window.values()), max(by_window.values())
            if most - least >= MOVED:
                yield self.caution(
                    f"Idle CPUs of {host} lost between {least:.1%} and {most:.1%} of their time,"
                    " which soak subtracts.",
                    (host,),
                    f"{len(by_window)} idle windows between blocks",
                )
