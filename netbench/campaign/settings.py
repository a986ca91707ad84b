"""Settings as far as a campaign file needs them: which keys are some, and their levels."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

from netbench.model import Command, SettingLevel
from netbench.settings.named import SIDES, find, known, side_of
from netbench.settings.scope import layers
from netbench.settings.setting import HOST, LINK

KERNEL = "kernel"
NO_COMMANDS: Mapping[str, Command] = MappingProxyType({})


def is_setting(key: str, commands: Collection[str] = ()) -> bool:
    """Whether a key names a setting, with or without a side. `commands`: the campaign's own."""
    name = side_of(key)[1]
    return name in commands or find(name, NO_COMMANDS) is not None


def differing_ends(
    always: Mapping[str, SettingLevel], cell: Mapping[str, SettingLevel]
) -> Iterator[tuple[str, SettingLevel, SettingLevel]]:
    """(name, sender's level, receiver's level) of each setting in which a pair's ends differ."""
    sender, receiver = (
        ChainMap(*layers(always, cell, NO_COMMANDS, side)) for side in ("sender", "receiver")
    )
    for name in sorted(sender.keys() & receiver.keys()):
        if sender[name] != receiver[name]:
            yield name, sender[name], receiver[name]


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
    match = find(side_of(key)[1], NO_COMMANDS)
    return key == KERNEL or (match is not None and match[0].cost in (LINK, HOST))
