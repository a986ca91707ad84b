"""Which CPUs take the interface's interrupts."""

from __future__ import annotations

from netbench.settings.base import SettingContext, cpu_list
from netbench.settings.file import KernelFiles


class IrqAffinity(KernelFiles):
    name = "irq_affinity"
    about = "CPUs that take the interrupts of the interface's device."
    levels = "a list of CPUs such as 0-3"
    whole_kernel = True

    def parse(self, level: str) -> str:
        if level == "none":
            raise ValueError(self.levels)
        return cpu_list(level)

    def files(self, place: SettingContext) -> list[str]:
        device = f"/sys/class/net/{place.interface}/device"
        if "device" not in place.read("list", f"/sys/class/net/{place.interface}").split():
            raise ValueError(
                f"{place.interface} has no interrupts, because it is a virtual interface"
            )
        if "MODALIAS=virtio:" in place.read("file", f"{device}/uevent"):
            device += "/.."  # the PCI device behind it has the interrupts
        if "msi_irqs" not in place.read("list", device).split():
            raise ValueError(f"{place.interface} has no message-signalled interrupts of its own")
        return [
            f"/proc/irq/{irq}/smp_affinity_list"
            for irq in place.read("list", f"{device}/msi_irqs").split()
        ]
