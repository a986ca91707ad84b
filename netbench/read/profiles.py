"""What the profile runs of a result say: ticks (or cycles) per GiB by function and by layer, for
each cell and kernel, and what two profiles differ in.

Ticks per GiB = (samples / seconds sampled) / (GiB moved / seconds of the receiver's window): data
moves at the same speed before and after the window, in which nearly all was sampled.

Work of other programs than the transfer's is left out, unless it is softirq work, which the kernel
does in whatever process is there. A function's layer is that of the first pattern of layers.txt
that it matches.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import translate
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from netbench.base.errors import StoreError
from netbench.read.counters import NO_COUNTERS
from netbench.read.derive import throughput_of
from netbench.result.profile_files import (
    KERNEL_MARK,
    Folded,
    KernelProfile,
    ProfileRecord,
    ProfileSide,
    read_folded,
    read_profile_runs,
)
from netbench.stats import special
from netbench.stats.intervals import NAN, Interval, t_quantile, welch_error

GIB = 1 << 30
TRANSFERS = ("sender", "receiver", "swapper")
SOFTIRQ = ("handle_softirqs", "__do_softirq", "net_rx_action", "net_tx_action", "do_softirq")
IDLE, OTHER, UNMAPPED = "idle", "other", "unmapped"
MASKED = "irqs off"
"""What ran with interrupts off, as a clock samples it: where they are switched on again."""
_BY_NAME = ("data copy", "TCP/IP", "device", "skb", "memory", "locks", "scheduling")
ORDER = (*_BY_NAME, MASKED, OTHER, UNMAPPED)
"""Layers as reports show them; what is idle is no cost."""
# A function is one in a module of one kernel and built into another.
_MODULE = re.compile(r" \[[^\[\]]*\]" + re.escape(KERNEL_MARK) + "$")


@cache
def layer_of(frame: str, by_clock: bool = False) -> str:
    """The layer of a frame of a folded stack; what is not of the kernel is `other`. by_clock: of a
    sample that a clock's interrupt took.
    """
    if not frame.endswith(KERNEL_MARK):
        return OTHER
    name = frame.removesuffix(KERNEL_MARK)
    if by_clock and name.endswith(("_irqrestore", "_unlock_irq")):
        return MASKED
    return next((layer for layer, pattern in _patterns() if pattern.match(name)), UNMAPPED)


@cache
def _patterns() -> Sequence[tuple[str, re.Pattern[str]]]:
    """Layers with their patterns, in the file's order: one expression a layer."""
    layers: dict[str, list[str]] = {}
    layer = ""
    for line in (Path(__file__).parent / "layers.txt").read_text().splitlines():
        if line.startswith("["):
            layer = line.strip("[]")
        elif not line.startswith("#"):
            layers.setdefault(layer, []).extend(map(_expression, line.split()))
    return [(name, re.compile("|".join(each))) for name, each in layers.items() if each]


def _expression(word: str) -> str:
    """A function of a module, or a part of it that the compiler has split off, is the function."""
    plain = translate(word).removesuffix(r"\Z").removesuffix(r"\z")
    return rf"(?:{plain}(?:\.(?:part|constprop|isra|cold)[.\d]*)*(?: \[.*\])?\Z)"


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
    runs: dict[tuple[str, str, ProfileSide], list[RunProfile]] = {}
    levels: dict[str, Mapping[str, str]] = {}
    faults: list[str] = []
    failed: Counter[str] = Counter()
    try:
        for record in read_profile_runs(result):
            if record.status != "ok":
                failed[record.reason] += 1
                continue
            levels[record.cell] = record.factors
            for side, profile in record.profiles.items():
                try:
                    run = _run_profile(record, profile, read_folded(result, profile))
                except StoreError as error:
                    faults.append(str(error))
                    continue
                if run:
                    runs.setdefault((record.cell, record.pair, side), []).append(run)
    except StoreError as error:
        faults.append(str(error))
    cells = [
        CellProfile(cell, pair, levels[cell], side, each)
        for (cell, pair, side), each in runs.items()
    ]
    return Profiles(cells, faults, failed)


