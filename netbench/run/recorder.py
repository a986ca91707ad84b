"""What a campaign's runs gave: kept in the result folder, counted in the ledger, and shown."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from netbench.base.errors import EngineError, RequestError, RootRefused
from netbench.base.json_lines import now
from netbench.engine.binding import Code
from netbench.engine.catalogue import Row
from netbench.facts.registry import FACTS
from netbench.plan.plan import Plan, ProfileRun, Unit
from netbench.result.files import HostEntry, Hosts
from netbench.result.profile_files import Folded, ProfileRecord
from netbench.result.record import Record, Status
from netbench.result.store import Store
from netbench.run.ledger import Ledger
from netbench.run.progress import Progress
from netbench.run.run_history import described, new_ledger, replay

REASON_LENGTH = 2000  # it may quote a host


class Recorder:
    """Numbers runs and keeps their records; several pairs may do so at once.

    `ledger` is where the records end, `boot` the number of the boot that the hosts are in.
    """

    ledger: Ledger
    boot: int

    def __init__(self, store: Store, plan: Plan, rows: Iterable[Row], progress: Progress) -> None:
        """`rows`: what the engine can do."""
        self.store = store
        self._plan = plan
        self._rows = described(rows)
        self._progress = progress
        self._lock = threading.RLock()
        self._number: int | None = None  # of the last run, once records were read
        self._profile_number: int | None = None  # of the last profile run, likewise

    def keep_facts(self, read: Mapping[str, HostEntry], boot: int | None = None) -> None:
        """Add what was read of hosts to facts.json: an entry for each boot that a host was seen in,
        and for each change of its facts within one, and replay the records by these. Errors:
        StoreError.

        `boot`: the number of the boot that the campaign has just made. Without it the number goes
        up by one where a host's boot id has changed.
        """
        hosts = {name: list(entries) for name, entries in self.store.stored_facts().items()}
        last_run = self._number
        for name, facts in read.items():
            entries = hosts.setdefault(name, [])
            number = facts.boot if boot is None else boot
            if boot is None and entries:
                number = entries[-1].boot + (entries[-1].boot_id != facts.boot_id)
            entry = replace(facts, boot=number)
            if not entries or _steady(entries[-1]) != _steady(entry):
                if last_run is None:
                    last_run = max((record.run for record in self.store.records()), default=0)
                entries.append(replace(entry, from_run=last_run + 1))
        self.store.facts(hosts)
        self.hosts: Hosts = hosts
        self.ledger = new_ledger(self._plan, hosts, self._rows)
        replay(self.store, self.ledger)
        self.boot = max(known[-1].boot for known in hosts.values())
        self._number = max(self.ledger.runs, self._number or 0)

    def keep_changes(
        self, since: Mapping[str, int], changes: Mapping[str, Iterable[tuple[str, str, str]]]
    ) -> None:
        """Keep facts that changed (name, was, now) after a host's run. Errors: StoreError."""
        with self._lock:
            block, read = self.ledger.block, dict[str, HostEntry]()
            for host, new in changes.items():
                last = self.hosts[host][-1]
                facts = {**last.facts, **{name: now for name, _, now in new}}
                read[host] = replace(last, facts=facts, changed_from=since[host] + 1)
            self.keep_facts(read)
            while self.ledger.block < block:
                self.ledger.next_block()

    @property
    def last(self) -> int:
        """The number of the last run."""
        return self._number or 0

    def next_number(self) -> int:
        """The number of the next run."""
        with self._lock:
            self._number = (self._number or 0) + 1
            return self._number

    def next_profile_number(self) -> int:
        """The number of the next profile run. Errors: StoreError."""
        with self._lock:
            if self._profile_number is None:
                runs = (record.run for record in self.store.profile_runs())
                self._profile_number = max(runs, default=0)
            self._profile_number += 1
            return self._profile_number

    def keep_profile(self, record: ProfileRecord, stacks: Mapping[str, Folded]) -> None:
        """Keep a profile run, which counts in no mean, and its stacks. Errors: StoreError."""
        record = replace(record, reason=_shortened(record.reason))
        with self._lock:
            self.store.profile(record, stacks)
        what = f"profile run {record.run}: {record.cell}"
        if record.reason:
            self.store.note(f"{what} {record.pair}: {record.status}: {record.reason}")
            what = f"{what}: {record.status}: {record.reason}"
        self._progress.say(what)

    def keep_unprofiled(self, step: ProfileRun, reason: str) -> None:
        """Keep that a profile run could not be made. Errors: StoreError."""
        record = empty_profile_record(step, self.next_profile_number())
        self.keep_profile(replace(record, status="failed", reason=reason), {})

    def keep(
        self,
        unit: Unit,
        record: Record,
        samples: Sequence[Mapping[str, Any]] = (),
        output: str = "",
        server_output: str = "",
    ) -> None:
        """Keep the record of a run and what goes beside it, lines of samples and a tool's output,
        and say how its unit stands. Errors: StoreError.
        """
        with self._lock:
            self._keep_record(unit, record)
        if samples:
            self.store.samples(record.run, samples)
        if output:
            self.store.text(record.run, output)
        if server_output:
            self.store.text(record.run, server_output, ".server")

    def keep_unmeasured(self, unit: Unit, status: Status, reason: str) -> None:
        """Keep a record of a unit that is not run. Errors: StoreError."""
        with self._lock:
            record = empty_record(unit, self.next_number(), self.ledger.block, self.boot)
            self._keep_record(unit, replace(record, status=status, reason=reason))

    def _keep_record(self, unit: Unit, record: Record) -> None:
        record = replace(record, reason=_shortened(record.reason))
        ledger, cell = self.ledger, unit.cell.id
        self.store.append(record)
        ledger.add(record)
        if record.reason:
            what = f"{record.status}: {record.reason}"
            self.store.note(f"run {record.run} {cell} {unit.pair.name}: {what}")
            self._progress.say(f"run {record.run}: {cell}: {what}")
        self._progress.ran(record, ledger)


def _shortened(reason: str) -> str:
    return reason if len(reason) <= REASON_LENGTH else f"{reason[:REASON_LENGTH]}..."


def empty_record(unit: Unit, number: int, block: int, boot: int) -> Record:
    """The record of a run that has not begun."""
    return Record(**_begun(unit, number, boot), block=block, control=unit.cell.control)


def empty_profile_record(step: ProfileRun, number: int) -> ProfileRecord:
    """The record of a profile run that has not begun."""
    return ProfileRecord(**_begun(step.unit, number, step.boot), round=step.round)


def _begun(unit: Unit, number: int, boot: int) -> dict[str, Any]:
    cell = unit.cell
    of_unit = {"cell": cell.id, "pair": unit.pair.name, "factors": dict(cell.factors)}
    return {**of_unit, "run": number, "boot": boot, "status": "ok", "reason": "", "started": now()}


def status_of(error: Exception) -> Status:
    """The status of a run that ended with this error."""
    refused = isinstance(error, RequestError | RootRefused)
    lacking = isinstance(error, EngineError) and error.code == Code.UNSUPPORTED
    return "unsupported" if refused or lacking else "failed"


def _steady(entry: HostEntry) -> HostEntry:
    """What of an entry must not change unnoticed: not its first run, nor what varies by itself."""
    varying = {fact.name for fact in FACTS if fact.varies}
    facts = {name: value for name, value in entry.facts.items() if name not in varying}
    told = replace(entry, facts=facts, from_run=None, changed_from=None)
    return replace(told, missing={}, unread={}, not_held={})
