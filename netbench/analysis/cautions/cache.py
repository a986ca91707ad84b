"""A source that was not in the page cache as asked."""

from __future__ import annotations

from collections.abc import Iterator

from netbench.analysis.cautions.base import Caution, CautionRule, Evidence
from netbench.record import Record
from netbench.units import count


class Cache(CautionRule):
    """A warm source was partly on the disk, or a cold one partly in memory."""

    name = "cache"
    severity = 45
    about = "When a run began, its source was not in the page cache (warm), or was in it (cold)."
    reads = "`resident`, `source_size` and `cache` of the sender, and the bytes of the flows"
    shows = "the number of such runs"
    remedy = (
        "warm: a source that fits in memory; cold: a file on a disk, sent once (bytes: its size,"
        " warmup: 0s)"
    )

    def __init__(self) -> None:
        self.runs: dict[tuple[str, str], int] = {}

    def observe(self, record: Record) -> None:
        sender = record.sender
        if sender is None or sender.resident is None:
            return
        cold, size = sender.cache == "cold", sender.source_size
        sent_again = cold and _read_of_source(record) > (size or 0)  # only its first pass was cold
        if sender.resident != (0 if cold else size) or sent_again:
            place = record.cell, record.pair
            self.runs[place] = self.runs.get(place, 0) + 1

    def report(self, evidence: Evidence) -> Iterator[Caution]:
        if self.runs:
            yield self.caution(
                "The source was not in the page cache (warm), or not out of it (cold), as asked"
                " when runs began.",
                evidence.labels(self.runs),
                f"in {count(sum(self.runs.values()), 'run')}",
            )


def _read_of_source(record: Record) -> int:
    """Bytes read of the source by the closing of the window, warm-up included: the most that a
    stream sent of it, as each sends all of it; where the receiver reads it (NFS), what its streams
    did together, as each has a part.
    """
    sent, received = (
        side.meters.get("flow", {}).get("bytes") if side else None
        for side in (record.sender, record.receiver)
    )
    return (max(sent[1], default=0) if sent else 0) or (sum(received[1]) if received else 0)
