"""The frequency governor of all CPUs."""

from __future__ import annotations

import re

from netbench.settings.file import KernelFiles
from netbench.settings.setting import SettingContext

FOLDER = "/sys/devices/system/cpu/cpufreq"


class Governor(KernelFiles):
    name = "governor"
    about = "Frequency governor of all CPUs."
    levels = "the name of a governor such as performance"
    whole_kernel = True

    def parse(self, level: str) -> str:
        if not re.fullmatch("[a-z_]{1,20}", level):
            raise ValueError(self.levels)
        return level

    def files(self, place: SettingContext) -> list[str]:
        policies = [
            name for name in place.read("list", FOLDER).split() if name.startswith("policy")
        ]
        if not policies:
            raise ValueError(f"{place.host} has no cpufreq governor")
        return [f"{FOLDER}/{name}/scaling_governor" for name in policies]
