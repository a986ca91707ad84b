"""`watch`: where a campaign stands, once or until it has ended."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path

from netbench.base.names import shell_word
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
    watched.look()
    while watched.records.behind:
        watched.look()
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
    unlocked = 0  # looks in a row: a controller takes the lock right after its folder is there
    while True:
        begun = time.process_time()
        changed = watched.look()
        size = columns, rows = painter.size
        if watched.records.behind:
            read = count(watched.records.lines, "record")
            painter.draw([f"reading {read} of {watched.folder}"[: columns - 1]])
            continue
        is_last = watched.state != "running"
        if changed or drawn != size:
            if drawn not in (None, size):
                painter.wipe()
            room = rows - (ENDING_LINES if is_last else 1)
            note = "" if is_last else NOTE
            painter.draw(render(watched.overview(), columns - 1, room, colour=True, note=note))
            drawn = size
        unlocked = unlocked + 1 if watched.state == "dead" else 0
        if is_last and (watched.state != "dead" or unlocked > 1):
            return
        until = time.monotonic() + max(LOOK_SECONDS, (time.process_time() - begun) / SHARE)
        while time.monotonic() < until and painter.size == drawn:
            time.sleep(LOOK_SECONDS)


def ending(folder: Path, state: str) -> str:
    """What became of a campaign, and what to do."""
    word = shell_word(folder)
    resume = f"`python -m netbench resume {word}` continues it"
    return {
        "running": f"no longer watched; the campaign goes on: {folder}",
        "done": f"the campaign is done: python -m netbench report {word}",
        "limit": f"the campaign reached its limit; {resume}",
        "interrupted": f"the campaign was interrupted; {resume}",
        "lost": f"the campaign ended early, log.txt says why; {resume}",
        "dead": f"no controller has {folder} open here, and its journal does not say how the last"
        f" one ended: it was killed, or runs where its lock cannot be seen; {resume}",
    }[state]
