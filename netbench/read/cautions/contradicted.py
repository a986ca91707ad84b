"""Meters of a host that counted less than its processes used. rusage is exact, and what it counts
is part of what the host did.
"""

from __future__ import annotations

from netbench.read.cautions.rule import CautionRule, Cautions, Evidence
from netbench.read.meter_choice import LEAST


class Contradicted(CautionRule):
    """A meter of the whole host counted less CPU time than the measured processes used, which
    cannot be: CPU metrics without a meter's name are by another one.
    """

    name = "contradicted"
    severity = 64
    reads = f"the columns NAME_cpu.METER and NAME_cpu.{LEAST} of the frame of runs"
    shows = "both means of the cell that lacks the most, and by how much it is short"
    remedy = "longer runs (a meter that samples at clock ticks misses bursts), or the meter soak"

    def report(self, evidence: Evidence) -> Cautions:
        found = evidence.result.contradicted
        for meter in dict.fromkeys(each.meter for each in found):
            mine = [each for each in found if each.meter == meter]
            worst = max(mine, key=lambda each: each.short.mean / each.used)
            share = worst.short.mean / worst.used
            yield self.caution(
                f"{meter} counted less CPU time than the processes used, which cannot be: CPU"
                " metrics without a meter's name are by another meter.",
                evidence.labels((each.cell, each.pair) for each in mine),
                f"{worst.metric} {worst.counted:.3f} by {meter}, {worst.used:.3f} by {LEAST}:"
                f" {share:.1%} short, mean of {worst.short.n} runs",
            )
