"""Files of the kernel's as settings: any one of them, or several that hold the same level."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence

from netbench.settings.setting import Operation, Setting, SettingContext

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
        if self.read(what, place) == level:
            return []
        return [Operation("file", (self.path(what),), level)]


class KernelFiles(Setting):
    """The level is in each of several files; files that differ read back as `LEVEL and LEVEL`."""

    @abstractmethod
    def files(self, place: SettingContext) -> Sequence[str]:
        """The files. Errors: ValueError when the host has none."""

    def decode(self, text: str) -> str:
        """A file's text as a level."""
        return text.strip()

    def encode(self, level: str) -> str:
        """A level as it is written to a file."""
        return level

    def read(self, what: str, place: SettingContext) -> str:
        levels = (self.decode(place.read("file", file)) for file in self.files(place))
        return " and ".join(dict.fromkeys(levels))

    def changes(self, what: str, level: str, place: SettingContext) -> list[Operation]:
        return [
            Operation("file", (file,), self.encode(level))
            for file in self.files(place)
            if self.decode(place.read("file", file)) != level
        ]
