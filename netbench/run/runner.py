"""The executor of Run and Verify: whatever happens in a run becomes its record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from netbench.base.errors import EngineError, HostGone, Lost, RequestError
from netbench.base.json_lines import now
from netbench.engine.binding import Code
from netbench.model import Campaign
from netbench.plan.plan import Run, Unit
from netbench.result.record import Record, Status
from netbench.run import external_tool, transfer
from netbench.run.ends import EndFinder, Ends
from netbench.run.external_tool import ToolFailed
from netbench.run.idle_counts import IdleCounts
from netbench.run.measurement import Measurement
from netbench.run.seconds import REPORT_NS, Told, told
from netbench.run.sinks import MadeSinks
from netbench.run.start_gate import StartGate
from netbench.run.worker_pool import WorkerPool

CUT_SECONDS = 4.5  # workers send a heartbeat every three


@dataclass(frozen=True)
class RunResult:
    """A run's record and what goes beside it: lines of samples, and a tool's output."""

    record: Record
    samples: Sequence[Mapping[str, Any]] = ()
    output: str = ""
    server_output: str = ""


class Interrupted(Exception):
    """Ctrl-C, or the end of the campaign's time, in a run: what was raised, and the run's
    record.
    """

    def __init__(self, record: Record, by: KeyboardInterrupt) -> None:
        super().__init__("interrupted")
        self.record = record
        self.by = by


class Runner:
    """Runs units on the workers of their pairs. `seconds`: who is told what a run moves while it
    lasts.
    """

    def __init__(
        self,
        campaign: Campaign,
        pool: WorkerPool,
        sinks: MadeSinks,
        idle: IdleCounts,
        seconds: Told | None = None,
    ) -> None:
        self._campaign = campaign
        self._pool = pool
        self._sinks = sinks
        self._seconds = seconds
        self._ends = EndFinder(campaign, pool, idle)

    def run(self, step: Run, number: int, gate: StartGate | None = None) -> RunResult:
        """One measured run, which begins with those that wait at the gate. Errors: HostGone, before
        it began; Interrupted.
        """
        record = empty_record(step.unit, number, step.block, step.boot)
        if step.round is None:
            return self._run(step, record)
        record = replace(record, round=step.round)
        beside: list[str] = []

        def start() -> None:
            if gate:
                beside.extend(gate.wait(step.unit.pair.name))

        try:
            result = self._run(step, record, start)
        except Interrupted as by:
            raise Interrupted(replace(by.record, concurrent=tuple(beside)), by.by) from None
        return replace(result, record=replace(result.record, concurrent=tuple(beside)))

    def _run(
        self, step: Run, record: Record, start: Callable[[], None] = lambda: None
    ) -> RunResult:
        try:
            may_share = self._campaign.overlap_of(step.unit.cell) == "kernel"
            ends = self._ends.ends(step.unit, step.beside if may_share else ())
            measured = self._measure(step.unit, ends, record.run, start)
        except ToolFailed as error:
            failed = replace(record, status="failed", reason=str(error))
            return RunResult(failed, (), error.output, error.server_output)
        except (EngineError, RequestError, TimeoutError, ValueError) as error:
            return RunResult(replace(record, status=status_of(error), reason=str(error)))
        except HostGone:
            raise
        except Lost as error:
            return RunResult(replace(record, status="interrupted", reason=str(error)))
        except KeyboardInterrupt as by:
            reason = str(by) or "interrupted from the keyboard"
            record = replace(record, status="interrupted", reason=reason)
            raise Interrupted(record, by) from None
        record = replace(
            record,
            sender=measured.sender,
            receiver=measured.receiver,
            settings=measured.settings,
            proof=measured.proof,
            captures=measured.captures,
            cut=_cuts(ends),
        )
        return RunResult(record, measured.samples, measured.output, measured.server_output)

    def _measure(
        self, unit: Unit, ends: Ends, number: int, start: Callable[[], None]
    ) -> Measurement:
        if unit.cell.transfer.tool.external:
            return external_tool.measure(unit.cell.transfer, ends, self._sinks, number, start=start)
        if self._seconds is None:
            return transfer.measure(unit.cell.transfer, ends, self._sinks, start=start)
        with told(ends.sender, number, unit.cell.transfer.sample, self._seconds):
            return transfer.measure(
                unit.cell.transfer, ends, self._sinks, report=REPORT_NS, start=start
            )

    def why_unverified(self, unit: Unit) -> str:
        """Why what arrives cannot be looked at; "" where it can, or need not. Errors: Lost."""
        if not self._campaign.verify:
            return ""
        return transfer.why_unverified(unit.cell.transfer, self._ends.ends(unit))

    def verify(self, unit: Unit) -> str:
        """Show that what arrives is what was sent. What is wrong, or "" (also where that cannot be
        seen: of an external tool). Errors: those of a transfer.
        """
        if unit.cell.transfer.tool.external:
            return ""
        return transfer.verify(unit.cell.transfer, self._ends.ends(unit), self._sinks)


def empty_record(unit: Unit, number: int, block: int, boot: int) -> Record:
    """The record of a run that has not begun."""
    return Record(
        run=number,
        cell=unit.cell.id,
        pair=unit.pair.name,
        block=block,
        boot=boot,
        factors=dict(unit.cell.factors),
        control=unit.cell.control,
        status="ok",
        reason="",
        started=now(),
    )


def status_of(error: Exception) -> Status:
    """The status of a run that ended with this error."""
    if isinstance(error, RequestError) or (
        isinstance(error, EngineError) and error.code == Code.UNSUPPORTED
    ):
        return "unsupported"
    return "failed"


def _cuts(ends: Ends) -> dict[str, float]:
    """Sides whose worker was silent for longer than heartbeats are apart: the controller was cut
    off from it for a while, and the run went on.
    """
    silences = {end.side: end.worker.silence for end in ends}
    return {side: round(seconds, 1) for side, seconds in silences.items() if seconds > CUT_SECONDS}
