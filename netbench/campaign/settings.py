"""Names of settings, as far as a campaign file needs them: which keys are settings, and which of those are on or off."""

from __future__ import annotations

from collections.abc import Collection, Iterable

FEATURES = ("tso", "gso", "gro", "lro", "sg", "tx_checksum", "rx_checksum")
NAMED = (*FEATURES, "mtu", "rings", "coalesce", "channels", "qdisc", "gso_max_size", "gro_max_size", "rps", "busy_poll")
WHOLE_HOST = ("governor", "turbo", "irq_affinity")
FAMILIES = ("feature.", "sysctl.", "sysfs.")
SIDES = ("sender.", "receiver.")


def bare(key: str) -> str:
    """The setting's name without the side: `sender.gro` -> `gro`."""
    for side in SIDES:
        if key.startswith(side):
            return key.removeprefix(side)
    return key


def is_setting(key: str, commands: Collection[str] = ()) -> bool:
    """Whether a key names a setting, with or without a side. `commands` are the names of the campaign's own."""
    name = bare(key)
    return name in NAMED or name in WHOLE_HOST or name in commands or any(name.startswith(f) and name != f for f in FAMILIES)


def is_switch(key: str) -> bool:
    """Whether a setting is on or off."""
    return bare(key) in FEATURES or bare(key).startswith("feature.")


def spellings(key: str, commands: Iterable[str] = ()) -> list[str]:
    """Valid keys to compare an unknown one with: with its side if it has one."""
    side = next((s for s in SIDES if key.startswith(s)), "")
    return [side + name for name in (*NAMED, *WHOLE_HOST, *commands)]
