"""A source that was not in the page cache as asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from netbench.base.units import count
from netbench.read.cautions.rule import Caution, CautionRule, Evidence
from netbench.read.stack import Runs
from netbench.result.record import SideCounters

Numbers = npt.NDArray[Any]
READ_AHEAD = 0.05
"""The kernel reads ahead: this share of a window may have been read before it."""
WARM_REMEDY = "use a source that fits in memory"
COLD_REMEDY = "use a file on a disk, and send it once (bytes: at most its size, warmup: 0s)"


class Cache(CautionRule):
    """A warm source was partly on the disk, or a cold one partly in memory."""

    name = "cache"
    severity = 45
    about = (
        "The source was not in the page cache when a run began (warm), or part of what was sent"
        " came from the page cache and not from a disk (cold)."
    )
    reads = (
        "`resident`, `source_size`, `cache`, `disk.read_bytes` and `flow.bytes` of the sender; of"
        " the receiver where it reads the source (NFS)"
    )
    shows = "the number of such runs, and how much of a cold source came from memory"
    remedy = f"warm: {WARM_REMEDY}; cold: {COLD_REMEDY}"

    def __init__(self) -> None:
        self.warm: dict[tuple[str, str], int] = {}
        self.cold: dict[tuple[str, str], list[float]] = {}

    def observe(self, runs: Runs) -> None:
        record, sender = runs.record, runs.record.sender
        if sender is None or sender.resident is None:
            return
        place = record.cell, record.pair
        if sender.cache == "cold":
            shares = _from_memory(sender, record.receiver)
            told = shares[(np.asarray(sender.resident) != 0) | (shares > READ_AHEAD)]
            if len(told):
                self.cold.setdefault(place, []).extend(told.tolist())
        elif partly := np.count_nonzero(sender.resident != sender.source_size):
            self.warm[place] = self.warm.get(place, 0) + int(partly)

    def report(self, evidence: Evidence) -> Iterator[Caution]:
        if self.warm:
            yield self.caution(
                "The source was not in the page cache when runs began, as cache: warm asks.",
                evidence.labels(self.warm),
                f"in {count(sum(self.warm.values()), 'run')}",
                remedy=WARM_REMEDY,
            )
        if self.cold:
            shares = [share for runs in self.cold.values() for share in runs]
            least, most = (f"{bound(shares):.0%}" for bound in (min, max))
            yield self.caution(
                "Part of what was sent came from the page cache, though cache: cold asks for the"
                " disk.",
                evidence.labels(self.cold),
                f"in {count(len(shares), 'run')},"
                f" {least if least == most else f'{least} to {most}'} of the bytes",
                remedy=COLD_REMEDY,
            )


def _from_memory(sender: SideCounters, receiver: SideCounters | None) -> Numbers:
    """The share of each cold run's bytes that came from the page cache: those of the window that
    the process did not read from storage, or what was there before the run; where nothing says what
    was read (NFS), what was sent more than once.
    """
    size = np.asarray(0 if sender.source_size is None else sender.source_size)
    before = _share(np.asarray(sender.resident), size)
    begun, sent = _bytes(sender)
    whole = np.where(sent > 0, sent, _bytes(receiver)[1] if receiver else 0)
    twice = np.where(whole > size, 1 - _share(size, whole), 0.0)
    if read := sender.meters.get("disk", {}).get("read_bytes"):
        stored = 1.0 - _share(read[1] - read[0], sent - begun)
        twice = np.where(sent > begun, stored, twice)
    shares: Numbers = np.maximum(before, twice)
    return shares


def _share(part: Any, whole: Any) -> Numbers:
    """A part of a whole; 0 where there is none."""
    return np.where(whole > 0, part / np.maximum(whole, 1), 0.0)


def _bytes(side: SideCounters) -> tuple[Any, Any]:
    """Bytes of all flows at the opening and the closing of the window, warm-up included."""
    opening, closing = side.meters.get("flow", {}).get("bytes", ([], []))
    return np.asarray(sum(opening)), np.asarray(sum(closing))
