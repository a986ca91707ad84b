"""Pairs whose ends share a kernel: no meter of the whole kernel can tell the sides apart."""

from __future__ import annotations

from netbench.read.cautions.rule import CautionRule, Cautions, Evidence


class Shared(CautionRule):
    """Sender and receiver share one kernel: CPU of a side is that of its process alone."""

    name = "shared"
    severity = 10
    reads = "boot ids of the hosts of a pair"
    shows = "that the boot ids are equal"
    remedy = "read system_cpu for the whole cost; two hosts tell the sides apart"

    def report(self, evidence: Evidence) -> Cautions:
        pairs = [pair for pair, shared in evidence.result.shared.items() if shared]
        if pairs:
            yield self.caution(
                "Sender and receiver share one kernel: sender_cpu and receiver_cpu are those of"
                " the processes (rusage), without softirq.",
                pairs,
                "equal boot ids",
            )
