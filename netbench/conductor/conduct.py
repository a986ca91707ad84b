"""The conductor: one loop over the steps of a plan, one record a run, until every cell is closed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netbench.analysis.metrics import accounts_of
from netbench.conductor.check import Finding, check
from netbench.conductor.crew import ChannelFactory, Crew, open_channel
from netbench.conductor.ledger import Ledger
from netbench.conductor.progress import Progress, Silent, standing
from netbench.conductor.runner import Interrupted, Runner, status_of
from netbench.engine.catalogue import Catalogue, Row
from netbench.errors import EngineError, HostError, ProtocolError, RequestError, WorkerLost
from netbench.model import Campaign
from netbench.plan import Apply, Plan, Run, Step, Unit, Verify, run_seconds
from netbench.store import Store, now


@dataclass(frozen=True)
class Conclusion:
    """How a campaign ended. `why`: `done`, `limit`, `interrupted` or `lost` (with the reason in `reason`)."""

    path: Path
    why: str
    failed: bool
    reason: str = ""

    @property
    def exit_code(self) -> int:
        """The command line's exit status (DESIGN section 6)."""
        if self.why == "interrupted":
            return 130
        return 1 if self.failed or self.why == "lost" else 0


def rows_as_json(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Descriptors as plan.json keeps them: what is needed to read the records."""
    kinds = ("send", "receive", "meter", "counter", "proof")
    return [
        {
            "kind": row.kind,
            "owner": row.owner,
            "name": row.name,
            "unit": row.unit,
            "per": row.per,
            "flags": sorted(row.flags),
            "about": row.about,
        }
        for row in rows
        if row.kind in kinds
    ]


def refuse_errors(findings: Iterable[Finding], progress: Progress) -> None:
    """Say the warnings; RequestError with all errors, if there are any."""
    errors = [finding for finding in findings if finding.level == "error"]
    if errors:
        raise RequestError("\n".join(str(finding) for finding in errors))
    for finding in findings:
        if finding.level == "warning":
            progress.say(str(finding))


def start(
    campaign: Campaign, results: Path, progress: Progress | None = None, channels: ChannelFactory = open_channel
) -> Conclusion:
    """Run a campaign into a new folder below `results`. Errors: RequestError before anything is run; StoreError."""
    progress = progress or Silent()
    plan = Plan(campaign)
    if campaign.unbuilt:
        raise RequestError("\n".join(campaign.unbuilt))
    with Crew(campaign, channels) as crew:
        refuse_errors(check(campaign, crew), progress)
        rows = _rows(crew, campaign)
        store = Store.create(results, campaign.name, campaign.text, plan.to_json() | {"rows": rows_as_json(rows)})
        return _with_store(store, plan, crew, progress, rows)


def resume(
    path: Path, campaign: Campaign, progress: Progress | None = None, channels: ChannelFactory = open_channel
) -> Conclusion:
    """Go on with the campaign of a result folder, in the same order. A finished one is left alone."""
    progress = progress or Silent()
    store = Store.open(path)
    plan = Plan(campaign)
    with Crew(campaign, channels) as crew:
        refuse_errors(check(campaign, crew), progress)
        return _with_store(store, plan, crew, progress, _rows(crew, campaign))


def is_finished(path: Path, campaign: Campaign) -> bool:
    """Whether every cell of a result is closed, from its records alone."""
    from netbench.engine.catalogue import local

    store = Store.open(path)
    hosts = store.stored_facts()
    if not hosts:
        return False
    ledger = _ledger(Plan(campaign), hosts, local().rows)
    for record in store.records():
        ledger.add(record)
    ledger.next_block()
    return not ledger.open_keys


def _rows(crew: Crew, campaign: Campaign) -> tuple[Row, ...]:
    catalogue: Catalogue = crew.worker(campaign.pairs[0].sender, "sender").catalogue
    return catalogue.rows


def _ledger(plan: Plan, hosts: Mapping[str, Any], rows: Iterable[Row]) -> Ledger:
    ticks = {name: int(entries[-1]["clock_ticks"]) for name, entries in hosts.items()}
    ids = {name: entries[-1]["boot_id"] for name, entries in hosts.items()}
    shared = {pair.name: ids[pair.sender] == ids[pair.receiver] for pair in plan.campaign.pairs}
    return Ledger(plan, ticks, shared, accounts_of(rows_as_json(rows)))


def _with_store(store: Store, plan: Plan, crew: Crew, progress: Progress, rows: tuple[Row, ...]) -> Conclusion:
    store.lock()
    try:
        hosts = _read_facts(store, plan.campaign, crew)
        ledger = _ledger(plan, hosts, rows)
        sinks = []
        units = {unit.key: unit for unit in plan.units}
        for record in store.records():
            ledger.add(record)
            unit = units.get((record["cell"], record["pair"]))
            if unit is not None and record["status"] == "ok":
                sinks.append((unit.pair.receiver, unit.cell.transfer.sink.path))
        runner = Runner(plan.campaign, crew, sinks)
        boot = max(int(entries[-1]["boot"]) for entries in hosts.values())
        return Conductor(plan, store, runner, ledger, progress, boot).conduct()
    finally:
        store.close()


def _read_facts(store: Store, campaign: Campaign, crew: Crew) -> dict[str, Any]:
    """facts.json, with an entry for each boot that a host has been seen in."""
    hosts = store.stored_facts()
    for name in campaign.hosts:
        if not any(name in (pair.sender, pair.receiver) for pair in campaign.pairs):
            continue
        role = "sender" if any(name == pair.sender for pair in campaign.pairs) else "receiver"
        entries = hosts.setdefault(name, [])
        entry = crew.facts(name, role, len(entries))
        if not entries or entries[-1]["boot_id"] != entry["boot_id"]:
            entries.append(entry)
    store.facts(hosts)
    return hosts


class Conductor:
    """Executes steps. One small method a kind of step, in `_execute`'s table."""

    def __init__(self, plan: Plan, store: Store, runner: Runner, ledger: Ledger, progress: Progress, boot: int = 0) -> None:
        self._plan = plan
        self._store = store
        self._runner = runner
        self._ledger = ledger
        self._progress = progress
        self._boot = boot
        self._begun = time.monotonic()
        self._execute = {Run: self._run, Verify: self._verify, Apply: self._apply}

    def conduct(self) -> Conclusion:
        """Blocks until no cell is open, the limit is reached, a host is lost or the user interrupts."""
        campaign = self._plan.campaign
        self._progress.begin(self._ledger.size, self._ledger.size * campaign.repeat.min)
        self._store.note(f"campaign {campaign.name}: {self._ledger.size} units, seed {campaign.seed}, block {self._ledger.block}")
        try:
            why, reason = self._blocks()
        except KeyboardInterrupt:
            why, reason = "interrupted", "interrupted from the keyboard"
        except (HostError, WorkerLost, ProtocolError) as error:
            why, reason = "lost", str(error)
        finally:
            self._progress.end()
        self._store.note(f"{why} after {self._ledger.runs} runs" + (f": {reason}" if reason else ""))
        return Conclusion(self._store.path, why, self._ledger.failed, reason)

    def _blocks(self) -> tuple[str, str]:
        while True:
            done = frozenset(self._ledger.done)
            for step in self._plan.block(self._ledger.block, self._ledger.is_open, done, self._boot):
                if self._out_of_time():
                    return "limit", "the campaign's limit is reached"
                self._step(step)
            self._ledger.next_block()
            if not self._ledger.open_keys:
                return "done", ""

    def _out_of_time(self) -> bool:
        limit = self._plan.campaign.limit
        return limit is not None and (time.monotonic() - self._begun) * 1e9 >= limit

    def _step(self, step: Step) -> None:
        execute: Any = self._execute.get(type(step))
        if execute is None:
            raise RequestError(f"{type(step).__name__.lower()} steps are not built yet")
        execute(step)

    def _apply(self, step: Apply) -> None:
        raise RequestError(f"cell {step.unit.cell.id}: settings are not built yet")

    def _run(self, step: Run) -> None:
        number = self._ledger.runs + 1
        try:
            taken = self._runner.run(step, number)
        except Interrupted as stopped:
            self._store.append(stopped.taken.record)
            raise KeyboardInterrupt from None
        if taken.samples:
            self._store.samples(number, taken.samples)
        if taken.output:
            self._store.text(number, taken.output)
        self._keep(step.unit, taken.record)

    def _keep(self, unit: Unit, record: Mapping[str, Any]) -> None:
        self._store.append(record)
        self._ledger.add(record)
        reason = str(record["reason"])
        if reason:
            self._store.note(f"run {record['run']} {unit.cell.id} {unit.pair.name}: {record['status']}: {reason}")
            self._progress.say(f"run {record['run']}: {unit.cell.id}: {record['status']}: {reason}")
        text = standing(self._ledger.assessment(unit.key), self._plan.campaign.repeat.metrics)
        self._progress.ran(record["run"], unit.cell.id, text, len(self._ledger.open_keys), self._time_left())

    def _time_left(self) -> float:
        repeat = self._plan.campaign.repeat
        open_keys = set(self._ledger.open_keys)
        left = 0.0
        for unit in self._plan.units:
            if unit.key in open_keys:
                runs = max(repeat.min - self._ledger.block - (unit.key in self._ledger.done), 0)
                left += runs * run_seconds(unit)
        return left

    def _verify(self, step: Verify) -> None:
        try:
            why = self._runner.verify(step.unit)
            status = "failed"
        except (EngineError, RequestError, TimeoutError) as error:
            why, status = f"verify: {error}", status_of(error)
        if not why:
            return
        unit = step.unit
        self._keep(
            unit,
            {
                "run": self._ledger.runs + 1,
                "cell": unit.cell.id,
                "pair": unit.pair.name,
                "block": self._ledger.block,
                "boot": self._boot,
                "factors": dict(unit.cell.factors),
                "status": status,
                "reason": why,
                "started": now(),
            },
        )
