"""Congestion control that makes runs depend on time, or that differs without being swept. By what
the sender's sockets read back.
"""

from __future__ import annotations

from netbench.base.units import count
from netbench.read.cautions.rule import CautionRule, Cautions, Evidence

FACTORS = {"congestion", "sysctl.net.ipv4.tcp_congestion_control"}


class Congestion(CautionRule):
    """Cells ran with bbr, or with different congestion control that is not a factor."""

    name = "congestion"
    severity = 80
    reads = "`settings.sender.congestion` of records"
    shows = "the cells of each congestion control"
    remedy = "set transfer.congestion, or sweep it"

    def report(self, evidence: Evidence) -> Cautions:
        used: dict[str, set[str]] = {}
        for r in evidence.result.readbacks:
            if r.name == "congestion" and r.side == "sender" and r.read:
                used.setdefault(r.read, set()).add(evidence.label(r.cell, r.pair))
        for name in sorted(name for name in used if name.startswith("bbr")):
            yield self.caution(
                f"{name} paces by the bandwidth that it probed: throughput depends on when it"
                " probes, and CPU includes its pacing timers.",
                sorted(used[name]),
                f"read back in {count(len(used[name]), 'cell')}",
                remedy="runs of 30 s or more, or cubic where the network is not what is tested",
            )
        if len(used) > 1 and not FACTORS & set(evidence.result.factors):
            each = (
                f"{name} in {count(len(cells), 'cell')}" for name, cells in sorted(used.items())
            )
            yield self.caution(
                "Cells ran with different congestion control, which is not a factor.",
                (),
                "; ".join(each),
            )
