"""The shapes of profiles/: runs.jsonl has one line a profile run; what was sampled on a kernel in
it is a text beside it, one line a stack: `frame;frame;frame COUNT`, the outermost frame first.

Frames: `sender`, `receiver`, or the name of another process; functions of the kernel end in `_[k]`,
those of a module name it before that: `virtnet_poll [virtio_net]_[k]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from netbench.base.json_lines import JsonLines
from netbench.result import codec
from netbench.result.codec import SCHEMA, Integer, JsonObject, unreadable
from netbench.result.record import Count, PairName, RunNumber, SideCounters, Status, Time, Window

PROFILES = "profiles"
RUNS = "runs.jsonl"
KERNEL_MARK = "_[k]"
Folded = Mapping[tuple[str, ...], int]
"""Stacks, the outermost frame first, with how many ticks (or cycles) were sampled in each."""
_NAME = re.compile(r"^[0-9]{6}\.(sender|receiver|system)\.folded$")
ProfileSide = Literal["sender", "receiver", "system"]


@dataclass(frozen=True)
class KernelProfile(JsonObject):
    """What was sampled on one kernel in a profile run. `samples` stand for `counted` ticks or
    cycles.
    """

    host: Annotated[str, "the host whose helper sampled"]
    event: Annotated[
        Literal["cycles", "cpu-clock"],
        "what was counted: `cycles`, or `cpu-clock` where the machine counts none",
    ]
    frequency: Annotated[Integer, "what was asked for, of each CPU", "Hz"]
    time_ns: Annotated[Window, "CLOCK_MONOTONIC when sampling began and ended", "ns"]
    cpus: Annotated[Integer, "CPUs that were sampled"]
    samples: Annotated[Count, "samples that are in the stacks"]
    lost: Annotated[Count, "samples for which there was no room", "samples"]
    throttles: Annotated[Count, "times that the kernel stopped sampling for being too frequent"] = 0
    kernel_symbols: Annotated[
        Count, "functions of the kernel that have a name; 0: they are hidden"
    ] = 0
    file: Annotated[Annotated[str, Field(pattern=_NAME)], "the stacks, in profiles/"] = ""

    @property
    def unit(self) -> str:
        """What the counts of stacks are: `ticks` or `cycles`."""
        return "cycles" if self.event == "cycles" else "ticks"

    @property
    def seconds(self) -> float:
        return (self.time_ns[1] - self.time_ns[0]) / 1e9


@dataclass(frozen=True)
class ProfileRecord(JsonObject):
    """One profile run: a line of profiles/runs.jsonl. It is no measured run."""

    head: ClassVar = {"schema": Literal[SCHEMA]}
    run: Annotated[RunNumber, "counts profile runs from 1"]
    cell: Annotated[str, "the cell's id"]
    pair: Annotated[PairName, "`sender>receiver`"]
    round: Annotated[Count, "each cell is profiled once in a round; counts from 0"]
    boot: Annotated[Count, "the boot that the hosts were in, as in a record"]
    factors: Annotated[Mapping[str, str], "factor -> level, as written"]
    status: Annotated[Status, "how the run ended"]
    reason: Annotated[str, 'why it is not ok; "" where it is']
    started: Annotated[Time, "UTC in ISO 8601"]
    sender: Annotated[SideCounters | None, "the sender's counters, as in a record"] = None
    receiver: Annotated[SideCounters | None, "the receiver's counters, as in a record"] = None
    profiles: Annotated[
        Mapping[ProfileSide, KernelProfile], "by side; `system` where both hosts share a kernel"
    ] = field(default_factory=dict)


def read_profile_runs(result: Path) -> Iterator[ProfileRecord]:
    """The profile runs of a result folder, in order; none where there are none. Errors: StoreError
    with the line of one that is none.
    """
    lines = JsonLines(result / PROFILES / RUNS, below=2)
    if not lines.path.exists():
        return
    for number, line in lines:
        yield codec.read(ProfileRecord, line, lines.where(number), "a profile run")


def folded_text(stacks: Folded) -> str:
    """Stacks as text, in order."""
    return "".join(f"{';'.join(stack)} {count}\n" for stack, count in sorted(stacks.items()))


def read_folded(result: Path, profile: KernelProfile) -> dict[tuple[str, ...], int]:
    """The stacks of a profile. Errors: StoreError for a missing file, or a line that is none."""
    path = result / PROFILES / profile.file
    stacks: dict[tuple[str, ...], int] = {}
    try:
        for number, line in JsonLines(path, below=2):
            frames, _, count = line.decode().rpartition(" ")
            if not frames or not count.strip().isdecimal() or len(count) > 20:
                raise unreadable(f"{path}:{number}", "not a stack with its count")
            stack = tuple(frames.split(";"))
            stacks[stack] = stacks.get(stack, 0) + int(count)
    except ValueError as error:
        raise unreadable(path, "not UTF-8 text") from error
    return stacks
