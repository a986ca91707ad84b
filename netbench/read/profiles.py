"""What the profile runs of a result say: ticks (or cycles) per GiB by function, for each cell and
kernel.

Ticks per GiB = (samples / seconds sampled) / (GiB moved / seconds of the receiver's window): data
moves at the same speed before and after the window, in which nearly all was sampled.

Work of other programs than the transfer's is left out, unless it is softirq work, which the kernel
does in whatever process is there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from netbench.base.errors import StoreError
from netbench.read.layers import IDLE, layer_of
from netbench.result.profile_files import (
    KERNEL_MARK,
    Folded,
    KernelProfile,
    ProfileRecord,
    ProfileSide,
    read_folded,
    read_profile_runs,
)

GIB = 1 << 30
SWAPPER = "swapper"
_MODULE = re.compile(r" \[[^\]]*\]" + re.escape(KERNEL_MARK) + "$")
TRANSFERS = ("sender", "receiver", SWAPPER)
SOFTIRQ = ("handle_softirqs", "__do_softirq", "net_rx_action", "net_tx_action", "do_softirq")
Place = tuple[str, str]
"""(cell, pair)"""


@dataclass(frozen=True)
class RunProfile:
    """One profile run on one kernel. `costs`: of each function, in ticks (or cycles) per GiB, what
    is idle and what other programs did left out. `idle`, `others`: shares of all that was sampled.
    """

    costs: Mapping[str, float]
    stacks: Folded
    scale: float  # of a count of stacks to counts per GiB
    idle: float
    others: float
    profile: KernelProfile

    @cached_property
    def total(self) -> float:
        return sum(self.costs.values())


@dataclass(frozen=True)
class CellProfile:
    """All profile runs of a cell on one kernel, in rounds. `side`: whose kernel, `system` where
    both are on one.
    """

    cell: str
    pair: str
    factors: Mapping[str, str]
    side: ProfileSide
    runs: Sequence[RunProfile]

    @property
    def unit(self) -> str:
        """`ticks` or `cycles`."""
        return self.runs[0].profile.unit

    @cached_property
    def functions(self) -> Mapping[str, Sequence[float]]:
        """Each function's cost in every run."""
        names = dict.fromkeys(name for run in self.runs for name in run.costs)
        return {name: [run.costs.get(name, 0.0) for run in self.runs] for name in names}

    @property
    def totals(self) -> list[float]:
        return [run.total for run in self.runs]

    @cached_property
    def layers(self) -> Mapping[str, Sequence[float]]:
        """The cost of each layer in every run."""
        by_clock = self.runs[0].profile.event == "cpu-clock"
        parts: dict[str, list[Sequence[float]]] = {}
        for name, values in self.functions.items():
            parts.setdefault(layer_of(name, by_clock), []).append(values)
        return {layer: [sum(run) for run in zip(*of, strict=True)] for layer, of in parts.items()}

    @cached_property
    def stacks(self) -> Mapping[tuple[str, ...], float]:
        """Stacks of the transfer with their mean cost."""
        costs: dict[tuple[str, ...], float] = {}
        for run in self.runs:
            for stack, count in run.stacks.items():
                costs[stack] = costs.get(stack, 0.0) + count * run.scale / len(self.runs)
        return costs


@dataclass(frozen=True)
class Profiles:
    """The profiles of a result. `faults`: files that cannot be read; `failed`: why profile runs
    gave none, with how many.
    """

    cells: Sequence[CellProfile] = ()
    faults: Sequence[str] = ()
    failed: Mapping[str, int] = field(default_factory=dict)

    @property
    def found(self) -> bool:
        """Whether there is anything to say."""
        return bool(self.cells or self.faults or self.failed)


def profiles_of(result: Path) -> Profiles:
    """The profiles of a result folder, as far as they can be read; never raises."""
    runs: dict[tuple[Place, ProfileSide], list[RunProfile]] = {}
    heads: dict[Place, ProfileRecord] = {}
    faults: list[str] = []
    failed: Counter[str] = Counter()
    for record in _records(result, faults):
        if record.status != "ok":
            failed[record.reason] += 1
            continue
        heads[record.cell, record.pair] = record
        for side, profile in record.profiles.items():
            try:
                run = run_profile(record, profile, read_folded(result, profile))
            except StoreError as error:
                faults.append(str(error))
                continue
            if run:
                runs.setdefault(((record.cell, record.pair), side), []).append(run)
    cells = [CellProfile(*at, heads[at].factors, side, every) for (at, side), every in runs.items()]
    return Profiles(cells, faults, failed)


def _records(result: Path, faults: list[str]) -> Iterator[ProfileRecord]:
    try:
        yield from read_profile_runs(result)
    except StoreError as error:
        faults.append(str(error))


def run_profile(record: ProfileRecord, profile: KernelProfile, stacks: Folded) -> RunProfile | None:
    """What was sampled in a run; None where the run moved nothing that is known."""
    gib_per_second = _speed(record)
    if not gib_per_second or not profile.seconds:
        return None
    scale = 1 / profile.seconds / gib_per_second
    counts: Counter[str] = Counter()
    kept: dict[tuple[str, ...], int] = {}
    idle = others = 0
    for stack, count in stacks.items():
        if layer_of(stack[-1]) == IDLE:
            idle += count
        elif not is_of_transfer(stack, record.factors.get("tool", "")):
            others += count
        else:
            counts[stack[-1]] += count
            kept[stack] = count
    every = sum(stacks.values()) or 1
    costs = {name: count * scale for name, count in counts.items()}
    return RunProfile(costs, kept, scale, idle / every, others / every, profile)


def _speed(record: ProfileRecord) -> float:
    """GiB/s that the receiver got; 0 where that is not known."""
    side = record.receiver
    if side is None:
        return 0.0
    if side.tool is not None and side.tool.bytes and side.tool.seconds:
        return side.tool.bytes / side.tool.seconds / GIB
    edges = side.meters.get("flow", {}).get("bytes")
    if edges is None or side.time_ns is None or side.time_ns[0] == side.time_ns[1]:
        return 0.0
    opened, closed = (sum(edge) if isinstance(edge, list) else edge for edge in edges)
    return float((closed - opened) / GIB / (side.time_ns[1] - side.time_ns[0]) * 1e9)


def is_of_transfer(stack: Sequence[str], program: str) -> bool:
    """Whether a stack is work of the transfer: of its processes, of the kernel's own threads, or
    softirq work wherever it was done.
    """
    if stack[0] in TRANSFERS or stack[0] == program:
        return True
    is_thread = len(stack) > 1 and stack[1].startswith("ret_from_fork")
    return is_thread or any(frame.removesuffix(KERNEL_MARK) in SOFTIRQ for frame in stack[1:])


def common_names(cells: Sequence[CellProfile]) -> Mapping[str, str]:
    """By function of any of the cells, the name that it has in all: `f [module]_[k]` and `f_[k]`
    are one where a module of one kernel is built into another.
    """
    forms: dict[str, set[str]] = {}
    twice: set[str] = set()
    for cell in cells:
        bare = [_MODULE.sub(KERNEL_MARK, name) for name in cell.functions]
        twice |= {name for name, number in Counter(bare).items() if number > 1}
        for name, full in zip(bare, cell.functions, strict=True):
            forms.setdefault(name, set()).add(full)
    return {
        full: name if len(every) > 1 and name not in twice else full
        for name, every in forms.items()
        for full in every
    }


def units(cells: Iterable[CellProfile]) -> str:
    """What profiles count: `ticks`, `cycles`, or both where hosts differ."""
    return " or ".join(sorted({cell.unit for cell in cells}, reverse=True))
