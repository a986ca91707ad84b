"""What a controller that was killed leaves: a result, and changes that are not undone."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from netbench.result import campaign_state
from netbench.result.files import CAMPAIGN_FILES
from netbench.result.journal import Change, Journal


def outstanding(entries: Iterable[Any], host: str) -> list[Change]:
    """The changes of a host that these entries do not say undone, the last first."""
    journal = Journal()
    for entry in entries:
        journal.write(entry)
    return journal.outstanding(host)


def unfinished(result: Path, runs: int | None = None) -> Path:
    """Give a result, or a copy of one, a state of its own, and leave it so many runs; None: all."""
    state = campaign_state.begin({n: (result / n).read_bytes() for n in CAMPAIGN_FILES}, result)
    shutil.copy(result / "journal.jsonl", state.journal)
    (result / campaign_state.ID).write_text(f"{state.path.name}\n")
    if runs is not None:
        records = result / "records.jsonl"
        records.write_bytes(b"".join(records.read_bytes().splitlines(keepends=True)[:runs]))
    return result
