"""Pairs whose two ends share a kernel."""

from __future__ import annotations

from collections.abc import Iterator

from netbench.read.cautions.base import Caution, CautionRule, Evidence


class Shared(CautionRule):
    """No meter of the whole kernel can tell the sides apart there."""

    name = "shared"
    severity = 10
    about = "Sender and receiver share one kernel: CPU of a side is that of its process alone."
    reads = "boot ids of the hosts of a pair"
    shows = "that the boot ids are equal"
    remedy = "read system_cpu for the whole cost; two hosts tell the sides apart"

    def report(self, evidence: Evidence) -> Iterator[Caution]:
        pairs = [pair for pair, shared in evidence.result.shared.items() if shared]
        if pairs:
            yield self.caution(
                "Sender and receiver share one kernel: sender_cpu and receiver_cpu are those of"
                " the processes (rusage), without softirq.",
                pairs,
                "equal boot ids",
            )
