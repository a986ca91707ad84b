"""Hosts whose CPU is software. No time that was measured is one of a machine."""

from __future__ import annotations

from netbench.read.cautions.rule import CautionRule, Cautions, Evidence


class Emulated(CautionRule):
    """A host's CPU is emulated by a program, so that times and rates are of no real machine."""

    name = "emulated"
    severity = 230
    reads = "the fact `emulated`"
    shows = "the fact"
    remedy = "check functions and the kernel's behaviour with it; measure speed on hardware"

    def report(self, evidence: Evidence) -> Cautions:
        if evidence.result.emulated:
            what = (
                "The CPU is emulated by a program. What was moved, refused and counted holds; times"
                " and rates are of no real machine."
            )
            yield self.caution(what, evidence.result.emulated, "the fact `emulated`")
