"""A finished result as a controller that was killed leaves it."""

from __future__ import annotations

import shutil
from pathlib import Path

from netbench.result import campaign_state
from netbench.result.files import CAMPAIGN_FILES


def unfinished(result: Path, runs: int | None = None) -> Path:
    """Give a result, or a copy of one, a state of its own, and leave it so many runs; None: all."""
    state = campaign_state.begin({n: (result / n).read_bytes() for n in CAMPAIGN_FILES}, result)
    shutil.copy(result / "journal.jsonl", state.journal)
    (result / campaign_state.ID).write_text(f"{state.path.name}\n")
    if runs is not None:
        records = result / "records.jsonl"
        records.write_bytes(b"".join(records.read_bytes().splitlines(keepends=True)[:runs]))
    return result
