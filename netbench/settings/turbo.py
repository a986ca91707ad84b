"""Frequencies above the nominal one."""

from __future__ import annotations

from netbench.base.errors import EngineError
from netbench.settings.setting import Operation, Setting, SettingContext, on_or_off

INTEL, OTHERS = (
    "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "/sys/devices/system/cpu/cpufreq/boost",
)


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
