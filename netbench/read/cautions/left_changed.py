"""What a host was left with that no setting accounts for. One caution a host."""

from __future__ import annotations

from netbench.base.units import listed
from netbench.read.cautions.rule import CautionRule, Cautions, Evidence

NAMED = 4


class LeftChanged(CautionRule):
    """After everything was put back, sysctls of the network or of memory, or numbers of an
    interface, were not as before the first change, and no setting accounts for that.
    """

    name = "left_changed"
    severity = 205
    reads = "`left_changed` of journal.jsonl"
    shows = "what differs, before and after"
    remedy = (
        "find out what else changed it (another program, or the kernel along with a setting), and"
        " put it back by hand where it matters"
    )

    def report(self, evidence: Evidence) -> Cautions:
        for left in evidence.result.left_changed:
            changes = [f"{name} {was} -> {now}" for name, (was, now) in left.values.items()]
            yield self.caution(
                f"{left.host} was not left as it was: {listed(sorted(left.values), NAMED, ', ')}.",
                (left.host,),
                listed(changes, NAMED, "; "),
            )
