"""Settings as far as a campaign file needs them: which keys are settings, and which levels they take."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from netbench.model import Command
from netbench.settings.base import HOST, LINK
from netbench.settings.catalogue import SIDES, find, known, side_of

KERNEL = "kernel"
NO_COMMANDS: Mapping[str, Command] = MappingProxyType({})


def is_setting(key: str, commands: Collection[str] = ()) -> bool:
    """Whether a key names a setting, with or without a side. `commands` are the names of the campaign's own."""
    name = side_of(key)[1]
    return name in commands or find(name, NO_COMMANDS) is not None


def why_no_level(key: str, level: str) -> str:
    """What a setting expects, when this is no level of it; or "". The campaign's own settings take any word."""
    found = find(side_of(key)[1], NO_COMMANDS)
    if found is None:
        return ""
    setting, what = found
    try:
        setting.parse(level)
        setting.is_whole_kernel(what)  # a family's name has to make sense too
    except ValueError as error:
        return str(error)
    return ""


def spellings(key: str, commands: Iterable[str] = ()) -> list[str]:
    """Valid keys to compare an unknown one with: with its side if it has one."""
    side = next((s for s in SIDES if key.startswith(s)), "")
    return [side + name for name in (*known(), *commands) if not name.endswith(".")]


def pattern() -> str:
    """A regular expression of the keys that are settings, without the campaign's own."""
    names = "|".join(name for name in known() if not name.endswith("."))
    families = "|".join(name.removesuffix(".") for name in known() if name.endswith("."))
    return rf"^((sender|receiver)[.])?({names}|({families})[.].+)$"


def is_costly(key: str) -> bool:
    """Whether a change of this factor resets a link or a host."""
    found = find(side_of(key)[1], NO_COMMANDS)
    return key == KERNEL or (found is not None and found[0].cost in (LINK, HOST))
