"""What a report quotes of campaign.yaml. netbench/result/files.py reads the other files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from netbench.base.errors import StoreError
from netbench.base.opening import read_inside
from netbench.result.codec import unreadable

LONGEST, MOST_VALUES, DEEPEST = 1 << 20, 100_000, 32
"""Bytes of a campaign.yaml, its values with aliases written out, and how deep they are: more is no
campaign (campaign/yaml_tree.py).
"""
LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


@dataclass(frozen=True)
class CampaignWords:
    """What is taken from campaign.yaml: its `about`, and what it writes of the transfer and of
    settings, commands, tools and kernels (`transfer.chunk` -> `64K`; None where it cannot be read).
    """

    about: str = ""
    asked: Mapping[str, str] | None = None


def read_campaign(folder: Path) -> CampaignWords:
    """The words of campaign.yaml; empty where it is not there or cannot be read."""
    try:
        document = read_keys(folder / "campaign.yaml")
    except StoreError:
        return CampaignWords()
    named = ("transfer", "settings", "command", "tools", "kernels")
    parts = {name: document.get(name) for name in named}
    asked = {
        f"{name}.{key}": value if isinstance(value, str) else json.dumps(value)
        for name, part in parts.items()
        if isinstance(part, dict)
        for key, value in part.items()
    }
    return CampaignWords(str(document.get("about", "")), asked)


def read_keys(file: Path) -> Mapping[str, Any]:
    """The keys of a campaign.yaml, each scalar as it was written. Errors: StoreError."""
    try:
        text, depth = read_inside(file, most=LONGEST), 0
        # before nodes are made of them, which is slow, and in C without an end of recursion
        for number, event in enumerate(yaml.parse(text, Loader=LOADER)):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST + 1 or number > 2 * MOST_VALUES:
                raise ValueError("too deep or too many values")
        document = yaml.load(text, Loader=LOADER)
        values, room = [document], MOST_VALUES
        while values and room:
            value, room = values.pop(), room - 1
            if isinstance(value, dict | list):
                values += value.values() if isinstance(value, dict) else value
        if values or not isinstance(document, dict):
            raise ValueError("no campaign")
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise unreadable(file, f"cannot be read: {error}") from error
    return document
