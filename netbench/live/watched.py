"""`watch`: where a campaign stands, once or until it has ended. A result folder is read on line by
line, and replayed through a ledger as `resume` does. Nothing is written, and no lock is taken.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from contextlib import suppress
from pathlib import Path

from netbench import campaign
from netbench.base.errors import NetbenchError, ReportError, StoreError
from netbench.base.json_lines import cannot_read
from netbench.base.names import shell_word
from netbench.base.opening import read_inside
from netbench.base.terminal import Painter
from netbench.base.units import count
from netbench.campaign.yaml_tree import decode
from netbench.fleet.parts import as_planned
from netbench.live.findings import Findings
from netbench.live.screen import render
from netbench.live.standing import Overview
from netbench.live.tail import Tail, is_locked
from netbench.model import Campaign
from netbench.plan.plan import Plan
from netbench.result.files import PlanFile, read_facts, read_plan
from netbench.result.journal import entry_end
from netbench.result.record import parse_record
from netbench.result.store import no_result
from netbench.run.progress import seconds_left
from netbench.run.run_history import new_ledger

LOG_LINES = 50
LOOK_SECONDS = 1.0  # between two looks, at least
CPU_SHARE = 0.02  # of a CPU, that looking and drawing may take
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
        self.folder = folder
        self.state = "running"
        planned = read_plan(folder / "plan.json")
        self._plan, self._rows = Plan(_campaign(folder, planned)), planned.rows
        self._journal, self._log_file = Tail(folder / "journal.jsonl"), Tail(folder / "log.txt")
        self._log: deque[str] = deque(maxlen=LOG_LINES)
        self._findings = Findings(folder, SHARE)
        self._ended = "", ""  # how and when the last controller ended
        self._begin()

    def _begin(self) -> None:
        """Read facts.json, in whose light records are seen, and all records anew."""
        facts = self.folder / "facts.json"
        self._facts = _version(facts)
        self._ledger = new_ledger(self._plan, read_facts(facts), self._rows)
        self.records = Tail(self.folder / "records.jsonl")

    def look(self) -> bool:
        """Take in what is new, of many records some; whether anything is."""
        # Before records are, so that none is missed where the campaign has ended.
        state = self._look_at_state()
        is_anew = _version(self.folder / "facts.json") != self._facts
        if is_anew:
            self._begin()
        lines, log = self.records.read(), self._log_file.read()
        self._replay(lines)
        self._log += (line.decode("utf-8", "replace") for line in log)
        changed = bool(lines or log or is_anew) or state != self.state
        self.state = state
        return changed

    def _look_at_state(self) -> str:
        for line in self._journal.read():
            self._ended = entry_end(line, self._journal.path) or self._ended
        if is_locked(self.records.path):
            return "running"
        why, when = self._ended
        last = self._ledger.last
        return why if why and (last is None or last.started <= when) else "dead"

    def _replay(self, lines: list[bytes]) -> None:
        ledger = self._ledger
        for number, line in enumerate(lines, self.records.lines - len(lines) + 1):
            where = f"{self.records.path}:{number}"
            record = parse_record(line, where)
            if not ledger.is_possible(record.block, number):
                raise StoreError(f"{where}: block {record.block} is out of order")
            ledger.add(record)
        # As the conductor does once a block is over.
        while (
            lines
            and not ledger.finished
            and not self._plan.wanted(ledger.block, ledger.is_open, ledger.done)
        ):
            ledger.next_block()

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
        until = time.monotonic() + max(LOOK_SECONDS, (time.process_time() - begun) / CPU_SHARE)
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
