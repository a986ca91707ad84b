"""The conductor: one loop over a plan's steps, one record a run, until every cell is closed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from netbench.base.errors import (
    BootError,
    EngineError,
    HostGone,
    LimitReached,
    Lost,
    RequestError,
    StoreError,
    WorkerLost,
)
from netbench.base.names import shell_word
from netbench.engine.catalogue import Row
from netbench.model import Campaign
from netbench.plan.plan import Boot, Plan, ProfileRun, Unit
from netbench.plan.plan_json import plan_json
from netbench.result import codec
from netbench.result.journal import Ended, Why
from netbench.result.record import Record
from netbench.result.store import Store
from netbench.run.check import boots_of, check
from netbench.run.fact_watch import FactWatch
from netbench.run.finding import Finding, together
from netbench.run.held_settings import HeldSettings
from netbench.run.host_facts import read_all
from netbench.run.host_locks import HostLocks, refuse_busy, result_name
from netbench.run.job import MadeSinks
from netbench.run.noise import NoiseMonitor
from netbench.run.progress import Progress
from netbench.run.recorder import Recorder
from netbench.run.run_history import (
    described,
    finished,
    profiles_due,
    refuse_another,
    without_given_up,
)
from netbench.run.runner import Runner
from netbench.run.single_meter import IdleCounts
from netbench.run.transfer import Told
from netbench.run.worker_pool import ChannelFactory, WorkerPool, open_channel
from netbench.stats.intervals import t_quantile

__all__ = ["Conclusion", "Conductor", "finished", "resume", "start"]

LIMIT = "the campaign's limit is reached"


class Conclusion(NamedTuple):
    """How a campaign ended. `why`: `done`, `limit`, `interrupted` or `lost` (for `reason`)."""

    path: Path
    why: str
    failed: bool
    reason: str = ""

    @property
    def exit_code(self) -> int:
        """The command line's exit status (docs/reference/command-line.md)."""
        if self.why == "interrupted":
            return 130
        return 1 if self.failed or self.why == "lost" else 0


def start(
    campaign: Campaign,
    results: Path,
    progress: Progress | None = None,
    channels: ChannelFactory = open_channel,
    seconds: Told | None = None,
) -> Conclusion:
    """Run a campaign into a new folder below `results`. `seconds`: who is told what a run moves
    while it lasts. Errors: RequestError before anything is run; StoreError.
    """
    progress = progress or Progress()
    plan = Plan(campaign)
    with WorkerPool(campaign, channels) as pool:
        refuse_errors(check(campaign, pool), progress)
        refuse_busy(pool)
        pilot = ""
        if campaign.auto:
            from netbench.run.pilot import with_window

            with WorkerPool(campaign, channels) as own:
                locks = HostLocks(campaign, own, f"{campaign.name[:24]}/pilot")
                for host in campaign.roles:
                    locks.lock(host)
                campaign, pilot = with_window(campaign, own)
            progress.say(pilot)
            plan = Plan(campaign)
        plan = replace(plan, boot_ids=pool.boot_ids())
        planned = plan_json(plan) | {"rows": codec.to_json(described(_rows(pool, campaign)))}
        planned |= {"pilot": pilot} if pilot else {}
        store = Store.create(results, campaign.name, campaign.text, planned)
        store.lock()
        try:
            return Conductor(store, plan, pool, progress, seconds).conduct()
        finally:
            store.close()


def resume(
    path: Path,
    campaign: Campaign,
    progress: Progress | None = None,
    channels: ChannelFactory = open_channel,
) -> Conclusion:
    """Go on with the campaign of a result folder, in the same order. A finished one is left alone.

    Pairs that were given up, and hosts that no other pair uses, are left out. Errors: StoreError
    when another controller writes it, when others may have changed it, or when its campaign is no
    longer the one that its records are of.
    """
    progress = progress or Progress()
    store = Store.open(path)
    plan = Plan(campaign)
    store.lock()
    try:
        refuse_another(store, plan)
        there = without_given_up(campaign, store, progress)
        with WorkerPool(there, channels) as pool:
            if boots := boots_of(there, pool, store.journal, partial(_say, store, progress)):
                boots.finish_boots()
            refuse_errors(check(there, pool, MadeSinks(store.journal)), progress)
            known = {host: entries[-1].boot_id for host, entries in store.stored_facts().items()}
            plan = replace(plan, boot_ids={**known, **pool.boot_ids()})
            return Conductor(store, plan, pool, progress, there=there).conduct()
    finally:
        store.close()


def refuse_errors(findings: Iterable[Finding], progress: Progress) -> None:
    """Say the warnings; RequestError with all errors, if there are any."""
    errors = [finding for finding in findings if finding.level == "error"]
    if errors:
        raise RequestError("\n".join(map(str, together(errors))))
    for finding in findings:
        if finding.level == "warning":
            progress.say(str(finding))


def _rows(pool: WorkerPool, campaign: Campaign) -> tuple[Row, ...]:
    """What the engine can do: the same on all hosts."""
    return pool.worker(campaign.pairs[0].sender, "sender").catalogue.rows


