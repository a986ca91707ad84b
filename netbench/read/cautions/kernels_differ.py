"""What compared kernels differ in beside themselves. A driver whose version is the kernel's release
is part of the kernel.
"""

from __future__ import annotations

import itertools

from netbench.base.units import listed
from netbench.facts.comparison import change
from netbench.read.cautions.rule import CautionRule, Cautions, Evidence
from netbench.read.epochs import OF_KERNEL, Epochs
from netbench.stats.by_boot import KERNEL

NAMED = 4


class Kernels(CautionRule):
    """A host differs under two swept kernels in more than the kernel."""

    name = "kernels"
    severity = 100
    reads = "the facts that must match, of each kernel's last boot"
    shows = "each fact that differs with both values"
    remedy = (
        "a comparison of these kernels includes all that: hold it equal by settings unless it is"
        " intended"
    )

    def report(self, evidence: Evidence) -> Cautions:
        names = Epochs(evidence.result.hosts, evidence.result.handled).names
        for host, entries in evidence.result.hosts.items():
            by_kernel = {evidence.result.kernel_of(e): e.known for e in entries}
            by_kernel.pop("", None)
            for (one, was), (other, now) in itertools.pairwise(by_kernel.items()):
                changed = [
                    name
                    for name in names
                    if name in was and name in now and was[name] != now[name]
                    if not name.startswith(OF_KERNEL)
                    and (was[name], now[name]) != (was.get(KERNEL), now.get(KERNEL))
                ]
                if changed:
                    yield self.caution(
                        f"On {host}, {one} and {other} differ in more than the kernel:"
                        f" {listed(changed, NAMED, ', ')}.",
                        (host,),
                        "; ".join(change(name, was[name], now[name]) for name in changed[:NAMED]),
                    )
