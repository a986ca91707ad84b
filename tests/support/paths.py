"""Where the project lies, and the results that are part of it."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def sample(campaign: str) -> Path:
    """The committed result of a campaign of that name."""
    (folder,) = (
        file.parent
        for file in (ROOT / "results" / "sample").glob("*/plan.json")
        if json.loads(file.read_text())["name"] == campaign
    )
    return folder


SAMPLE = sample("sample")
