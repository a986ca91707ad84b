"""Hosts that are guests of this machine under KVM. Costs that were measured are those of a guest,
beside the controller.
"""

from __future__ import annotations

from netbench.read.cautions.rule import CautionRule, Cautions, Evidence


class VirtualMachine(CautionRule):
    """A host is a lab's guest under KVM, so that costs are those of a virtual machine."""

    name = "virtual_machine"
    severity = 228
    reads = "the fact `lab_guest`"
    shows = "the fact"
    remedy = "take differences between kernels from it; measure what hardware costs on hardware"

    def report(self, evidence: Evidence) -> Cautions:
        if evidence.result.virtual_machines:
            what = (
                "Guests of one machine under KVM: packets, interrupts and timers cost what they"
                " cost in a virtual machine, and guests share the machine with the controller."
            )
            yield self.caution(what, evidence.result.virtual_machines, "the fact `lab_guest`")
