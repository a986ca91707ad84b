"""Hosts whose CPU is software."""

from __future__ import annotations

from collections.abc import Iterator

from netbench.read.cautions.base import Caution, CautionRule, Evidence


class Emulated(CautionRule):
    """No time that was measured is one of a machine."""

    name = "emulated"
    severity = 230
    about = "A host's CPU is emulated by a program, so that times and rates are of no real machine."
    reads = "the fact `emulated`"
    shows = "the fact"
    remedy = "check functions and the kernel's behaviour with it; measure speed on hardware"

    def report(self, evidence: Evidence) -> Iterator[Caution]:
        if evidence.result.emulated:
            what = (
                "The CPU is emulated by a program. What was moved, refused and counted holds; times"
                " and rates are of no real machine."
            )
            yield self.caution(what, evidence.result.emulated, "the fact `emulated`")
