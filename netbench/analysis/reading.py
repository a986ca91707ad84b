"""What a report quotes of campaign.yaml. netbench/result_files.py reads the other files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml


@dataclass(frozen=True)
class CampaignWords:
    """What is taken from campaign.yaml: its `about`, and what it writes of the transfer and of
    settings and tools (`transfer.chunk` -> `64K`; None where it cannot be read).
    """

    about: str = ""
    asked: Mapping[str, str] | None = None


def read_campaign(folder: Path) -> CampaignWords:
    """The words of campaign.yaml; empty where it is not there or cannot be read."""
    try:
        document = yaml.load((folder / "campaign.yaml").read_text(), Loader=yaml.BaseLoader)
    except (OSError, ValueError, yaml.YAMLError):
        return CampaignWords()
    if not isinstance(document, dict):
        return CampaignWords()
    parts = {name: document.get(name) for name in ("transfer", "settings", "tools")}
    asked = {
        f"{name}.{key}": value if isinstance(value, str) else json.dumps(value)
        for name, part in parts.items()
        if isinstance(part, dict)
        for key, value in part.items()
    }
    return CampaignWords(str(document.get("about", "")), asked)
