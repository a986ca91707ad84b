"""Which CPUs take the interface's interrupts."""

from __future__ import annotations

from netbench.settings.base import Operation, Setting, SettingContext, cpu_list


class IrqAffinity(Setting):
    name = "irq_affinity"
    about = "CPUs that take the interrupts of the interface's device."
    levels = "a list of CPUs such as 0-3"
    whole_kernel = True

    def parse(self, level: str) -> str:
        if level == "none":
            raise ValueError(self.levels)
        return cpu_list(level)

    def _files(self, place: SettingContext) -> list[str]:
        device = f"/sys/class/net/{place.interface}/device"
        if "device" not in place.read("list", f"/sys/class/net/{place.interface}").split():
            raise ValueError(f"{place.interface} has no interrupts: no device is behind it")
        if "msi_irqs" not in place.read("list", device).split():
            raise ValueError(f"{place.interface} has no message-signalled interrupts of its own")
        return [
            f"/proc/irq/{irq}/smp_affinity_list"
            for irq in place.read("list", f"{device}/msi_irqs").split()
        ]

    def read(self, what: str, place: SettingContext) -> str:
        return " and ".join(
            dict.fromkeys(place.read("file", file).strip() for file in self._files(place))
        )

    def changes(self, what: str, level: str, place: SettingContext) -> list[Operation]:
        return [
            Operation("file", (file,), level)
            for file in self._files(place)
            if place.read("file", file).strip() != level
        ]
