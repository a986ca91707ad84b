"""The frequencies of all CPUs: their governor, and whether they go above the nominal one."""

from __future__ import annotations

import re

from netbench.base.errors import EngineError
from netbench.settings.setting import Operation, Setting, SettingContext, on_or_off
from netbench.settings.values import Value

FOLDER = "/sys/devices/system/cpu/cpufreq"
INTEL, OTHERS = "/sys/devices/system/cpu/intel_pstate/no_turbo", f"{FOLDER}/boost"


class Governor(Value):
    name = "governor"
    about = "Frequency governor of all CPUs."
    levels = "the name of a governor such as performance"
    whole_kernel = True

    def parse(self, level: str) -> str:
        if not re.fullmatch("[a-z_]{1,20}", level):
            raise ValueError(self.levels)
        return level

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
