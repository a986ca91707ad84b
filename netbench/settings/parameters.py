"""Settings that are numbers of the device, as ethtool sets them, as a table. A level is one number,
or a mapping of several.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from netbench.settings.setting import LINK, RUN, Operation, Setting, SettingContext, fields

_PAIR = re.compile(r"\s*([a-z][a-z0-9_]*)\s*:\s*([0-9]+|on|off)\s*")
_SWITCH = {"on": "1", "off": "0"}


@dataclass
class Parameters(Setting):
    """`name` is also the worker's operation; `plain` are the keys that a level of one number
    stands for.
    """

    name: str
    plain: tuple[str, ...]
    about: str
    levels: str
    cost: str = LINK

    def parse(self, level: str) -> str:
        return ", ".join(f"{key}: {value}" for key, value in self._wanted(level).items())

    def _wanted(self, level: str) -> dict[str, str]:
        if level.isdecimal():
            return dict.fromkeys(self.plain, str(int(level)))
        inside = level.removeprefix("{").removesuffix("}")
        pairs = [_PAIR.fullmatch(part) for part in re.split("[,;]", inside)]
        values = {pair[1]: _SWITCH.get(pair[2], pair[2]) for pair in pairs if pair}
        if None in pairs or not values:
            raise ValueError(self.levels)
        return values

    def _now(self, place: SettingContext) -> Mapping[str, str]:
        return fields(place.read(self.name, place.interface))

    def read(self, what: str, place: SettingContext) -> str:
        return ", ".join(
            f"{key}: {value}" for key, value in self._now(place).items() if not key.endswith("_max")
        )

    def reading(self, what: str, level: str, place: SettingContext) -> str:
        now = self._now(place)
        return ", ".join(f"{key}: {now.get(key, 'none')}" for key in self._wanted(level))

    def why_not(self, what: str, level: str, place: SettingContext) -> str:
        now = self._now(place)
        for key, value in self._wanted(level).items():
            if key not in now:
                return (
                    f"{place.interface} has no {key}; it has"
                    f" {', '.join(k for k in now if not k.endswith('_max'))}"
                )
            if int(value) > int(now.get(f"{key}_max", value)):
                return (
                    f"{place.interface} takes at most {now[f'{key}_max']} for {key}, asked {value}"
                )
        return ""

    def changes(self, what: str, level: str, place: SettingContext) -> list[Operation]:
        now = self._now(place)
        moved = {key: value for key, value in self._wanted(level).items() if now.get(key) != value}
        value = "".join(f"{key} {number}\n" for key, number in moved.items())
        return [Operation(self.name, (place.interface,), value)] if moved else []

    def is_ready(self, place: SettingContext) -> bool:
        return place.worker.operate("link", (place.interface, "state"))[0].strip() == "up"


SETTINGS = (
    Parameters(
        "rings",
        ("rx", "tx"),
        "Sizes of the device's descriptor rings.",
        "a number for both directions, or a mapping such as {rx: 4096, tx: 1024}",
    ),
    Parameters(
        "channels",
        ("combined",),
        "Queues of the device.",
        "a number of combined channels, or a mapping such as {rx: 4, tx: 4}",
    ),
    Parameters(
        "coalesce",
        ("rx_usecs", "tx_usecs"),
        "How long and for how many packets the device waits before it interrupts.",
        "microseconds for both directions, or a mapping such as {rx_usecs: 50, adaptive_rx: off}",
        RUN,
    ),
)
