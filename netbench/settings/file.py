"""A file of the kernel's as a setting: sysctl.NAME and sysfs.PATH stand on this."""

from __future__ import annotations

import re
from abc import abstractmethod

from netbench.settings.base import Operation, Setting, SettingContext

CHOICE = re.compile(r"\[([^\]\s]+)\]")


class KernelFile(Setting):
    """White space between words is of no account; of a choice such as `always [madvise] never` the
    level is what is chosen.
    """

    levels = "what the kernel's file takes"

    @abstractmethod
    def path(self, what: str) -> str:
        """The file of a name. Errors: ValueError when it is none."""

    def parse(self, level: str) -> str:
        if not level.strip() or "\0" in level:
            raise ValueError(self.levels)
        return " ".join(level.split())

    def read(self, what: str, place: SettingContext) -> str:
        text = place.read("file", self.path(what))
        chosen = CHOICE.search(text)
        return chosen[1] if chosen else " ".join(text.split())

    def changes(self, what: str, level: str, place: SettingContext) -> list[Operation]:
        return (
            []
            if self.read(what, place) == level
            else [Operation("file", (self.path(what),), level)]
        )
