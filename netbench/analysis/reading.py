"""The files of a result folder, as docs/records.md describes them. Each is read once.

Errors of all: StoreError with file (and line) for what cannot be read or has another shape.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from netbench.codec import other_schema, parse
from netbench.json_lines import JsonLines, cannot_read
from netbench.record import SCHEMA
from netbench.result_files import NOISE
from netbench.store import MISSHAPEN, misshapen

Hosts = Mapping[str, list[Mapping[str, Any]]]
"""By host its entries of facts.json."""


def read_plan(folder: Path) -> dict[str, Any]:
    """The plan.json of a folder."""
    return _object(folder / "plan.json")


def read_hosts(folder: Path) -> Hosts:
    """The hosts of facts.json; none where there is no such file."""
    file = folder / "facts.json"
    hosts: Hosts = _object(file).get("hosts", {}) if file.is_file() else {}
    return hosts


def _object(file: Path) -> dict[str, Any]:
    """A JSON file of this schema."""
    try:
        value = parse(file.read_bytes(), file)
    except OSError as error:
        raise cannot_read(file, error) from error
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        raise other_schema(file, SCHEMA)
    return value


def read_noise(folder: Path) -> list[Mapping[str, Any]]:
    """The entries of noise.jsonl, if there is one; a last line that is cut is left out."""
    file = folder / NOISE
    entries: list[Mapping[str, Any]] = []
    lines = JsonLines(file)
    for number, line in lines if file.is_file() else ():
        entry = parse(line, lines.where(number))
        try:
            required = {"block": int(entry["block"]), "host": str(entry["host"]), "ns": entry["ns"]}
            entries.append(required | entry)
        except MISSHAPEN as error:
            raise misshapen(lines.where(number), "a reading of noise", error) from error
    return entries


@dataclass(frozen=True)
class CampaignWords:
    """What is taken from campaign.yaml: its `about`, and what it writes of the transfer and of
    settings (`transfer.chunk` -> `64K`; None where it cannot be read).
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
    parts = {name: document.get(name) for name in ("transfer", "settings")}
    asked = {
        f"{name}.{key}": value if isinstance(value, str) else json.dumps(value)
        for name, part in parts.items()
        if isinstance(part, dict)
        for key, value in part.items()
    }
    return CampaignWords(str(document.get("about", "")), asked)
