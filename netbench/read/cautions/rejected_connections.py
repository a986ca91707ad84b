"""Connections that did not show the run's token."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from netbench.base.units import count
from netbench.read.cautions.rule import Caution, CautionRule, Evidence
from netbench.read.stack import Runs


class RejectedConnections(CautionRule):
    """By cell, whatever the pair."""

    name = "rejected_connections"
    severity = 20
    about = "Connections to the data port did not show the run's token, or met a tool's server."
    reads = "`rejected_connections` of the receiver"
    shows = "the number of connections"
    remedy = "find out what scans this network; set port: to a range that nothing else uses"

    def __init__(self) -> None:
        self.connections: dict[str, int] = {}

    def observe(self, runs: Runs) -> None:
        cell, receiver = runs.record.cell, runs.record.receiver
        rejected = int(np.sum(receiver.rejected_connections)) if receiver else 0
        if rejected:
            self.connections[cell] = self.connections.get(cell, 0) + rejected

    def report(self, evidence: Evidence) -> Iterator[Caution]:
        if self.connections:
            total = count(sum(self.connections.values()), "connection")
            yield self.caution(
                "Something else connected to the data port.", self.connections, total
            )
