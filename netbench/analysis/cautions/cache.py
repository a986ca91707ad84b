"""A source that was not in the page cache as asked."""

from __future__ import annotations

from collections.abc import Iterator

from netbench.analysis.cautions.base import Caution, CautionRule, Evidence
from netbench.record import Record, SideCounters
from netbench.units import count

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

    def observe(self, record: Record) -> None:
        sender = record.sender
        if sender is None or sender.resident is None:
            return
        place = record.cell, record.pair
        if sender.cache == "cold":
            share = _from_memory(sender, record.receiver)
            if sender.resident or share > READ_AHEAD:
                self.cold.setdefault(place, []).append(share)
        elif sender.resident != sender.source_size:
            self.warm[place] = self.warm.get(place, 0) + 1

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


def _from_memory(sender: SideCounters, receiver: SideCounters | None) -> float:
    """The share of a cold run's bytes that came from the page cache: those of the window that the
    process did not read from storage, or what was there before the run; where nothing says what was
    read (NFS), what was sent more than once.
    """
    size = sender.source_size or 0
    before = (sender.resident or 0) / size if size else 0.0
    begun, sent = _bytes(sender)
    if sent > begun and (read := sender.meters.get("disk", {}).get("read_bytes")):
        return max(before, 1.0 - float(read[1] - read[0]) / (sent - begun))
    whole = sent or (_bytes(receiver)[1] if receiver else 0)
    return max(before, 1 - size / whole if whole > size else 0.0)


def _bytes(side: SideCounters) -> tuple[int, int]:
    """Bytes of all flows at the opening and the closing of the window, warm-up included."""
    opening, closing = side.meters.get("flow", {}).get("bytes", ([], []))
    return sum(opening), sum(closing)