def _run_profile(
    record: ProfileRecord, profile: KernelProfile, stacks: Folded
) -> RunProfile | None:
    """What was sampled in a run; None where the run moved nothing that is known."""
    gib_per_second = throughput_of(record.receiver or NO_COUNTERS) * 1e9 / 8 / GIB
    if not gib_per_second > 0 or not profile.seconds:
        return None
    scale = 1 / profile.seconds / gib_per_second
    counts: Counter[str] = Counter()
    kept: dict[tuple[str, ...], int] = {}
    idle = others = 0
    for stack, count in stacks.items():
        if layer_of(stack[-1]) == IDLE:
            idle += count
        elif not _is_of_transfer(stack, record.factors.get("tool", "")):
            others += count
        else:
            counts[_MODULE.sub(KERNEL_MARK, stack[-1])] += count
            kept[stack] = count
    every = sum(stacks.values()) or 1
    costs = {name: count * scale for name, count in counts.items()}
    return RunProfile(costs, kept, scale, idle / every, others / every, profile)


def _is_of_transfer(stack: Sequence[str], program: str) -> bool:
    """Whether a stack is work of the transfer: of its processes, of the kernel's own threads, or
    softirq work wherever it was done.
    """
    if stack[0] in TRANSFERS or stack[0] == program:
        return True
    is_thread = len(stack) > 1 and stack[1].startswith("ret_from_fork")
    return is_thread or any(frame.removesuffix(KERNEL_MARK) in SOFTIRQ for frame in stack[1:])


def units(cells: Iterable[CellProfile]) -> str:
    """What profiles count: `ticks`, `cycles`, or both where hosts differ."""
    return " or ".join(sorted({cell.unit for cell in cells}, reverse=True))


@dataclass(frozen=True)
class FunctionChange:
    """A function's mean cost before and after, and the change with its interval, per GiB."""

    name: str
    before: float
    after: float
    change: Interval


@dataclass(frozen=True)
class ProfileDifference:
    """`ratio`: the totals, after over before, with its interval; NaN where it is not known.
    `functions`: by how much they changed, the largest change first.
    """

    before: CellProfile
    after: CellProfile
    ratio: float
    low: float
    high: float
    functions: Sequence[FunctionChange]


def difference(
    before: CellProfile, after: CellProfile, confidence: float = 0.95
) -> ProfileDifference:
    """What changed from one profile to the other, which count the same unit; the intervals are from
    how far the profile runs of each lie apart. Samples are counted, and few counts may be equal by
    chance: a function's interval is at least as wide as counting alone makes it (Poisson: the
    variance of a count is its mean).
    """
    both = before, after
    logs = [[math.log(total) for total in one.totals if total > 0] for one in both]
    ratio = welch(logs[0], logs[1], confidence)
    normal = float(special.ndtri((1 + confidence) / 2))
    changes = []
    for name in dict.fromkeys((*before.functions, *after.functions)):
        a, b = (one.functions.get(name, [0.0] * len(one.runs)) for one in both)
        change = welch(a, b, confidence)
        half = normal * math.sqrt(_counting_variance(before, a) + _counting_variance(after, b))
        if change.half_width < half:
            low, high = change.mean - half, change.mean + half
            change = replace(change, low=low, high=high, half_width=half)
        changes.append(FunctionChange(name, float(np.mean(a)), float(np.mean(b)), change))
    changes.sort(key=lambda one: (-abs(one.change.mean), one.name))
    mean, low, high = (math.exp(x) for x in (ratio.mean, ratio.low, ratio.high))
    return ProfileDifference(before, after, mean, low, high, changes)


def _counting_variance(profile: CellProfile, costs: Sequence[float]) -> float:
    """Of the mean of a function's costs, which are counts times the scales of their runs."""
    parts = (cost * run.scale for cost, run in zip(costs, profile.runs, strict=True))
    return sum(parts) / len(profile.runs) ** 2


def geometric_mean(totals: Sequence[float]) -> float:
    """Of those above 0, as the ratio has them; NaN where there is none."""
    return math.exp(float(np.mean(np.log([t for t in totals if t > 0])))) if any(totals) else NAN


def welch(before: Sequence[float], after: Sequence[float], confidence: float) -> Interval:
    """The difference of two means with its interval (Welch 1947, doi:10.1093/biomet/34.1-2.28); NaN
    bounds where either has one value, all NaN where either has none.
    """
    a, b = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    n = min(len(a), len(b))
    mean = float(b.mean() - a.mean()) if n else NAN
    if n < 2:
        return Interval(n, mean)
    error, freedom = welch_error(a, b)
    half = t_quantile(freedom, confidence) * error
    return Interval(n, mean, mean - half, mean + half, half_width=half)