def _say(store: Store, progress: Progress, line: str) -> None:
    store.note(line)
    progress.say(line)


class Conductor:
    """Executes a plan on hosts whose workers are there: block by block, boot by boot."""

    def __init__(
        self,
        store: Store,
        plan: Plan,
        pool: WorkerPool,
        progress: Progress,
        seconds: Told | None = None,
        there: Campaign | None = None,
    ) -> None:
        """there: what of the plan's campaign has hosts in the pool; left out: all of it."""
        campaign = there or plan.campaign
        self._plan = plan
        self._campaign = campaign
        self._pool = pool
        self._store = store
        self._progress = progress
        self._say = partial(_say, store, progress)
        self._recorder = Recorder(store, plan, _rows(pool, campaign), progress)
        name, identity = result_name(campaign, store), store.identity
        locks = HostLocks(campaign, pool, name, progress.say, identity)
        self._held = HeldSettings(campaign, pool, locks, store.journal, self._say, store.identity)
        self._idle = IdleCounts(campaign, pool, store.note)
        self._runner = Runner(
            plan,
            campaign,
            pool,
            self._held,
            MadeSinks(store.journal),
            self._idle,
            self._recorder,
            self._say,
            seconds,
        )
        self._boots = boots_of(campaign, pool, store.journal, self._say, locks.lock)
        self._noise = NoiseMonitor(campaign, pool, store.noise)
        self._watch = FactWatch(campaign, pool, self._recorder, self._say)
        self._booted: Boot | None = None  # what the plan calls the boot that the hosts are in
        self._begun = time.monotonic()

    def conduct(self) -> Conclusion:
        """Blocks until no cell is open, the limit is reached, a host is lost or the user
        interrupts. Errors: HostBusy; EngineError; StoreError.
        """
        try:
            self._begin()
        except BaseException:
            if unrestored := self._restore():
                self._progress.say(unrestored)
            raise
        why: Why
        try:
            with self._limited():
                self._blocks()
                self._profiles()
            why, reason = "done", ""
        except LimitReached as error:
            why, reason = "limit", str(error)
        except KeyboardInterrupt:
            why, reason = "interrupted", "interrupted from the keyboard"
        except Lost as error:
            why, reason = "lost", str(error)
        except (EngineError, TimeoutError) as error:
            remedy = f"`restore {shell_word(self._store.path)}` puts back what is left changed"
            why, reason = "lost", f"{error}; {remedy}"
        except BaseException:
            self._progress.end()
            if unrestored := self._restore():
                self._progress.say(unrestored)
            raise
        self._progress.end()
        self._pool.clear_interrupt()
        with suppress(StoreError):
            self._look()
        unrestored = self._restore()
        if unrestored:
            why, reason = "lost", f"{reason}; {unrestored}" if why == "lost" else unrestored
        return self._end(why, reason)

    def _begin(self) -> None:
        """Lock the hosts, keep their facts, and replay the records that there are."""
        self._held.claim()
        self._recorder.keep_facts(self._held.described(read_all(self._campaign, self._pool)))
        ledger = self._recorder.ledger
        for line in ledger.not_pooled():
            self._progress.say(line)
        if self._plan.runs_total > 1:
            _ = t_quantile(1, 0.95), codec.adapter(Record)  # once; 300 ms, not between two runs
        self._look()
        self._progress.begin(self._plan, ledger, self._store.path)
        self._store.note(
            f"campaign {self._campaign.name}: {ledger.size} cells, seed {self._campaign.seed},"
            f" block {ledger.block}"
        )

    def _blocks(self) -> None:
        """Errors: LimitReached; those of conduct and of what it ends with."""
        ledger = self._recorder.ledger
        while not ledger.finished:
            boot = self._plan.boot(ledger.block)
            if boot and boot != self._booted and self._wanted():
                self._refuse_late()
                self._boot(boot)
                ledger = self._recorder.ledger
            if not boot or self._wanted():
                self._idle.measure()
                with self._noise.around(ledger.block):
                    keys = [key for key in ledger.keys if key not in ledger.done]
                    of_block = ledger.block, ledger.is_open, keys, self._recorder.boot, ledger.joins
                    for steps in self._plan.block(*of_block):
                        self._refuse_late()
                        self._on_kernel(partial(self._runner.execute, steps), self._wanted)
                        if len(self._campaign.pairs) == 1:  # else others run
                            self._look(at_once=False)
                    self._runner.end_block()
            self._recorder.ledger.next_block()
            self._look(self._recorder.ledger.finished)
            ledger = self._recorder.ledger

    def _look(self, at_once: bool = True) -> None:
        """Whether somebody else has changed facts. Errors: StoreError."""
        if self._booted or not self._plan.boots:  # else a boot has failed
            self._watch.look(at_once)

    def _profiles(self) -> None:
        """The profile runs, once all measured runs are done: those of one kernel after another,
        first of the one that the hosts are on. Errors: as _blocks.
        """
        profiles = profiles_due(self._store, self._plan)
        here = self._booted.kernel if self._booted else None
        kernels: list[str | None] = [None]
        if self._plan.boots:
            kernels = sorted(self._plan.kernels, key=lambda kernel: kernel != here)
        for kernel in kernels if profiles else ():
            steps = list(self._plan.profiles(profiles, kernel, 0))
            why = ""
            if steps and kernel not in (None, here):
                self._refuse_late()
                why = self._boot(self._plan.boot_on(kernel or ""))
            for step in self._plan.profiles(profiles, kernel, self._recorder.boot):
                if not why:
                    self._refuse_late()
                    why = self._on_kernel(partial(self._runner.execute, [step]))
                if why and isinstance(step, ProfileRun):
                    self._recorder.keep_unprofiled(step, why)
        self._runner.end_block()

    def _wanted(self) -> list[Unit]:
        """What the present block still has to do."""
        ledger = self._recorder.ledger
        return self._plan.wanted(ledger.block, ledger.is_open, ledger.done)

    @contextmanager
    def _limited(self) -> Iterator[None]:
        """What waits for a worker raises LimitReached once the campaign's time is over."""
        if (limit := self._campaign.limit) is None:
            yield
            return
        left = min(max(0.0, self._begun + limit / 1e9 - time.monotonic()), threading.TIMEOUT_MAX)
        timer = threading.Timer(left, self._pool.interrupt, [LimitReached(LIMIT)])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()  # it may be at it: an interrupt after this would end the undoing

    def _refuse_late(self) -> None:
        """Begin nothing once the campaign's time is over. Errors: LimitReached."""
        limit = self._campaign.limit
        if limit is not None and (time.monotonic() - self._begun) * 1e9 >= limit:
            raise LimitReached(LIMIT)

    def _boot(self, step: Boot) -> str:
        """Every host onto a kernel; where that does not work, what is left of the kernel's cells
        has failed. The reason then, or "".
        """
        boots = self._boots
        assert boots, "a plan with boots has a campaign that boots hosts"
        self._on_kernel(self._held.restore)
        self._booted = None
        self._noise.forget()

        def accept(number: int) -> str:
            """Take hosts that were just booted: workers, locks, facts. What is wrong, or ""."""
            self._pool.start_all()
            self._held.claim()
            entries, why = boots.wait_until_ready(step, self._store.stored_facts())
            if not why:
                block = self._recorder.ledger.block
                self._recorder.keep_facts(self._held.described(entries), number)
                while self._recorder.ledger.block < block:
                    self._recorder.ledger.next_block()
            return why

        try:
            boots.bring_up(step.kernel, accept, step.build)
        except BootError as error:
            self._pool.start_all()
            return self._fail(step, str(error), self._wanted())
        self._booted = step
        self._look()
        return ""

    def _fail(self, step: Boot, why: str, units: Iterable[Unit]) -> str:
        """What is left of a boot has failed; the reason."""
        reason = f"boot: {step.kernel or 'original kernel'}: {why}"
        for unit in units:
            self._recorder.keep_unmeasured(unit, "failed", reason)
        return reason

    def _on_kernel(
        self, act: Callable[[], object], wanted: Callable[[], Iterable[Unit]] = tuple
    ) -> str:
        """Do something on the hosts. Where the kernel dies that they were booted on, and with it
        all that was held there, they go back, and what was `wanted` of it has failed. The reason
        then, or "". Errors: those of `act`; HostError when a host is not back.
        """
        try:
            act()
        except (HostGone, WorkerLost) as error:
            if not (self._boots and (step := self._booted)):
                raise
            self._booted = None
            with suppress(EngineError, Lost, TimeoutError):
                self._held.restore()  # what the other hosts hold
            why = self._boots.why_gone(error)
            for host in self._campaign.roles:
                self._pool.release(host)
            self._noise.forget()
            try:
                self._boots.give_up(step.kernel, why)
            finally:  # where none is back it may be the controller that is cut off
                if self._store.journal.original_kernels().keys() < self._campaign.roles.keys():
                    why = self._fail(step, why, wanted())
            self._pool.start_all()
            self._pool.reached()
            self._held.restore()
            return why
        return ""

    def _restore(self) -> str:
        """Put every setting and kernel back; what could not be, and what to do, or ""."""
        errors: list[str] = []
        self._pool.clear_interrupt()
        acts: list[Callable[[], object]] = [partial(self._on_kernel, self._held.restore)]
        for put_back in (*acts, self._boots.back) if self._boots else acts:
            try:
                put_back()
            except (EngineError, Lost, StoreError, TimeoutError) as error:
                errors.append(str(error))
        if not errors:
            return ""
        guests = self._campaign.lab and self._campaign.lab.kind == "qemu"  # removed at the end
        again = "" if guests else f"; `restore {shell_word(self._store.path)}` tries again"
        return f"not everything was put back: {'; '.join(errors)}{again}"

    def _end(self, why: Why, reason: str) -> Conclusion:
        self._store.journal.write(Ended(why))
        ledger = self._recorder.ledger
        self._store.note(f"{why} after {ledger.runs} runs" + (f": {reason}" if reason else ""))
        return Conclusion(self._store.path, why, ledger.failed, reason)
