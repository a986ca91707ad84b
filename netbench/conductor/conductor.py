"""The conductor: one loop over the steps of a plan, one record a run, until every cell is
closed.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netbench.analysis.epochs import not_pooled
from netbench.conductor.apply import Applied, Applier, asked_of, holder_of, meant, refuse_busy
from netbench.conductor.boots import Boots
from netbench.conductor.check import Finding, check
from netbench.conductor.ledger import Ledger
from netbench.conductor.noise import Noise
from netbench.conductor.progress import Progress, Silent, standing
from netbench.conductor.run_history import RunHistory, is_finished, made_sinks, rows_as_json
from netbench.conductor.runner import Interrupted, Runner, status_of
from netbench.conductor.worker_pool import ChannelFactory, WorkerPool, open_channel
from netbench.engine.catalogue import Catalogue, Row
from netbench.errors import (
    BootError,
    EngineError,
    Lost,
    RequestError,
    SettingRefused,
    StoreError,
    WorkerLost,
)
from netbench.facts.comparison import change, differences, remedy
from netbench.facts.entry import known_facts
from netbench.journal import Ended, MadeSink, Why
from netbench.json_lines import now
from netbench.model import Campaign, Pair
from netbench.plan import Apply, Boot, Key, Plan, Run, Step, Unit, Verify, run_seconds
from netbench.record import SCHEMA, Record
from netbench.store import Store

__all__ = ["Conclusion", "Conductor", "is_finished", "resume", "start"]

ATTEMPTS = 3  # of a run whose worker is lost
SETTLED_SECONDS, SETTLED_PAUSE = (
    30.0,
    0.5,
)  # that a host which was booted may take until its links and services are there
OURS = ("engine", "layout")  # facts that are netbench's, not the host's


@dataclass(frozen=True)
class Conclusion:
    """How a campaign ended. `why`: `done`, `limit`, `interrupted` or `lost` (with the reason in
    `reason`).
    """

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


def refuse_errors(findings: Iterable[Finding], progress: Progress) -> None:
    """Say the warnings; RequestError with all errors, if there are any."""
    errors = [finding for finding in findings if finding.level == "error"]
    if errors:
        raise RequestError("\n".join(str(finding) for finding in errors))
    for finding in findings:
        if finding.level == "warning":
            progress.say(str(finding))


def start(
    campaign: Campaign,
    results: Path,
    progress: Progress | None = None,
    channels: ChannelFactory = open_channel,
) -> Conclusion:
    """Run a campaign into a new folder below `results`. Errors: RequestError before anything is
    run; StoreError.
    """
    progress = progress or Silent()
    plan = Plan(campaign)
    if campaign.unbuilt:
        raise RequestError("\n".join(campaign.unbuilt))
    with WorkerPool(campaign, channels) as pool:
        pool.start_all()
        refuse_errors(check(campaign, pool), progress)
        rows = _rows(pool, campaign)
        refuse_busy(campaign, pool)
        store = Store.create(
            results, campaign.name, campaign.text, plan.to_json() | {"rows": rows_as_json(rows)}
        )
        store.lock()
        try:
            return _conduct(store, plan, pool, progress, rows)
        finally:
            store.close()


def resume(
    path: Path,
    campaign: Campaign,
    progress: Progress | None = None,
    channels: ChannelFactory = open_channel,
) -> Conclusion:
    """Go on with the campaign of a result folder, in the same order. A finished one is left alone.

    Errors: StoreError when another controller writes it, or when its campaign is no longer the one
    that its records are of.
    """
    progress = progress or Silent()
    store = Store.open(path)
    plan = Plan(campaign)
    store.lock()
    try:
        _same_plan(store, plan)
        with WorkerPool(campaign, channels) as pool:
            _boots(store, campaign, pool, progress).settle()
            pool.start_all()
            refuse_errors(check(campaign, pool, made_sinks(store)), progress)
            return _conduct(store, plan, pool, progress, _rows(pool, campaign))
    finally:
        store.close()


def _same_plan(store: Store, plan: Plan) -> None:
    kept, now = store.plan(), plan.to_json()
    for name in ("cells", "pairs", "seed", "order", "boots", "repeat", "compare"):
        if kept.get(name) != json.loads(json.dumps(now[name])):
            raise StoreError(
                f"{store.path}: campaign.yaml does not give the {name} of plan.json any more, which"
                " its records are of; put the file back, or run the changed campaign anew"
            )


def _rows(pool: WorkerPool, campaign: Campaign) -> tuple[Row, ...]:
    catalogue: Catalogue = pool.worker(campaign.pairs[0].sender, "sender").catalogue
    return catalogue.rows


def _conduct(
    store: Store, plan: Plan, pool: WorkerPool, progress: Progress, rows: tuple[Row, ...]
) -> Conclusion:
    applier = _applier(store, plan.campaign, pool)
    history = RunHistory(store, plan, rows)
    hosts = history.keep_facts(pool.all_facts())
    ledger = history.ledger(hosts)
    for line in not_pooled(hosts, plan.campaign.handled, ledger.runs):
        progress.say(line)
    runner = Runner(
        plan.campaign,
        pool,
        made_sinks(store),
        lambda sink: store.journal.write(MadeSink(host=sink[0], path=sink[1])),
    )
    boot = max(int(entries[-1]["boot"]) for entries in hosts.values())
    noise = Noise(plan.campaign, pool, store.noise)
    boots = _boots(store, plan.campaign, pool, progress)
    return Conductor(
        plan, history, pool, runner, applier, boots, ledger, progress, noise, boot
    ).conduct()


def _boots(store: Store, campaign: Campaign, pool: WorkerPool, progress: Progress) -> Boots:
    def say(line: str) -> None:
        store.note(line)
        progress.say(line)

    return Boots(campaign, pool, store.journal, say)


def _applier(store: Store, campaign: Campaign, pool: WorkerPool) -> Applier:
    """The hosts' settings, with every host locked for this result. Errors: HostBusy;
    EngineError.
    """
    applier = Applier(campaign, pool, holder_of(campaign, store.path), store.journal)
    applier.claim()
    return applier


def record_of(raw: Mapping[str, Any]) -> Record:
    """A record as its type."""
    return Record.from_json({"schema": SCHEMA, **raw}, "the record of this run")


class Conductor:
    """Executes steps. One small method a kind of step, in `_execute`'s table."""

    def __init__(
        self,
        plan: Plan,
        history: RunHistory,
        pool: WorkerPool,
        runner: Runner,
        applier: Applier,
        boots: Boots,
        ledger: Ledger,
        progress: Progress,
        noise: Noise,
        boot: int = 0,
    ) -> None:
        self._plan = plan
        self._noise = noise
        self._history = history
        self._store = history.store
        self._pool = pool
        self._boots = boots
        self._booted: Boot | None = None  # what the plan calls the boot that the hosts are in
        self._runner = runner
        self._applier = applier
        self._ledger = ledger
        self._progress = progress
        self._boot = boot
        self._applied: dict[str, Applied] = {}
        self._units = plan.units
        self._left: dict[Key, float] = {}  # seconds
        self._lanes = runner.lanes()
        self._stop = threading.Event()
        self._turn = threading.RLock()  # of lanes: to write and to count
        self._number = ledger.runs
        self._begun = time.monotonic()
        self._execute = {
            Run: self._run,
            Verify: self._verify,
            Apply: self._apply,
            Boot: self._bring_up,
        }

    def conduct(self) -> Conclusion:
        """Blocks until no cell is open, the limit is reached, a host is lost or the user
        interrupts.
        """
        campaign = self._plan.campaign
        self._progress.begin(self._ledger.size, self._ledger.size * self._plan.repeat.min)
        self._store.note(
            f"campaign {campaign.name}: {self._ledger.size} cells, seed {campaign.seed}, block"
            f" {self._ledger.block}"
        )
        why: Why
        try:
            why, reason = self._blocks()
        except KeyboardInterrupt:
            why, reason = "interrupted", "interrupted from the keyboard"
        except Lost as error:
            why, reason = "lost", str(error)
        except (EngineError, TimeoutError) as error:
            why, reason = (
                "lost",
                f"{error}; `restore {self._store.path}` puts back what is left changed",
            )
        except BaseException:
            self._progress.end()
            if unrestored := self._restore():
                self._progress.say(unrestored)
            raise
        self._progress.end()
        unrestored = self._restore()
        why, reason = ("lost", unrestored) if unrestored else (why, reason)
        self._store.journal.write(Ended(why))
        self._store.note(
            f"{why} after {self._ledger.runs} runs" + (f": {reason}" if reason else "")
        )
        return Conclusion(self._store.path, why, self._ledger.failed, reason)

    def _blocks(self) -> tuple[Why, str]:
        while True:
            if self._ledger.finished:
                return "done", ""
            boot = self._plan.boot(self._ledger.block)
            if boot and boot != self._booted and self._wanted():
                if self._out_of_time():
                    return "limit", "the campaign's limit is reached"
                self._step(boot)
            if boot and not self._wanted():
                self._ledger.next_block()
                continue
            with self._noise.around(self._ledger.block):
                in_time = self._block(frozenset(self._ledger.done))
            if not in_time:
                return "limit", "the campaign's limit is reached"
            self._ledger.next_block()

    def _wanted(self) -> list[Unit]:
        return self._plan.wanted(self._ledger.block, self._ledger.is_open, self._ledger.done)

    def _bring_up(self, step: Boot) -> None:
        """Every host onto a kernel; where that does not work, what is left of the kernel's cells
        has failed.
        """
        self._booted = None
        self._applier.restore()
        self._applied.clear()
        self._noise.forget()
        try:
            self._boot = self._boots.bring_up(
                step.kernel, lambda number: self._accept(number, step.kernel)
            )
        except BootError as error:
            self._pool.start_all()
            for unit in self._wanted():
                self._keep(
                    unit,
                    self._unmeasured(
                        unit, "failed", f"boot: {step.kernel or 'as it came'}: {error}"
                    ),
                )
            return
        self._booted = step
        self._lanes = self._runner.lanes()

    def _accept(self, number: int, kernel: str) -> str:
        """Take hosts that have just been booted: workers, locks, facts. What is wrong with them, or
        "".
        """
        self._pool.start_all()
        self._applier.claim()
        deadline = time.monotonic() + SETTLED_SECONDS
        while (
            why := self._unlike(kernel, read := self._pool.all_facts())
        ) and time.monotonic() < deadline:
            time.sleep(SETTLED_PAUSE)
        if why:
            return why
        block = self._ledger.block
        self._ledger = self._history.ledger(
            self._history.keep_facts(
                {n: entry | {"on": kernel} for n, entry in read.items()}, number
            )
        )
        while self._ledger.block < block:
            self._ledger.next_block()
        return ""

    def _unlike(self, kernel: str, read: Mapping[str, Mapping[str, Any]]) -> str:
        """What of the hosts is not yet as a campaign needs it, or not as in earlier boots of that
        kernel: links that are not up, services that are not started.
        """
        known = self._store.stored_facts()
        for name, entry in read.items():
            if why := self._pool.no_address(name, self._plan.campaign.cells[0].transfer.ip):
                return why
            earlier = next(
                (e for e in reversed(known.get(name, ())) if e.get("on") == kernel), None
            )
            own = [key for key in self._plan.campaign.handled if key != "kernel"]
            changed = differences(known_facts(earlier), known_facts(entry), own) if earlier else []
            said = [change(*one) + remedy(one[0]) for one in changed if not one[0].startswith(OURS)]
            if earlier and said:
                return f"{name}: otherwise than in boot {earlier['boot']}: {'; '.join(said)}"
        return ""

    def _block(self, done: frozenset[Key]) -> bool:
        """One pass over the open units, in as many lanes as can run side by side; False when the
        time is up.
        """
        if len(self._lanes) == 1:
            return self._lane(done, self._lanes[0])
        with ThreadPoolExecutor(max_workers=len(self._lanes), thread_name_prefix="lane") as pool:
            running = [pool.submit(self._lane, done, lane) for lane in self._lanes]
            try:
                wait(running, return_when=FIRST_EXCEPTION)
            except KeyboardInterrupt:
                self._runner.interrupt()
                raise
            finally:
                self._stop.set()
        self._stop.clear()
        return all(lane.result() for lane in running)

    def _lane(self, done: frozenset[Key], pairs: Sequence[Pair]) -> bool:
        for step in self._plan.block(
            self._ledger.block, self._ledger.is_open, done, self._boot, pairs
        ):
            if self._out_of_time():
                return False
            if self._stop.is_set():
                return True
            self._step(step)
        return True

    def _out_of_time(self) -> bool:
        limit = self._plan.campaign.limit
        return limit is not None and (time.monotonic() - self._begun) * 1e9 >= limit

    def _step(self, step: Step) -> None:
        execute: Any = self._execute.get(type(step))
        if execute is None:
            raise RequestError(f"{type(step).__name__.lower()} steps are not built yet")
        execute(step)

    def _restore(self) -> str:
        """Put every setting back; what could not be, and what to do."""
        left: list[str] = []
        self._pool.clear_interrupt()
        for put_back in (self._applier.restore, self._boots.back):
            try:
                put_back()
            except (EngineError, Lost, StoreError, TimeoutError) as error:
                left.append(str(error))
        return (
            f"not everything was put back: {'; '.join(left)}; `restore {self._store.path}` tries"
            " again"
            if left
            else ""
        )

    def _apply(self, step: Apply) -> None:
        self._entered(step.unit)

    def _entered(self, unit: Unit) -> bool:
        """Whether hosts have result a unit's settings; a cell whose settings they do not take is
        refused.
        """
        try:
            self._applied[unit.pair.name] = self._enter(unit)
        except SettingRefused as error:
            with self._turn:
                self._keep(unit, self._unmeasured(unit, "refused", str(error)))
            return False
        return True

    def _enter(self, unit: Unit) -> Applied:
        """A unit's settings on its hosts, again where a worker is lost over it."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._applier.enter(unit)
            except WorkerLost as error:
                if attempt == ATTEMPTS:
                    raise
                self._store.note(f"{unit.cell.id} {unit.pair.name}: settings: {error}")
                self._runner.replace_workers(unit)
        raise AssertionError  # the last attempt returns or raises

    def _run(self, step: Run) -> None:
        """One run; one that lost its worker is repeated with another."""
        for attempt in range(1, ATTEMPTS + 1):
            if attempt > 1 and self._has_settings(step.unit) and not self._entered(step.unit):
                return
            record = self._one_run(step)
            if record["status"] != "interrupted":
                return
            if attempt == ATTEMPTS:
                raise WorkerLost(f"{record['reason']}; {ATTEMPTS} times in a row")

    def _one_run(self, step: Run) -> Mapping[str, Any]:
        number = self._next_number()
        try:
            result = self._runner.run(step, number)
            if self._has_settings(step.unit):
                self._note_settings(step.unit, result.record)
        except Interrupted as stopped:
            with self._turn:
                self._store.append(record_of(stopped.result.record))
            raise KeyboardInterrupt from None
        with self._turn:
            self._keep(step.unit, result.record)
        if result.samples:
            self._store.samples(number, result.samples)
        if result.output:
            self._store.text(number, result.output)
        return result.record

    def _next_number(self) -> int:
        with self._turn:
            self._number += 1
            return self._number

    def _has_settings(self, unit: Unit) -> bool:
        return bool(unit.cell.settings or self._plan.campaign.settings)

    def _note_settings(self, unit: Unit, record: dict[str, Any]) -> None:
        """What was asked and read before the run, and what reads otherwise after it: such a run
        does not count.
        """
        read, moved = self._applied[unit.pair.name]
        campaign = self._plan.campaign
        asked = {side: asked_of(campaign, unit, side) for side in read}
        notes: dict[str, Any] = record.setdefault("settings", {})
        for side, levels in read.items():
            for key, level in levels.items():
                notes.setdefault(side, {})[key] = {
                    "asked": meant(campaign, key, asked[side][key]),
                    "read": level,
                }
        notes["moved"] = moved
        if record["status"] == "interrupted":
            return
        try:
            again = self._applier.read_again(unit)
        except SettingRefused as error:
            record |= {
                "status": "failed",
                "reason": record["reason"] or f"settings could not be read after the run: {error}",
            }
            return
        except WorkerLost as error:
            record |= {
                "status": "interrupted",
                "reason": f"settings could not be read after the run: {error}",
            }
            self._runner.replace_workers(unit)
            return
        for side, levels in again.items():
            for key, level in levels.items():
                if level != read[side][key]:
                    notes[side][key]["after"] = level
                    why = (
                        f"{side}: {key} read {read[side][key]} before the run and {level} after it;"
                        " something else changes it"
                    )
                    record |= {"status": "failed", "reason": record["reason"] or why}

    def _keep(self, unit: Unit, record: Mapping[str, Any]) -> None:
        self._store.append(record_of(record))
        self._ledger.add(record_of(record))
        self._left.pop(unit.key, None)
        reason = str(record["reason"])
        if reason:
            self._store.note(
                f"run {record['run']} {unit.cell.id} {unit.pair.name}: {record['status']}: {reason}"
            )
            self._progress.say(f"run {record['run']}: {unit.cell.id}: {record['status']}: {reason}")
        text = standing(self._ledger.assessment(unit.key), self._plan.campaign.repeat.metrics)
        self._progress.ran(
            record["run"], unit.cell.id, text, len(self._ledger.open_keys), self._time_left()
        )

    def _time_left(self) -> float:
        """Seconds with boots, were all open cells to become precise as intervals shrink with the
        square root of their runs.
        """
        runs = sum(self._left_of(unit) for unit in self._units if self._ledger.is_open(unit.key))
        return runs + self._plan.seconds_of_boots(self._ledger.block)

    def _left_of(self, unit: Unit) -> float:
        """The same of one unit, reckoned once a run of it: over all units that would take longer
        than the run.
        """
        if unit.key not in self._left:
            repeat = self._plan.repeat
            found = self._ledger.assessment(unit.key)
            widths = [
                found.intervals[m].precision
                for m in repeat.metrics
                if m in found.intervals and found.intervals[m].known
            ]
            wanted = (
                math.ceil(found.n * (max(widths, default=1.0) / repeat.precision) ** 2)
                if found.n
                else repeat.min
            )
            self._left[unit.key] = max(
                min(max(wanted, repeat.min), repeat.max) - found.n, 0
            ) * run_seconds(unit)
        return self._left[unit.key]

    def _verify(self, step: Verify) -> None:
        why, status = self._verified(step.unit)
        if not why:
            return
        with self._turn:
            self._keep(step.unit, self._unmeasured(step.unit, status, why))

    def _verified(self, unit: Unit) -> tuple[str, str]:
        """What verification found wrong, and the status that it means; again where a worker is lost
        over it.
        """
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._runner.verify(unit), "failed"
            except (EngineError, RequestError, TimeoutError) as error:
                return f"verify: {error}", status_of(error)
            except WorkerLost as error:
                if attempt == ATTEMPTS:
                    raise
                self._store.note(f"{unit.cell.id} {unit.pair.name}: verify: {error}")
                self._runner.replace_workers(unit)
                if self._has_settings(unit) and not self._entered(unit):
                    return "", ""
        raise AssertionError  # the last attempt returns or raises

    def _unmeasured(self, unit: Unit, status: str, reason: str) -> dict[str, Any]:
        """The record of a cell that is not run."""
        return {
            "run": self._next_number(),
            "cell": unit.cell.id,
            "pair": unit.pair.name,
            "block": self._ledger.block,
            "boot": self._boot,
            "factors": dict(unit.cell.factors),
            "status": status,
            "reason": reason,
            "started": now(),
        }
