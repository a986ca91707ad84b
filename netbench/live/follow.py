"""`watch`: where a campaign stands, once or until it has ended."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path

from netbench.base.terminal import Painter
from netbench.base.units import count
from netbench.live.screen import render
from netbench.live.standing import Overview
from netbench.live.watched import Watched

LOOK_SECONDS = 1.0  # between two looks, at least
SHARE = 0.02  # of a CPU, that looking and drawing may take
ENDING_LINES = 5  # that are left for how the campaign has ended
NOTE = "Ctrl-C ends watching, not the campaign"


def snapshot(folder: Path) -> Overview:
    """Where a result stands now. Errors: ReportError, CampaignError, StoreError."""
    watched = Watched(folder)
    watched.look(patient=False)
    while watched.behind:
        watched.look(patient=False)
    return watched.overview()


def follow(folder: Path) -> str:
    """Show a result on the terminal of standard output until its campaign has ended, or the user
    has seen enough. How it ended, in words. Errors: as snapshot.
    """
    watched, painter = Watched(folder), Painter(sys.stdout)
    with suppress(KeyboardInterrupt):
        _follow(watched, painter)
    painter.leave()
    return ending(folder, watched.state)


def _follow(watched: Watched, painter: Painter) -> None:
    drawn = None  # at which size
    while True:
        begun = time.process_time()
        changed = watched.look()
        columns, rows = painter.size
        if watched.behind and not drawn:
            read = count(watched.records_read, "record")
            painter.draw([f"reading {read} of {watched.folder}"[: columns - 1]])
            continue
        if changed or drawn != (columns, rows):
            if drawn not in (None, (columns, rows)):
                painter.wipe()
            is_last = watched.state != "running"
            view = watched.overview(rows, "" if is_last else NOTE)
            room = rows - (ENDING_LINES if is_last else 1)
            painter.draw(render(view, columns - 1, room, colour=True))
            drawn = columns, rows
        if watched.state != "running" and not watched.behind:
            return
        until = time.monotonic() + max(LOOK_SECONDS, (time.process_time() - begun) / SHARE)
        while time.monotonic() < until and painter.size == drawn:
            time.sleep(LOOK_SECONDS)


def ending(folder: Path, state: str) -> str:
    """What became of a campaign, and what to do."""
    resume = f"`python -m netbench resume {folder}` continues it"
    return {
        "running": f"no longer watched; the campaign goes on: {folder}",
        "done": f"the campaign is done: python -m netbench report {folder}",
        "limit": f"the campaign reached its limit; {resume}",
        "interrupted": f"the campaign was interrupted; {resume}",
        "lost": f"the campaign ended early, log.txt says why; {resume}",
        "dead": f"no controller has {folder} open here, and its journal does not say how the last"
        f" one ended: it was killed, or runs where its lock cannot be seen; {resume}",
    }[state]
