"""The executor of a unit's steps (Apply, Verify, Run, ProfileRun); lost workers are replaced."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from netbench.base.errors import EngineError, RequestError, SettingRefused, WorkerLost
from netbench.plan.plan import Apply, Key, ProfileRun, Run, Step, Unit, Verify
from netbench.result.record import Status
from netbench.result.store import Store
from netbench.run.profile_runner import Profiled, ProfileRunner, empty_profile_record
from netbench.run.recorder import Recorder
from netbench.run.retry import retry
from netbench.run.runner import Interrupted, Runner, status_of
from netbench.run.start_gate import StartGate
from netbench.run.unit_settings import UnitSettings
from netbench.run.worker_pool import WorkerPool

FAILED: Status = "failed"


class UnitSteps:
    """Steps of units; what they give goes to the recorder. Those of several pairs are executed side
    by side.
    """

    def __init__(
        self,
        pool: WorkerPool,
        settings: UnitSettings,
        runner: Runner,
        profile_runner: ProfileRunner,
        recorder: Recorder,
        store: Store,
    ) -> None:
        self._pool = pool
        self._settings = settings
        self._runner = runner
        self._profile_runner = profile_runner
        self._recorder = recorder
        self._store = store
        self._unverified: dict[Key, str] = {}  # why what arrives cannot be verified
        self._numbers: dict[Key, int] = {}  # of runs that are about to begin

    def number(self, steps: Iterable[Step]) -> None:
        """Number runs in this order, before they begin at the same time."""
        self._numbers = {step.unit.key: self._recorder.next_number() for step in steps}

    def prepare(self, step: Step) -> None:
        """See that the workers of a run are there, which may take long. Errors: Lost."""
        self._pool.pair_workers(step.unit.pair)
        self._settings.renew(step.unit)
        self._why_unverified(step.unit)

    def execute(self, step: Step, gate: StartGate | None = None) -> None:
        """One step of a unit; a run begins with those that wait at the gate. Levels that its hosts
        do not take refuse its cell. Errors: Lost where a worker was lost three times in a row, or,
        in a run that others run beside, once: repeated alone it would not be what they measure.
        """
        try:
            match step:
                case Apply(unit):
                    self._apply(unit)
                case Verify(unit):
                    self._verify(unit)
                case Run():
                    self._run(step, gate)
                case ProfileRun():
                    self._profile(step)
        except SettingRefused as error:
            self._recorder.keep_unmeasured(step.unit, "refused", str(error))
        self._pool.reached()

    def _apply(self, unit: Unit) -> None:
        retry(lambda: self._settings.enter(unit), lambda error: self._replace_workers(unit, error))

    def _verify(self, unit: Unit) -> None:
        retry(lambda: self._verify_once(unit), lambda error: self._recover(unit, error))

    def _verify_once(self, unit: Unit) -> None:
        """One verification, and a record where it failed. Errors: Lost."""
        try:
            if unverified := self._why_unverified(unit):
                self._store.note(f"{unit.cell.id} {unit.pair.name}: not verified: {unverified}")
                return
            why, status = self._runner.verify(unit), FAILED
        except (EngineError, RequestError, TimeoutError) as error:
            self._settings.confirm(unit)
            why, status = f"verify: {error}", status_of(error)
        if why:
            self._recorder.keep_unmeasured(unit, status, why)

    def _why_unverified(self, unit: Unit) -> str:
        """Why what arrives is not verified, though the campaign asks for it. Errors: Lost."""
        if unit.key not in self._unverified:
            self._unverified[unit.key] = self._runner.why_unverified(unit)
        return self._unverified[unit.key]

    def _run(self, step: Run, gate: StartGate | None) -> None:
        if gate is None:
            retry(lambda: self._run_once(step), lambda error: self._recover(step.unit, error))
            return
        try:
            self._run_once(step, gate)
        except WorkerLost as error:
            self._replace_workers(step.unit, error)
            raise
        finally:
            gate.leave(step.unit.pair.name)

    def _run_once(self, step: Run, gate: StartGate | None = None) -> None:
        """One run and its record. Errors: WorkerLost when a worker was lost in it."""
        self._settings.renew(step.unit)
        unverified = self._why_unverified(step.unit)
        number = self._numbers.pop(step.unit.key, 0) or self._recorder.next_number()
        try:
            result = self._runner.run(step, number, gate)
        except Interrupted as interrupted:
            self._recorder.keep_interrupted(interrupted.record)
            raise interrupted.by from None
        record = self._settings.note(step.unit, result.record)
        result = replace(result, record=replace(record, unverified=unverified))
        self._recorder.keep(step.unit, result)
        if result.record.status == "interrupted":
            self._pool.dismiss_pair(step.unit.pair)
            raise WorkerLost(result.record.reason)
        self._pool.dismiss_lost(step.unit.pair)

    def _profile(self, step: ProfileRun) -> None:
        retry(lambda: self._profile_once(step), lambda error: self._recover(step.unit, error))

    def _profile_once(self, step: ProfileRun) -> None:
        """One profile run, kept beside the measured ones. Errors: Lost."""
        number = self._recorder.next_profile_number()
        self._recorder.keep_profile(self._profile_runner.run(step, number))

    def keep_unprofiled(self, step: ProfileRun, reason: str) -> None:
        """Keep that a profile run could not be made."""
        record = empty_profile_record(step, self._recorder.next_profile_number())
        failed = replace(record, status=FAILED, reason=reason)
        self._recorder.keep_profile(Profiled(failed))

    def _recover(self, unit: Unit, error: WorkerLost) -> None:
        """New workers with the unit's settings, after one was lost."""
        self._replace_workers(unit, error)
        if self._settings.wanted(unit):
            self._settings.enter(unit)

    def _replace_workers(self, unit: Unit, error: WorkerLost) -> None:
        self._store.note(f"{unit.cell.id} {unit.pair.name}: replaced the workers: {error}")
        self._pool.dismiss_pair(unit.pair)
