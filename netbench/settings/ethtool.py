"""Settings of the device as ethtool has them, as two tables: features that are on or off, one or
several together, and numbers, of which a level is one or a mapping of several.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import dataclass

from netbench.settings.setting import (
    LINK,
    RUN,
    Operation,
    Setting,
    SettingContext,
    fields,
    on_or_off,
)

_PAIR = re.compile(r"\s*([a-z][a-z0-9_]*)\s*:\s*([0-9]+|on|off)\s*")
_SWITCH = {"on": "1", "off": "0"}


@dataclass
class Feature(Setting):
    """`pattern` names the kernel's features; the setting is on while any of them is, as ethtool
    says too. A family has no pattern: the rest of its name is the feature.
    """

    name: str
    pattern: str
    about: str
    certain = True

    def parse(self, level: str) -> str:
        return on_or_off(level)

    def _features(self, what: str, place: SettingContext) -> dict[str, str]:
        """Those of this setting, with their state: `on`, `off [fixed]`, `off [requested on]`."""
        pattern = what or self.pattern
        every = fields(place.read("features", place.interface))
        features = {name: every[name] for name in fnmatch.filter(every, pattern)}
        if not features:
            raise ValueError(
                f"{place.interface} has no feature {pattern}; see `ethtool -k {place.interface}`"
            )
        return features

    def read(self, what: str, place: SettingContext) -> str:
        states = self._features(what, place).values()
        return "on" if any(state.startswith("on") for state in states) else "off"

    def why_not(self, what: str, level: str, place: SettingContext) -> str:
        now = self.read(what, place)
        if now == level or self._free(what, place):
            return ""
        return f"{place.interface}: {now} [fixed]: the driver cannot switch it {level}"

    def changes(self, what: str, level: str, place: SettingContext) -> list[Operation]:
        if self.read(what, place) == level:
            return []
        free = self._free(what, place)
        value = "".join(f"{name} {level}\n" for name in free)
        return [Operation("features", (place.interface, " ".join(free)), value)] if free else []

    def _free(self, what: str, place: SettingContext) -> list[str]:
        """Those that the driver can switch."""
        features = self._features(what, place)
        return [name for name, state in features.items() if "[fixed]" not in state]


@dataclass
class Parameters(Setting):
    """`name`: also the operation; `plain`: the keys that a level of one number stands for."""

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
        return [Operation(self.name, (place.interface, " ".join(moved)), value)] if moved else []

    def is_ready(self, place: SettingContext) -> bool:
        return place.worker.operate("link", (place.interface, "state"))[0].strip() == "up"


FEATURES = (
    Feature(
        "tso", "tx-tcp*-segmentation", "TCP segmentation offload: the device cuts large segments."
    ),
    Feature(
        "gso",
        "tx-generic-segmentation",
        "Generic segmentation offload: the kernel cuts large segments as late as it can.",
    ),
    Feature(
        "gro",
        "rx-gro",
        "Generic receive offload: the kernel joins what arrives into large segments.",
    ),
    Feature("lro", "rx-lro", "Large receive offload: the device joins what arrives."),
    Feature(
        "sg",
        "tx-scatter-gather*",
        "Scatter-gather: the device sends from several pieces of memory; TSO and zero-copy need"
        " it.",
    ),
    Feature("rx_checksum", "rx-checksum", "The device checks the checksums of what arrives."),
    Feature("tx_checksum", "tx-checksum-*", "The device computes the checksums of what is sent."),
    Feature(
        "feature.", "", "Any ethtool feature by the kernel's name, such as feature.rx-gro-list."
    ),
)
SETTINGS = (
    *FEATURES,
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
