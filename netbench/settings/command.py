"""A setting of the campaign's own, as three programs: one sets a level, one prints it, one puts it
back.
"""

from __future__ import annotations

from dataclasses import dataclass

from netbench.model import Command
from netbench.settings.setting import Operation, Setting, SettingContext


@dataclass(frozen=True)
class CommandSetting(Setting):
    """`{level}` and `{interface}` in an argument are replaced; in `undo`, `{level}` is what was
    read before.
    """

    command: Command

    about = "A setting of the campaign's own, as programs."
    levels = "what its program takes"

    def parse(self, level: str) -> str:
        return level.strip()

    def read(self, what: str, place: SettingContext) -> str:
        return place.read("exec", *_filled(self.command.read, "", place)).strip()

    def changes(self, what: str, level: str, place: SettingContext) -> list[Operation]:
        before = self.read(what, place)
        if before == level:
            return []
        argv, undo = (
            _filled(self.command.apply, level, place),
            _filled(self.command.undo, before, place),
        )
        return [Operation("exec", argv, undo=undo, look=_filled(self.command.read, "", place))]


def _filled(argv: tuple[str, ...], level: str, place: SettingContext) -> tuple[str, ...]:
    def fill(word: str) -> str:
        word = word.replace("{level}", level)
        return word.replace("{interface}", place.interface) if "{interface}" in word else word

    return tuple(map(fill, argv))
