"""What a campaign's runs gave: kept in the result folder, counted in the ledger, shown to the
user.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace

from netbench.plan.plan import Plan, Unit
from netbench.result.files import HostEntry, Hosts
from netbench.result.record import Record, Status
from netbench.run.ledger import Ledger
from netbench.run.profile_runner import Profiled
from netbench.run.progress import Progress
from netbench.run.run_history import RunHistory
from netbench.run.runner import RunResult, empty_record
from netbench.run.time_left import TimeLeft

REASON_LENGTH = 2000  # it may quote a host


class Recorder:
    """Numbers runs and keeps their records; several pairs may do so at once.

    `ledger` is where the records end, `boot` the number of the boot that the hosts are in.
    """

    ledger: Ledger
    boot: int

    def __init__(self, plan: Plan, history: RunHistory, progress: Progress) -> None:
        self._history = history
        self._store = history.store
        self._progress = progress
        self._time_left = TimeLeft(plan)
        self._lock = threading.RLock()
        self._number: int | None = None  # of the last run, once records were read
        self._profile_number: int | None = None  # of the last profile run, likewise

    def keep_facts(self, entries: Mapping[str, HostEntry], boot: int | None = None) -> Hosts:
        """Keep what was read of the hosts, in the boot that was just made or in the present one,
        and replay the records where the ledger cannot go on under it. Returns facts.json. Errors:
        StoreError.
        """
        begun = self._number is not None
        hosts = self._history.keep_facts(entries, boot, self._number)
        self.ledger = self._history.ledger(hosts, self.ledger if begun else None)
        self.boot = max(known[-1].boot for known in hosts.values())
        self._number = max(self.ledger.runs, self._number or 0)
        return hosts

    def next_number(self) -> int:
        """The number of the next run."""
        with self._lock:
            self._number = (self._number or 0) + 1
            return self._number

    def next_profile_number(self) -> int:
        """The number of the next profile run. Errors: StoreError."""
        with self._lock:
            if self._profile_number is None:
                runs = (record.run for record in self._store.profile_runs())
                self._profile_number = max(runs, default=0)
            self._profile_number += 1
            return self._profile_number

    def keep_profile(self, profiled: Profiled) -> None:
        """Keep a profile run, which counts in no mean. Errors: StoreError."""
        record = profiled.record
        if len(record.reason) > REASON_LENGTH:
            record = replace(record, reason=f"{record.reason[:REASON_LENGTH]}...")
        with self._lock:
            self._store.profile(record, profiled.stacks)
        what = f"profile run {record.run}: {record.cell}"
        if record.reason:
            self._store.note(f"{what} {record.pair}: {record.status}: {record.reason}")
            what = f"{what}: {record.status}: {record.reason}"
        self._progress.say(what)

    def keep(self, unit: Unit, result: RunResult) -> None:
        """Keep what a run gave, and say how its unit stands. Errors: StoreError."""
        with self._lock:
            self._keep_record(unit, result.record)
        if result.samples:
            self._store.samples(result.record.run, result.samples)
        if result.output:
            self._store.text(result.record.run, result.output)
        if result.server_output:
            self._store.text(result.record.run, result.server_output, ".server")

    def keep_interrupted(self, record: Record) -> None:
        """Keep the record of a run that Ctrl-C has ended. Errors: StoreError."""
        with self._lock:
            self._store.append(record)

    def keep_unmeasured(self, unit: Unit, status: Status, reason: str) -> None:
        """Keep a record of a unit that is not run. Errors: StoreError."""
        with self._lock:
            record = empty_record(unit, self.next_number(), self.ledger.block, self.boot)
            self._keep_record(unit, replace(record, status=status, reason=reason))

    def _keep_record(self, unit: Unit, record: Record) -> None:
        if len(record.reason) > REASON_LENGTH:
            record = replace(record, reason=f"{record.reason[:REASON_LENGTH]}...")
        ledger, cell = self.ledger, unit.cell.id
        self._store.append(record)
        ledger.add(record)
        if record.reason:
            what = f"{record.status}: {record.reason}"
            self._store.note(f"run {record.run} {cell} {unit.pair.name}: {what}")
            self._progress.say(f"run {record.run}: {cell}: {what}")
        assessment = ledger.assessment(unit.key)
        self._time_left.measured(unit.key, assessment, ledger.is_open(unit.key))
        left = self._time_left.seconds(ledger.block, ledger)
        self._progress.ran(record, ledger, left)
