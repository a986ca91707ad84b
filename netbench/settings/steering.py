"""Which CPUs take what arrives at an interface: its interrupts, and receive packet steering."""

from __future__ import annotations

import re

from netbench.settings.setting import SettingContext, cpu_list, cpu_numbers, fields, ranges
from netbench.settings.values import Value


class IrqAffinity(Value):
    name = "irq_affinity"
    about = "CPUs that take the interrupts of the interface's device."
    levels = "a list of CPUs such as 0-3"
    whole_kernel = True

    def parse(self, level: str) -> str:
        if level == "none":
            raise ValueError(self.levels)
        return cpu_list(level)

    def places(self, what: str, place: SettingContext) -> list[tuple[str, ...]]:
        bus = fields(place.read("driver", place.interface)).get("bus")
        if bus is None:
            raise ValueError(
                f"{place.interface} has no interrupts, because it is a virtual interface"
            )
        folder = f"/sys/bus/pci/devices/{bus}"
        if "msi_irqs" not in place.read("list", folder).split():
            raise ValueError(f"{place.interface} has no message-signalled interrupts of its own")
        numbers = place.read("list", f"{folder}/msi_irqs").split()
        return [("file", f"/proc/irq/{number}/smp_affinity_list") for number in numbers]


class Rps(Value):
    name = "rps"
    about = (
        "Receive packet steering: the CPUs that process what arrives, for all receive queues of the"
        " interface."
    )
    levels = "a list of CPUs such as 0-3, or none"

    def parse(self, level: str) -> str:
        return cpu_list(level)

    def places(self, what: str, place: SettingContext) -> list[tuple[str, ...]]:
        folder = f"/sys/class/net/{place.interface}/queues"
        queues = [name for name in place.read("list", folder).split() if name.startswith("rx-")]
        return [("file", f"{folder}/{name}/rps_cpus") for name in queues]

    def decode(self, text: str) -> str:
        """The CPUs of the kernel's hexadecimal mask."""
        bits = int(text.strip().replace(",", "") or "0", 16)
        return ranges(cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1)

    def encode(self, level: str) -> str:
        """CPUs as such a mask, in groups of 32."""
        bits = 0 if level == "none" else sum(1 << cpu for cpu in cpu_numbers(level))
        return re.sub("(?<=.)(?=(.{8})+$)", ",", f"{bits:x}")
