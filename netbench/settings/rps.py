"""Receive packet steering."""

from __future__ import annotations

import re

from netbench.settings.file import KernelFiles
from netbench.settings.setting import SettingContext, cpu_list, cpu_numbers, ranges


def mask(cpus: str) -> str:
    """CPUs as the kernel's hexadecimal mask, in groups of 32."""
    bits = 0 if cpus == "none" else sum(1 << cpu for cpu in cpu_numbers(cpus))
    return re.sub("(?<=.)(?=(.{8})+$)", ",", f"{bits:x}")


def unmask(text: str) -> str:
    """The CPUs of such a mask."""
    bits = int(text.strip().replace(",", "") or "0", 16)
    return ranges(cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1)


class Rps(KernelFiles):
    name = "rps"
    about = (
        "Receive packet steering: the CPUs that process what arrives, for all receive queues of the"
        " interface."
    )
    levels = "a list of CPUs such as 0-3, or none"

    def parse(self, level: str) -> str:
        return cpu_list(level)

    def files(self, place: SettingContext) -> list[str]:
        folder = f"/sys/class/net/{place.interface}/queues"
        return [
            f"{folder}/{name}/rps_cpus"
            for name in place.read("list", folder).split()
            if name.startswith("rx-")
        ]

    def decode(self, text: str) -> str:
        return unmask(text)

    def encode(self, level: str) -> str:
        return mask(level)
