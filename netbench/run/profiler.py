"""The executor of ProfileRun: a transfer that helpers sample, outside the measured runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import takewhile
from typing import Literal

from netbench.base.errors import EngineError, ProtocolError, RequestError, RootRefused
from netbench.engine.binding import SAME
from netbench.engine.worker import Worker
from netbench.model import Campaign, ProfileSpec, Transfer
from netbench.plan.plan import ProfileRun
from netbench.read.metrics import SOAK
from netbench.read.profiles import TRANSFERS
from netbench.result.profile_files import (
    KERNEL_MARK,
    Folded,
    KernelProfile,
    ProfileRecord,
    ProfileSide,
)
from netbench.run import external_tool, transfer
from netbench.run.ends import End, EndFinder, Ends, Measurement
from netbench.run.external_tool import ToolFailed
from netbench.run.job import MadeSinks
from netbench.run.recorder import empty_profile_record, status_of
from netbench.run.transfer import Watch
from netbench.run.worker_pool import WorkerPool
from netbench.tools.adaptors import adaptor_of
from netbench.tools.tool import Place

ALONE = frozenset({SOAK})  # meters that would be sampled themselves
IN_A_FILE = (
    "the sink is a file: a profile run lasts as long as `profile.seconds` says, and would write as"
    " much as fits in that time; profile the cell with `sink: discard`"
)
NO_WINDOW = "the tool has no window that is known: it is measured over its whole life"
PARTS_MAX = 256  # of a report, a quarter of a MiB each
NUMBERS = ("frequency", "begin", "end", "cpus", "samples", "lost", "throttles", "kernel_symbols")
HELPER_LABEL = "netbench helper"
FAILURES = (ToolFailed, EngineError, RequestError, RootRefused, TimeoutError)

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
        except FAILURES as error:
            return replace(
                record, status=status_of(error), reason=str(error).partition("\n")[0]
            ), {}

    def _run(self, step: ProfileRun, record: ProfileRecord) -> Profiled:
        timed = step.unit.cell.transfer._replace(duration=self._spec.duration, bytes=None)
        if timed.sink.kind == "file":
            raise RequestError(IN_A_FILE)
        if timed.tool.external and not adaptor_of(timed.tool).commands(timed, Place("", 1)).window:
            raise RequestError(NO_WINDOW)
        ends = Ends(
            *(
                end._replace(meters=tuple(name for name in end.meters if name not in ALONE))
                for end in self._ends.ends(step.unit)
            )
        )
        kernels = _kernels(ends)
        helpers = {side: self._pool.helper(of[0].host.name) for side, of in kernels.items()}

        def order(what: str) -> None:
            for helper in helpers.values():
                helper.operate("profile", "sampling", what)

        @contextmanager
        def sampling() -> Iterator[None]:
            order("on")
            yield
            order("off")

        order(f"ready {self._spec.frequency}")  # opens events and reads symbols, which takes time
        measured = self._measure(timed, ends, record.run, sampling())
        profiles: dict[ProfileSide, KernelProfile] = {}
        stacks: dict[str, Folded] = {}
        for side, of in kernels.items():
            helper, file = helpers[side], f"{record.run:06d}.{side}.folded"
            movers: dict[int, str] = {end.worker.hello.pid: end.side for end in of}
            labels = {helper.hello.pid: HELPER_LABEL} | movers
            try:
                head, stacks[file] = fold(_report(helper), labels)
                profiles[side] = replace(_described(helper.host, head), file=file)
            except (LookupError, ValueError) as error:
                what = f"{helper.host}: the helper's profile is none: {error}{SAME}"
                raise ProtocolError(what) from error
        done = replace(
            record, sender=measured.sender, receiver=measured.receiver, profiles=profiles
        )
        return done, stacks

    def _measure(self, timed: Transfer, ends: Ends, number: int, watch: Watch) -> Measurement:
        if timed.tool.external:
            return external_tool.measure(timed, ends, self._sinks, number, watch)
        return transfer.measure(timed, ends, self._sinks, watch)


def _kernels(ends: Ends) -> dict[ProfileSide, tuple[End, ...]]:
    """Each kernel of a pair once, with the ends that are on it."""
    if ends.sender.worker.hello.boot_id == ends.receiver.worker.hello.boot_id:
        return {"system": (ends.sender, ends.receiver)}
    return {"sender": (ends.sender,), "receiver": (ends.receiver,)}


def _report(helper: Worker) -> str:
    """The helper's report. Errors: ValueError for one without an end."""
    numbers = iter(range(PARTS_MAX))
    parts = (helper.operate("profile", str(number))[0] for number in numbers)
    text = "".join(takewhile(bool, parts))
    if next(numbers, None) is None:
        raise ValueError(f"it has more than {PARTS_MAX} parts")
    return text


def _described(host: str, head: Mapping[str, str]) -> KernelProfile:
    """Errors: LookupError, ValueError for a report without what it must have."""
    frequency, begin, end, *counts = (int(head[name]) for name in NUMBERS)
    cpus, samples, lost, throttles, symbols = counts
    counted: Literal["cycles", "cpu-clock"] = "cycles" if head["event"] == "cycles" else "cpu-clock"
    return KernelProfile(
        host, counted, frequency, (begin, end), cpus, samples, lost, throttles, symbols
    )


USER = "[user]"  # what runs outside of the kernel
NAME_LENGTH = 200  # of a function or a process that a host names
ODD = re.compile("[^ -:<-~]")  # what is no printable ASCII, or ends a frame


def fold(text: str, labels: Mapping[int, str]) -> tuple[dict[str, str], dict[tuple[str, ...], int]]:
    """A helper's report: its head, and its stacks by the names of their process (or its `labels`,
    by pid) and of their frames, the outermost first: ticks, or cycles where those were counted.
    Errors: LookupError, ValueError for a text that is no report.
    """
    head: dict[str, str] = {}
    frames: list[str] = []
    processes: list[str] = []
    folded: dict[tuple[str, ...], int] = {}
    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "f":
            frames.append(_plain(rest) + KERNEL_MARK)
        elif kind == "p":
            pid, _, word = rest.partition(" ")
            name = _plain(word)
            another = "?" * (name in (HELPER_LABEL, *TRANSFERS))  # of that name
            processes.append(labels.get(int(pid), name + another))
        elif kind == "s":
            samples, events, process, *places = numbers = [int(word) for word in rest.split()]
            stack = processes[process], *([frames[place] for place in places] or [USER])
            counted = events if head.get("event") == "cycles" else samples
            folded[stack] = folded.get(stack, 0) + counted
            if min(numbers) < 0 or folded[stack] >= 2**63:
                raise ValueError(f"no line of a profile: {line[:80]!r}")
        else:
            head[kind] = rest
    return head, folded


def _plain(name: str) -> str:
    """A name of a host's that stays one frame of one line."""
    return ODD.sub("?", name[:NAME_LENGTH]).strip() or "?"
