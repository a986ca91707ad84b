"""Which CPUs take the interface's interrupts."""

from __future__ import annotations

from netbench.settings.file import KernelFiles
from netbench.settings.setting import SettingContext, cpu_list, fields


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
        bus = fields(place.read("driver", place.interface)).get("bus")
        if bus is None:
            raise ValueError(
                f"{place.interface} has no interrupts, because it is a virtual interface"
            )
        folder = f"/sys/bus/pci/devices/{bus}"
        if "msi_irqs" not in place.read("list", folder).split():
            raise ValueError(f"{place.interface} has no message-signalled interrupts of its own")
        return [
            f"/proc/irq/{irq}/smp_affinity_list"
            for irq in place.read("list", f"{folder}/msi_irqs").split()
        ]
