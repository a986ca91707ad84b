"""Settings of CPUs: their frequencies, and which of them take what arrives at an interface (its
interrupts, and receive packet steering).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from netbench.base.errors import EngineError
from netbench.settings.setting import Operation, Setting, SettingContext, Value, fields, on_or_off

FOLDER = "/sys/devices/system/cpu/cpufreq"
INTEL, OTHERS = "/sys/devices/system/cpu/intel_pstate/no_turbo", f"{FOLDER}/boost"


class Governor(Value):
    name = "governor"
    about = "Frequency governor of all CPUs."
    levels = "the name of a governor such as performance"
    syntax = "[a-z_]{1,20}"
    whole_kernel = True

    def places(self, what: str, place: SettingContext) -> list[tuple[str, ...]]:
        names = place.read("list", FOLDER).split()
        policies = [name for name in names if name.startswith("policy")]
        if not policies:
            raise ValueError(f"{place.host} has no cpufreq governor")
        return [("file", f"{FOLDER}/{name}/scaling_governor") for name in policies]


class Turbo(Setting):
    name = "turbo"
    about = "Frequencies above the nominal one, for all CPUs."
    whole_kernel = True

    def parse(self, level: str) -> str:
        return on_or_off(level)

    def _switch(self, place: SettingContext) -> tuple[str, dict[str, str]]:
        """The file, and what it holds for each level."""
        try:
            place.read("file", INTEL)
        except EngineError:
            return OTHERS, {"on": "1", "off": "0"}
        return INTEL, {"on": "0", "off": "1"}

    def read(self, what: str, place: SettingContext) -> str:
        file, words = self._switch(place)
        text = place.read("file", file).strip()
        return next((level for level, word in words.items() if word == text), text)

    def changes(self, what: str, level: str, place: SettingContext) -> list[Operation]:
        file, words = self._switch(place)
        return [] if self.read(what, place) == level else [Operation("file", (file,), words[level])]


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


def cpu_list(level: str) -> str:
    """CPUs as the kernel lists them, `0-3,6`; `none` is no CPU. Errors: ValueError."""
    return level if level == "none" else ranges(cpu_numbers(level))


def cpu_numbers(level: str) -> set[int]:
    """The CPUs of a list. Errors: ValueError."""
    cpus: set[int] = set()
    for part in level.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or int(last or first) > 65535:
            raise ValueError("a list of CPUs such as 0-3,6, or none")
        cpus |= set(range(int(first), int(last or first) + 1))
    return cpus


def ranges(cpus: Iterable[int]) -> str:
    """CPUs in the kernel's own words: `0-3,6`, `none`."""
    spans: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if spans and cpu == spans[-1][1] + 1:
            spans[-1][1] = cpu
        else:
            spans.append([cpu, cpu])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in spans) or "none"
