"""Settings that are one or several of ethtool's features, as a table."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass

from netbench.settings.setting import Operation, Setting, SettingContext, fields, on_or_off


@dataclass
class Feature(Setting):
    """`pattern` names the kernel's features; the setting is on while any of them is, as ethtool
    says too. A family has no pattern: the rest of its name is the feature.
    """

    name: str
    pattern: str
    about: str

    def parse(self, level: str) -> str:
        return on_or_off(level)

    def _features(self, what: str, place: SettingContext) -> dict[str, str]:
        """Those of the interface that belong to this setting, with their state: `on`, `off
        [fixed]`, `off [requested on]`.
        """
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
        value = "".join(f"{name} {level}\n" for name in self._free(what, place))
        return [Operation("features", (place.interface,), value)] if value else []

    def _free(self, what: str, place: SettingContext) -> list[str]:
        """Those that the driver can switch."""
        features = self._features(what, place)
        return [name for name, state in features.items() if "[fixed]" not in state]


SETTINGS = (
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
