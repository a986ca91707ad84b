"""Reading an entry of facts.json: what is known about one host in one boot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from netbench.facts.cpu import NOT_EMULATED

_FROM_HELLO = ("engine", "layout")  # beside `facts` in an entry


def known_facts(entry: Mapping[str, Any]) -> dict[str, str]:
    """The facts that an entry knows, by name."""
    values = {name: entry.get(name) for name in _FROM_HELLO} | dict(entry.get("facts", {}))
    return {name: str(value) for name, value in values.items() if value is not None}


def emulated(entry: Mapping[str, Any]) -> bool:
    """Whether the host's CPU is emulated in software, so that what it measures is not the speed of
    any machine.
    """
    return (entry.get("facts", {}).get("emulated") or NOT_EMULATED) != NOT_EMULATED
