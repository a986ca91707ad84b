"""Every setting there is: of each file in this folder the classes that have a name and the rows of
its table SETTINGS; and the campaign's own commands.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from functools import cache

import netbench.settings
from netbench.model import Command, SettingLevel
from netbench.settings.command import CommandSetting
from netbench.settings.setting import Setting

SIDES = ("sender.", "receiver.")


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
    """The setting of a name without its side, and the rest of the name in a family; None when there
    is none.
    """
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
    return SettingLevel(setting.parse(written), written)
