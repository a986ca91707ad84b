"""The executor of ProfileRun: a transfer that helpers sample, outside the measured runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from netbench.base.errors import EngineError, RequestError, RootRefused
from netbench.model import Campaign, ProfileSpec, Transfer
from netbench.plan.plan import ProfileRun
from netbench.read.soak import SOAK
from netbench.result.profile_files import Folded, KernelProfile, ProfileRecord, ProfileSide
from netbench.run import external_tool, transfer
from netbench.run.ends import EndFinder, Ends, Measurement
from netbench.run.exchange import Watch
from netbench.run.external_tool import ToolFailed
from netbench.run.profiler import Profiler
from netbench.run.recorder import empty_profile_record, status_of
from netbench.run.sinks import MadeSinks
from netbench.run.worker_pool import WorkerPool

ALONE = frozenset({SOAK})  # meters that would be sampled themselves
IN_A_FILE = (
    "the sink is a file: a profile run lasts as long as `profile.seconds` says, and would write as"
    " much as fits in that time; profile the cell with `sink: discard`"
)
NO_WINDOW = "the tool has no window that is known: it is measured over its whole life"


Profiled = tuple[ProfileRecord, Mapping[str, Folded]]
"""A profile run's record and the stacks of its files."""


class ProfileRunner:
    """Runs units under the profiler, on the workers of their pairs."""

    def __init__(self, campaign: Campaign, pool: WorkerPool, sinks: MadeSinks) -> None:
        self._spec = campaign.profile or ProfileSpec()
        self._pool = pool
        self._sinks = sinks
        self._ends = EndFinder(campaign, pool)

    def run(self, step: ProfileRun, number: int) -> Profiled:
        """One profile run. Errors: Lost."""
        record = empty_profile_record(step, number)
        try:
            return self._run(step, record)
        except RootRefused as error:
            return replace(record, status="unsupported", reason=str(error)), {}
        except (ToolFailed, EngineError, RequestError, TimeoutError, ValueError) as error:
            return replace(record, status=status_of(error), reason=str(error)), {}

    def _run(self, step: ProfileRun, record: ProfileRecord) -> Profiled:
        asked = step.unit.cell.transfer
        if asked.sink.kind == "file":
            raise RequestError(IN_A_FILE)
        if asked.tool.external and not external_tool.has_window(_timed(asked, self._spec.duration)):
            raise RequestError(NO_WINDOW)
        ends = self._ends.ends(step.unit)
        ends = Ends(*(replace(end, meters=_without_alone(end.meters)) for end in ends))
        for end in ends:
            if end.host.name in self._pool.refused:
                raise self._pool.refused[end.host.name]
        profiler = Profiler(self._pool, ends, self._spec.frequency)
        profiler.prepare()
        timed = _timed(asked, self._spec.duration)
        measured = self._measure(timed, ends, record.run, Watch(profiler.begin, profiler.end))
        sampled = profiler.read()
        profiles: dict[ProfileSide, KernelProfile] = {}
        stacks: dict[str, Folded] = {}
        for side, (profile, folded) in sampled.items():
            file = f"{record.run:06d}.{side}.folded"
            profiles[side], stacks[file] = replace(profile, file=file), folded
        done = replace(
            record, sender=measured.sender, receiver=measured.receiver, profiles=profiles
        )
        return done, stacks

    def _measure(self, timed: Transfer, ends: Ends, number: int, watch: Watch) -> Measurement:
        if timed.tool.external:
            return external_tool.measure(timed, ends, self._sinks, number, watch)
        return transfer.measure(timed, ends, self._sinks, watch)


def _timed(asked: Transfer, duration: int) -> Transfer:
    return replace(asked, duration=duration, bytes=None)


def _without_alone(meters: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in meters if name not in ALONE)
