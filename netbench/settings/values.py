"""Settings that are values of the kernel, each read and written by one operation of the worker."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence

from netbench.settings.setting import Operation, Setting, SettingContext


class Value(Setting):
    """The level is in one place or in each of several; places that differ read back as `LEVEL and
    LEVEL`. `syntax` is a regular expression of levels, where that is all that `parse` looks at.
    """

    syntax: str

    def parse(self, level: str) -> str:
        if not re.fullmatch(self.syntax, level):
            raise ValueError(self.levels)
        return level

    @abstractmethod
    def places(self, what: str, place: SettingContext) -> Sequence[tuple[str, ...]]:
        """An operation and its target for each. Errors: ValueError when the host has none."""

    def decode(self, text: str) -> str:
        """What an operation reads as a level."""
        return text.strip()

    def encode(self, level: str) -> str:
        """A level as it is written."""
        return level

    def read(self, what: str, place: SettingContext) -> str:
        levels = (self.decode(place.read(*each)) for each in self.places(what, place))
        return " and ".join(dict.fromkeys(levels))

    def changes(self, what: str, level: str, place: SettingContext) -> list[Operation]:
        return [
            Operation(op, tuple(target), self.encode(level))
            for op, *target in self.places(what, place)
            if self.decode(place.read(op, *target)) != level
        ]
