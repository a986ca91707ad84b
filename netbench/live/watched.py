"""A result folder as `watch` sees it: read on line by line, replayed through a ledger as `resume`
does. Nothing is written, and no lock is taken.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from netbench import campaign
from netbench.base.errors import ReportError, StoreError
from netbench.base.json_lines import cannot_read
from netbench.base.opening import read_inside
from netbench.campaign.yaml_tree import decode
from netbench.fleet.parts import as_planned
from netbench.live.cautions import Noise, cautions
from netbench.live.seldom import Seldom
from netbench.live.standing import Overview, overview
from netbench.live.tail import Changes, Tail, is_locked
from netbench.model import Campaign
from netbench.plan.plan import Key, Plan
from netbench.result.files import EngineRow, PlanFile, read_facts, read_plan
from netbench.result.journal import entry_end
from netbench.result.record import parse_record
from netbench.result.store import no_result
from netbench.run.ledger import Ledger
from netbench.run.progress import TimeLeft
from netbench.run.run_history import new_ledger

if TYPE_CHECKING:
    from netbench.stats.comparison import Comparison

LOG_LINES = 50
SHARE = 0.05  # of the time, that comparisons may take
DEAD_LOOKS = 2  # without a lock: a controller takes it right after its folder is there


class Watched:
    """A result folder that others write. `state`: a key of overview.STATES. Errors of every method:
    StoreError with the file that cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        """Errors: ReportError where it is no result; CampaignError."""
        if not (folder / "records.jsonl").is_file() or not (folder / "plan.json").is_file():
            raise no_result(folder)
        self.folder = folder
        planned = read_plan(folder / "plan.json")
        self.plan = Plan(_campaign(folder, planned))
        self._rows: tuple[EngineRow, ...] = planned.rows
        self._records = Tail(folder / "records.jsonl")
        self._journal = Tail(folder / "journal.jsonl")
        self._log_file = Tail(folder / "log.txt")
        self._facts = Changes(folder / "facts.json")
        self._log: deque[str] = deque(maxlen=LOG_LINES)
        self._noise = Noise(folder)
        self._ended = "", ""  # how and when the last controller ended
        self._unlocked = 0  # looks in a row
        self._comparing = Seldom(SHARE)
        self._is_stale = True  # whether comparisons are of fewer runs
        self._comparisons: list[Comparison] = []
        self._statuses: dict[Key, str] = {}  # of an ended campaign
        self._facts.changed()
        self._begin(new_ledger(self.plan, read_facts(self._facts.path), self._rows))
        self.state = "running"
        self.behind = True
        """Whether there are records that were not read yet."""

    def _begin(self, ledger: Ledger) -> None:
        """Replay all records, by another ledger."""
        self._ledger = ledger
        self._records = Tail(self._records.path)
        self._time_left = TimeLeft(self.plan)
        self._is_stale = True

    def look(self, patient: bool = True) -> bool:
        """Take in what is new, of many records some; whether anything is. patient: a campaign is
        dead only when it was seen so for a while.
        """
        state = self._look_at_state(patient)
        lines = self._records.read()
        # Facts are written before the records that they are of.
        replayed = self._facts.changed()
        if replayed:
            self._begin(new_ledger(self.plan, read_facts(self._facts.path), self._rows))
            lines = self._records.read()
        self._replay(lines)
        log = self._log_file.read()
        self._log += (line.decode("utf-8", "replace").rstrip("\n") for line in log)
        noise = self._noise.look(self._ledger)
        changed = bool(lines or log or noise or replayed) or state != self.state
        self.behind = bool(lines)
        self.state = state
        return changed

    def _look_at_state(self, patient: bool) -> str:
        """What the campaign does: looked at before records are, so that none is missed where it has
        ended.
        """
        for line in self._journal.read():
            self._ended = entry_end(line, self._journal.path) or self._ended
        if is_locked(self._records.path):
            self._unlocked = 0
            return "running"
        self._unlocked += 1
        if patient and self._unlocked < DEAD_LOOKS:
            return "running"
        why, when = self._ended
        last = self._ledger.trail.last
        return why if why and (last is None or last.started <= when) else "dead"

    def _replay(self, lines: list[bytes]) -> None:
        ledger = self._ledger
        first = self._records.lines - len(lines) + 1
        for number, line in enumerate(lines, first):
            where = f"{self._records.path}:{number}"
            record = parse_record(line, where)
            if not ledger.is_possible(record.block, number):
                raise StoreError(f"{where}: block {record.block} is out of order")
            ledger.add(record)
            self._time_left.ran((record.cell, record.pair))
        if not lines:
            return
        self._is_stale = True
        # As the conductor does once a block is over.
        while not ledger.finished and not self._wanted():
            ledger.next_block()

    def _wanted(self) -> bool:
        """Whether the present block still has something to do."""
        ledger = self._ledger
        return bool(self.plan.wanted(ledger.block, ledger.is_open, ledger.done))

    @property
    def records_read(self) -> int:
        """How many records were read."""
        return self._records.lines

    def overview(self, room: int | None = None, note: str = "") -> Overview:
        """Where the campaign stands. room: how many cells are wanted; None: all."""
        ledger = self._ledger
        if self._is_stale and (self._comparing.is_due or self.state != "running"):
            self._comparing.do(self._compare)
        goes_on = self.state == "running" and not ledger.finished
        return replace(
            overview(self.plan, ledger, self.folder, room, self._statuses),
            state=self.state,
            left=self._time_left.seconds(ledger) if goes_on else None,
            cautions=tuple(cautions(self.plan, ledger, self._noise)),
            log=tuple(self._log),
            comparisons=tuple(self._comparisons),
            note=note,
        )

    def _compare(self) -> None:
        if self.plan.campaign.compare or self.state != "running":
            # They import pandas, a quarter of what `watch` would take to start.
            from netbench.live.standings import comparisons, statuses

            self._comparisons = comparisons(self.plan, self._ledger)
            self._statuses = {} if self.state == "running" else statuses(self.folder)
        self._is_stale = False


def _campaign(folder: Path, plan: PlanFile) -> Campaign:
    file = folder / "campaign.yaml"
    try:
        whole = campaign.parse(decode(read_inside(file), str(file)), str(file), inventories=False)
    except OSError as error:
        raise cannot_read(file, error) from error
    except ValueError as error:
        raise ReportError(f"{file}: {error}") from error
    return as_planned(whole, plan)
