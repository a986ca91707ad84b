"""Settings as far as a campaign file needs them: which keys are settings, and which levels they
take.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

from netbench.model import Command
from netbench.settings.base import HOST, LINK
from netbench.settings.catalogue import SIDES, find, known, side_of
from netbench.settings.scope import layers

KERNEL = "kernel"
NO_COMMANDS: Mapping[str, Command] = MappingProxyType({})


def is_setting(key: str, commands: Collection[str] = ()) -> bool:
    """Whether a key names a setting, with or without a side. `commands` are the names of the
    campaign's own.
    """
    name = side_of(key)[1]
    return name in commands or find(name, NO_COMMANDS) is not None


def why_no_level(key: str, level: str) -> str:
    """What a setting expects, when this is no level of it; or "". The campaign's own settings take
    any word.
    """
    setting_and_name = find(side_of(key)[1], NO_COMMANDS)
    if setting_and_name is None:
        return ""
    setting, name = setting_and_name
    try:
        setting.parse(level)
        setting.is_whole_kernel(name)  # a family's name has to make sense too
    except ValueError as error:
        return str(error)
    return ""


def differing_ends(
    always: Mapping[str, str], cell: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:
    """(name, sender's level, receiver's level) of each setting that differs between the ends of a
    pair.
    """
    ends = [ChainMap(*layers(always, cell, NO_COMMANDS, side)) for side in ("sender", "receiver")]
    for name in sorted(ends[0].keys() & ends[1].keys()):
        levels = ends[0][name], ends[1][name]
        if len({_as_read(name, level) for level in levels}) > 1:
            yield name, *levels


def _as_read(name: str, level: str) -> str:
    """A level as it reads back: `yes` is `on`; one that is wrong, or of the campaign's own
    settings, as it is written.
    """
    match = find(name, NO_COMMANDS)
    try:
        return match[0].parse(level) if match else level
    except ValueError:
        return level


def is_on(key: str, level: str) -> bool:
    """Whether this level of a setting is not its `off`."""
    return _as_read(side_of(key)[1], level) != "off"


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
