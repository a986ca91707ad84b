"""Connections that did not show the run's token."""

from __future__ import annotations

from collections.abc import Iterator

from netbench.analysis.cautions.base import Caution, CautionRule, Evidence
from netbench.record import Record
from netbench.units import count


class RejectedConnections(CautionRule):
    """By cell, whatever the pair."""

    name = "rejected_connections"
    severity = 20
    about = "Connections to the data port did not show the run's token and were rejected."
    reads = "`rejected_connections` of the receiver"
    shows = "the number of connections"
    remedy = "find out what scans this network; set port: to a range that nothing else uses"

    def __init__(self) -> None:
        self.connections: dict[str, int] = {}

    def observe(self, record: Record) -> None:
        rejected = record.receiver.rejected_connections if record.receiver else 0
        if rejected:
            self.connections[record.cell] = self.connections.get(record.cell, 0) + rejected

    def report(self, evidence: Evidence) -> Iterator[Caution]:
        if self.connections:
            total = count(sum(self.connections.values()), "connection")
            yield self.caution(
                "Something else connected to the data port.", self.connections, f"{total} rejected"
            )
