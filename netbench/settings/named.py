"""Every setting there is: of each file in this folder the classes that have a name and the rows of
its table SETTINGS; and the campaign's own, as three programs: one sets a level, one prints it, one
puts it back.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import netbench.settings
from netbench.base.errors import EngineError
from netbench.base.names import AS_IS
from netbench.model import Command, SettingLevel
from netbench.settings.setting import Operation, Setting, SettingContext

SIDES = ("sender.", "receiver.")
COMMAND_MAX = 16_000  # bytes of a program and its arguments
_PLACE = re.compile(r"(?<!\$)\{(level|interface)\}")
_KEYS = ("tcp_fastopen_key", "stable_secret")  # sysctls


@cache
def known() -> Mapping[str, Setting]:
    """Settings by name; names of families end with a dot."""
    settings: dict[str, Setting] = {}
    for file in pkgutil.iter_modules(netbench.settings.__path__):
        module = importlib.import_module(f"netbench.settings.{file.name}")
        settings |= {row.name: row for row in getattr(module, "SETTINGS", ())}
        for _, kind in inspect.getmembers(module, inspect.isclass):
            if issubclass(kind, Setting) and isinstance(kind.__dict__.get("name"), str):
                settings[kind.name] = kind()
    return dict(sorted(settings.items()))


def side_of(key: str) -> tuple[str, str]:
    """(side, name): `sender.gro` is ("sender", "gro"); a bare key has no side."""
    for side in SIDES:
        if key.startswith(side):
            return side.removesuffix("."), key.removeprefix(side)
    return "", key


def find(name: str, commands: Mapping[str, Command]) -> tuple[Setting, str] | None:
    """The setting of a name without its side, and the rest of the name in a family; or None."""
    if name in commands:
        return CommandSetting(commands[name]), ""
    family, dot, what = name.partition(".")
    setting = known().get(f"{family}{dot}")
    return (setting, what) if setting and (what or not dot) else None


def parse_level(key: str, written: str, commands: Mapping[str, Command]) -> SettingLevel:
    """A level of the setting of a key, with or without a side. Errors: ValueError with what the
    setting expects, or what the name of a family has to be.
    """
    setting_and_name = find(side_of(key)[1], commands)
    if setting_and_name is None:
        raise ValueError(f"no setting {key!r}")
    setting, what = setting_and_name
    setting.is_whole_kernel(what)
    if written == AS_IS and what.endswith(_KEYS):
        raise ValueError("a key of the campaign's own: no record holds a host's")
    return SettingLevel(written if written == AS_IS else setting.parse(written), written)


@dataclass(frozen=True)
class CommandSetting(Setting):
    """Its arguments with `{level}` (in `undo`: as it was before) and `{interface}` filled in."""

    command: Command

    whole_kernel = True  # nobody knows what a program changes
    about = "A setting of the campaign's own, as programs."
    levels = "what its program takes"

    def parse(self, level: str) -> str:
        return level.strip()

    def read(self, what: str, place: SettingContext) -> str:
        level = place.read("exec", *_filled(self.command.read, "", place)).strip()
        if "\n" in level:
            why = f"`read` printed several lines: {level!r:.150}"
            raise EngineError(0, 0, "", why, "let it print the level alone")
        return level

    def changes(self, what: str, level: str, place: SettingContext) -> list[Operation]:
        before = self.read(what, place)
        if before == level:
            return []
        argv, undo = (
            _filled(self.command.apply, level, place),
            _filled(self.command.undo, before, place),
        )
        if len("\0".join(undo).encode()) > COMMAND_MAX:
            why = f"`undo` with what `read` printed is longer than {COMMAND_MAX:,} bytes"
            raise EngineError(0, 0, "", why, "let it print less")
        return [Operation("exec", argv, undo=undo, look=_filled(self.command.read, "", place))]


def _filled(argv: tuple[str, ...], level: str, place: SettingContext) -> tuple[str, ...]:
    """What `{level}` and `{interface}` stand for; `${level}` is a shell's own."""

    def fill(found: re.Match[str]) -> str:
        return level if found[1] == "level" else place.interface

    return tuple(_PLACE.sub(fill, word) for word in argv)
