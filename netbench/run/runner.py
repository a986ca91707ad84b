"""The executor of a plan's steps: those of a wave side by side, one thread a pair. Whatever happens
in a run becomes its record; pairs that break are given up while the others go on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Any

from netbench.base.cancel import side_by_side
from netbench.base.errors import (
    EngineError,
    HostBusy,
    HostGone,
    Lost,
    RequestError,
    SettingRefused,
    WorkerLost,
)
from netbench.model import Campaign, Pair
from netbench.plan.plan import Apply, Key, Plan, ProfileRun, Run, Step, Unit, Verify
from netbench.result.record import Record, Status
from netbench.run import external_tool, transfer
from netbench.run.ends import EndFinder, Ends, Measurement
from netbench.run.external_tool import ToolFailed
from netbench.run.held_settings import HeldSettings
from netbench.run.job import MadeSinks
from netbench.run.ledger import LOST
from netbench.run.profiler import ProfileRunner
from netbench.run.recorder import Recorder, empty_record, status_of
from netbench.run.single_meter import IdleCounts
from netbench.run.transfer import REPORT_NS, Told, told
from netbench.run.worker_pool import ATTEMPTS, WorkerPool

CUT_SECONDS = 4.5  # workers send a heartbeat every three


class Runner:
    """Executes groups of steps on the workers of their pairs.

    A pair whose host is gone, or which loses a worker in so many runs in a row, takes no further
    part. Its open units have failed as soon as another pair has completed a run since: what all
    pairs lose is the controller's own network, and the campaign ends as lost, so that `resume` goes
    on with all of them.
    """

    def __init__(
        self,
        plan: Plan,
        campaign: Campaign,
        pool: WorkerPool,
        settings: HeldSettings,
        sinks: MadeSinks,
        idle: IdleCounts,
        recorder: Recorder,
        say: Callable[[str], None],
        seconds: Told | None = None,
    ) -> None:
        """`campaign`: what has hosts in the pool; `seconds`: who is told what a run moves."""
        self._campaign = campaign
        self._pool = pool
        self._settings = settings
        self._sinks = sinks
        self._recorder = recorder
        self._say = say
        self._seconds = seconds
        self._ends = EndFinder(campaign, pool, idle)
        self._profiler = ProfileRunner(campaign, pool, sinks)
        self._units = plan.units
        self._ends_with_pair = len(plan.campaign.pairs) == 1 or plan.boots
        self._numbers: dict[Key, int] = {}  # of runs that are about to begin
        self._unverified: dict[Key, str] = {}  # why what arrives cannot be verified
        self._lost: dict[Pair, Lost] = {}  # in the present steps
        self._losses: dict[Pair, int] = {}  # runs in a row in which a worker was lost
        self._broken: dict[Pair, str] = {}
        self._unsaid: list[Pair] = []  # of those, the ones whose units have no record of it yet
        self._ran = False  # whether a run was completed in the present block

    def execute(self, steps: Sequence[Step]) -> None:
        """Steps of different pairs, of one kind, at the same time. Errors: the first one of a step;
        Lost where the campaign cannot go on without the pair.
        """
        there = [step for step in steps if step.unit.pair not in self._broken]
        runs = [step for step in there if isinstance(step, Run)]
        self._lost, gate = {}, None
        if len(runs) > 1:  # these begin together, once the workers of all are there
            self._side_by_side(self._prepare, runs)
            there = [run for run in runs if run.unit.pair not in self._lost]
            gate = StartGate([run.unit.pair.name for run in there])
            self._numbers = {run.unit.key: self._recorder.next_number() for run in there}
        if len(there) == 1:
            self._step(there[0], gate)
        else:
            self._side_by_side(partial(self._step, gate=gate), there)
        for pair, error in self._lost.items():
            self._losses[pair] = self._losses.get(pair, 0) + 1
            if not gate or isinstance(error, HostGone) or self._losses[pair] == ATTEMPTS:
                self._broken[pair] = str(error)
                self._unsaid.append(pair)
                self._say(f"{pair.name} is given up: {error}")
        done = [run.unit.pair for run in runs if run.unit.pair not in self._lost]
        for pair in done:
            self._losses.pop(pair, None)
        if done:
            self._ran = True
            self._keep_given_up()

    def end_block(self) -> None:
        """See that a pair is left that goes on. Errors: Lost."""
        ran, self._ran = self._ran, False
        if self._unsaid and not ran:
            raise Lost("; ".join(dict.fromkeys(self._broken[pair] for pair in self._unsaid)))

    def _keep_given_up(self) -> None:
        """Records of what the pairs that broke have not done: another has gone on since."""
        for unit in self._units if self._unsaid else ():
            if unit.pair in self._unsaid and self._recorder.ledger.is_open(unit.key):
                self._recorder.keep_unmeasured(unit, "failed", LOST + self._broken[unit.pair])
        self._unsaid = []

    def _side_by_side(self, act: Callable[[Any], None], steps: Sequence[Step]) -> None:
        side_by_side([partial(act, step) for step in steps], self._pool.interrupt)

    @contextmanager
    def _losing(self, pair: Pair, gate: StartGate | None = None) -> Iterator[None]:
        """Keep what a pair loses in a step; none of the others waits at the gate for it."""
        try:
            yield
        except Lost as error:
            if self._ends_with_pair or isinstance(error, HostBusy):
                raise  # `resume` goes on
            self._lost[pair] = error
        finally:
            if gate:
                gate.leave(pair.name)

    def _prepare(self, step: Step) -> None:
        """See that the workers of a run are there, which may take long."""
        with self._losing(step.unit.pair):
            self._pool.pair_workers(step.unit.pair)
            self._settings.renew(step.unit)
            self._why_unverified(step.unit)

    def _step(self, step: Step, gate: StartGate | None = None) -> None:
        """One step, three times at most where a worker is lost; a run that begins with those at the
        gate once: repeated alone it would not be what they measure. Levels that its hosts do not
        take refuse its cell.
        """
        unit = step.unit
        with self._losing(unit.pair, gate):
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    self._settings.renew(unit)
                    if isinstance(step, Apply) or (attempt > 1 and self._settings.wanted(unit)):
                        self._settings.enter(unit)
                    match step:
                        case Verify():
                            self._verify(unit)
                        case Run():
                            self._run(step, gate)
                        case ProfileRun():
                            number = self._recorder.next_profile_number()
                            self._recorder.keep_profile(*self._profiler.run(step, number))
                    break
                except SettingRefused as error:
                    self._recorder.keep_unmeasured(unit, "refused", str(error))
                    break
                except WorkerLost as error:
                    if attempt == ATTEMPTS:
                        again = f"{error}; failed {ATTEMPTS} times in a row"
                        raise WorkerLost(again) from error
                    self._note(unit, f"replaced the workers: {error}")
                    self._pool.dismiss_pair(unit.pair)
                    if gate:
                        raise
            self._pool.reached()

    def _note(self, unit: Unit, what: str) -> None:
        self._recorder.store.note(f"{unit.cell.id} {unit.pair.name}: {what}")

    def _run(self, step: Run, gate: StartGate | None) -> None:
        """One run and its record. Errors: HostGone before it began; WorkerLost when a worker was
        lost in it; KeyboardInterrupt.
        """
        unit, beside = step.unit, list[str]()
        unverified = self._why_unverified(unit)
        number = self._numbers.pop(unit.key, 0) or self._recorder.next_number()
        empty = empty_record(unit, number, step.block, step.boot)
        empty = replace(empty, round=step.round, unverified=unverified)
        samples: Sequence[Mapping[str, Any]] = ()
        printed = "", ""

        def start() -> None:
            if gate:
                beside.extend(gate.wait(unit.pair.name))

        def ended(**how: Any) -> Record:
            return replace(empty, concurrent=None if step.round is None else tuple(beside), **how)

        try:
            may_share = self._campaign.overlap == "kernel"
            ends = self._ends.ends(unit, step.beside if may_share else ())
            measured = self._measure(unit, ends, number, start)
        except ToolFailed as error:
            record = ended(status="failed", reason=str(error))
            printed = error.printed
        except (EngineError, RequestError, TimeoutError, ValueError) as error:
            record = ended(status=status_of(error), reason=str(error))
        except HostGone:
            raise
        except Lost as error:
            record = ended(status="interrupted", reason=str(error))
        except KeyboardInterrupt as by:  # the user's, or the end of the campaign's time
            why = str(by) or "interrupted from the keyboard"
            self._recorder.store.append(ended(status="interrupted", reason=why))
            raise
        else:
            record = ended(
                sender=measured.sender,
                receiver=measured.receiver,
                settings=measured.settings,
                proof=measured.proof,
                captures=measured.captures,
                cut=_cuts(ends),
            )
            samples, printed = measured.samples, (measured.output, measured.server_output)
        record = self._settings.note(unit, record)
        self._recorder.keep(unit, record, samples, *printed)
        if record.status == "interrupted":
            self._pool.dismiss_pair(unit.pair)
            raise WorkerLost(record.reason)
        self._pool.dismiss_lost(unit.pair)

    def _measure(
        self, unit: Unit, ends: Ends, number: int, start: Callable[[], None]
    ) -> Measurement:
        cell = unit.cell.transfer
        if cell.asks:  # drawn at random, but the same again from the same seed
            what = f"{self._campaign.seed} {unit.pair.name} {number}"
            seed = int.from_bytes(sha256(what.encode()).digest()[:6])
            cell = cell._replace(options={**cell.options, "seed": seed})
        if cell.tool.external:
            return external_tool.measure(cell, ends, self._sinks, number, start=start)
        if self._seconds is None:
            return transfer.measure(cell, ends, self._sinks, start=start)
        with told(ends.sender, number, cell, self._seconds):
            return transfer.measure(cell, ends, self._sinks, report=REPORT_NS, start=start)

    def _verify(self, unit: Unit) -> None:
        """Show that what arrives is what was sent, and keep a record where it is not. What an
        external tool moves cannot be seen. Errors: Lost.
        """
        cell = unit.cell.transfer
        if cell.tool.external:
            return
        status: Status = "failed"
        try:
            if unverified := self._why_unverified(unit):
                self._note(unit, f"not verified: {unverified}")
                return
            why = transfer.verify(cell, self._ends.ends(unit), self._sinks)
        except (EngineError, RequestError, TimeoutError) as error:
            self._settings.confirm(unit)
            why, status = f"verify: {error}", status_of(error)
        if why:
            self._recorder.keep_unmeasured(unit, status, why)

    def _why_unverified(self, unit: Unit) -> str:
        """Why what arrives is not verified, though the campaign asks for it. Errors: Lost."""
        if self._campaign.verify and unit.key not in self._unverified:
            path, (_, receiver) = unit.cell.transfer.sink.path, self._pool.pair_workers(unit.pair)
            self._unverified[unit.key] = ""
            with suppress(EngineError):  # it is no device such as /dev/null
                if path:
                    receiver.operate("exec", ["test", "-c", path])
                    why = f"the sink {path} keeps nothing that could be read again"
                    self._unverified[unit.key] = why
        return self._unverified.get(unit.key, "")


def _cuts(ends: Ends) -> dict[str, float]:
    """Sides whose worker was silent for longer than heartbeats are apart: the controller was cut
    off from it for a while, and the run went on.
    """
    silences = {end.side: end.worker.silence for end in ends}
    return {side: round(seconds, 1) for side, seconds in silences.items() if seconds > CUT_SECONDS}


class StartGate:
    """Where the runs of a wave wait for each other, by the names of their pairs. A run that ends
    before it has come here, since it failed or was interrupted, `leaves`.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._awaited = set(names)
        self._there: list[str] = []
        self._opened = threading.Condition()

    def wait(self, name: str) -> tuple[str, ...]:
        """Wait until every run is here or has left; the others that are here, in order of names."""
        with self._opened:
            self._there.append(name)
            self.leave(name)
            self._opened.wait_for(lambda: not self._awaited)
            return tuple(sorted(each for each in self._there if each != name))

    def leave(self, name: str) -> None:
        """A run does not wait, or no longer: none waits for it."""
        with self._opened:
            self._awaited.discard(name)
            if not self._awaited:
                self._opened.notify_all()
