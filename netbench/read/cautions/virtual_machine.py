"""Hosts that are guests of this machine under KVM."""

from __future__ import annotations

from collections.abc import Iterator

from netbench.read.cautions.base import Caution, CautionRule, Evidence


class VirtualMachine(CautionRule):
    """Costs that were measured are those of a guest, beside the controller."""

    name = "virtual_machine"
    severity = 228
    about = "A host is a lab's guest under KVM, so that costs are those of a virtual machine."
    reads = "the fact `lab_guest`"
    shows = "the fact"
    remedy = "take differences between kernels from it; measure what hardware costs on hardware"

    def report(self, evidence: Evidence) -> Iterator[Caution]:
        if evidence.result.virtual_machines:
            what = (
                "Guests of one machine under KVM: packets, interrupts and timers cost what they"
                " cost in a virtual machine, and guests share the machine with the controller."
            )
            yield self.caution(what, evidence.result.virtual_machines, "the fact `lab_guest`")
