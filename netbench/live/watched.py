"""`watch`: where a campaign stands, once or until it has ended. A result folder is read whole
whenever it has changed, the less often the longer that takes, and replayed through a ledger as
`resume` does. Nothing is written, and no lock is taken.
"""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from netbench import campaign
from netbench.base.errors import NetbenchError, ReportError, StoreError
from netbench.base.json_lines import JsonLines, cannot_read
from netbench.base.locked import is_locked
from netbench.base.names import PROGRAM, shell_word
from netbench.base.opening import read_inside
from netbench.base.terminal import Painter
from netbench.campaign.yaml_tree import decode
from netbench.fleet.parts import as_planned
from netbench.live.screen import render
from netbench.live.standing import Findings, Overview
from netbench.model import Campaign
from netbench.plan.plan import Plan
from netbench.result import campaign_state
from netbench.result.files import PlanFile, read_plan
from netbench.result.journal import entry_end
from netbench.result.store import Store, no_result
from netbench.run.progress import seconds_left
from netbench.run.run_history import replayed

LOG_LINES = 50
LOOK_SECONDS = 1.0  # between two looks, at least
CPU_SHARE = 0.02  # of a CPU, that looking and drawing may take
FILES = ("journal.jsonl", "facts.json", "records.jsonl", "log.txt")
ENDING_LINES = 5  # that are left for how the campaign has ended
NOTE = "Ctrl-C ends watching, not the campaign"
SHARE = 0.05  # of the time, that comparisons may take


class Watched:
    """A result folder that others write. `state`: a key of standing.STATES. Errors of every method:
    StoreError with the file that cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        """Errors: ReportError where it is no result; CampaignError."""
        if not (folder / "records.jsonl").is_file() or not (folder / "plan.json").is_file():
            raise no_result(folder)
        self._lock = folder / "records.jsonl"
        with suppress(StoreError):  # it is looked at by another account
            own = campaign_state.find(folder)
            if own and own.result == folder.absolute():
                self._lock = own.journal
        self.folder = folder
        self.state = ""
        planned = read_plan(folder / "plan.json")
        self._plan, self._rows = Plan(_campaign(folder, planned)), planned.rows
        self._findings = Findings(folder, SHARE)
        self._versions: list[tuple[int, int, int] | None] = []

    def look(self) -> bool:
        """Read it anew where it has changed; whether it has."""
        # Before records are, so that none is missed where the campaign has ended.
        is_running = is_locked(self._lock)
        versions = [_version(self.folder / name) for name in FILES]
        if versions == self._versions and is_running == (self.state == "running"):
            return False
        self._versions = versions
        why = when = ""  # how and when the last controller ended
        journal = self.folder / "journal.jsonl"
        for line in _lines(journal):
            why, when = entry_end(line, journal) or (why, when)
        log = _lines(self.folder / "log.txt")
        self._log = deque((line.decode("utf-8", "replace") for line in log), LOG_LINES)
        self._ledger = replayed(Store(self.folder), self._plan, self._rows)
        last = self._ledger.last
        ended = why if why and (last is None or last.started <= when) else "dead"
        self.state = "running" if is_running else ended
        return True

    def overview(self) -> Overview:
        """Where the campaign stands."""
        ledger, is_running = self._ledger, self.state == "running"
        try:
            self._findings.look(at_once=not is_running)
        except NetbenchError:
            if not is_running:
                raise
            # While it runs, files change between the reading of one and the next.
        left = None
        if is_running and not ledger.finished:
            left = seconds_left(self._plan, ledger)
        log = tuple(self._log)
        return Overview(self._plan, ledger, self.folder, self._findings, left, self.state, log)


def _lines(file: Path) -> Iterator[bytes]:
    """The whole lines of a file, which may not be there. Errors: StoreError."""
    return (line for _, line in (JsonLines(file) if file.exists() else ()))


def _version(file: Path) -> tuple[int, int, int] | None:
    """What tells a file that is replaced as a whole from that before it; None: there is none."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _campaign(folder: Path, plan: PlanFile) -> Campaign:
    file = folder / "campaign.yaml"
    try:
        whole = campaign.parse(decode(read_inside(file), str(file)), str(file), inventories=False)
    except OSError as error:
        raise cannot_read(file, error) from error
    except ValueError as error:
        raise ReportError(f"{file}: {error}") from error
    return as_planned(whole, plan)


def snapshot(folder: Path) -> Overview:
    """Where a result stands now. Errors: ReportError, CampaignError, StoreError."""
    watched = Watched(folder)
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
        begun = time.process_time() if drawn else math.inf  # the first look imports what it needs
        changed = watched.look()
        size = columns, rows = painter.size
        is_last = watched.state != "running"
        if changed or drawn != size:
            room = rows - (ENDING_LINES if is_last else 1)
            note = "" if is_last else NOTE
            painter.draw(render(watched.overview(), columns - 1, room, colour=True, note=note))
            drawn = size
        unlocked = unlocked + 1 if watched.state == "dead" else 0
        if is_last and (watched.state != "dead" or unlocked > 1):
            return
        until = time.monotonic() + max(LOOK_SECONDS, (time.process_time() - begun) / CPU_SHARE)
        while time.monotonic() < until and painter.size == drawn:
            time.sleep(LOOK_SECONDS)


def ending(folder: Path, state: str) -> str:
    """What became of a campaign, and what to do."""
    word = shell_word(folder)
    resume = f"`{PROGRAM} resume {word}` continues it"
    return {
        "running": f"no longer watched; the campaign goes on: {folder}",
        "done": f"the campaign is done: {PROGRAM} report {word}",
        "limit": f"the campaign reached its limit; {resume}",
        "interrupted": f"the campaign was interrupted; {resume}",
        "lost": f"the campaign ended early, log.txt says why; {resume}",
        "dead": f"no controller has {folder} open here, and its journal does not say how the last"
        f" one ended: it was killed, or runs where its lock cannot be seen; {resume}",
    }[state]
