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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from netbench.base import units
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
from netbench.stats.intervals import Interval, t_quantile, welch_error

GIB = 1 << 30
TRANSFERS = ("sender", "receiver")
IDLE_LOOP = ("cpu_startup_entry", "do_idle")
"""Around what interrupts do on an idle CPU, as process 0: so are those of other PID namespaces."""
SOFTIRQ = ("handle_softirqs", "__do_softirq", "net_rx_action", "net_tx_action", "do_softirq")
IDLE, OTHER, UNMAPPED = "idle", "other", "unmapped"
MASKED = "irqs off"
"""What ran with interrupts off, as a clock samples it: where they are switched on again."""
_BY_NAME = ("data copy", "TCP/IP", "device", "skb", "memory", "locks", "scheduling")
ORDER = (*_BY_NAME, MASKED, OTHER, UNMAPPED)
"""Layers as reports show them; what is idle is no cost."""
Costs = Mapping[str, Sequence[float]]
"""By function or layer, that of every run, per GiB."""
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
    text = (Path(__file__).parent / "layers.txt").read_text(encoding="utf-8")
    parts = re.split(r"^\[(.+)\]$", re.sub(r"^#.*", "", text, flags=re.M), flags=re.M)[1:]
    words = zip(parts[::2], parts[1::2], strict=True)
    return [(layer, re.compile("|".join(map(_expression, of.split())))) for layer, of in words]


def _expression(word: str) -> str:
    """A function of a module, or a part of it that the compiler has split off, is the function."""
    plain = translate(word).removesuffix(r"\Z").removesuffix(r"\z")
    return rf"(?:{plain}(?:\.(?:part|constprop|isra|cold)[.\d]*)*(?: \[.*\])?\Z)"


@dataclass(frozen=True)
class RunProfile:
    """One profile run on one kernel. `stacks`: those of the transfer, whose counts times `scale`
    are ticks (or cycles) per GiB. `sample`: what one sample stands for, per GiB: a tick, or the
    cycles between two. `idle`, `others`: shares of all that was sampled.
    """

    stacks: Folded
    scale: float
    sample: float
    idle: float
    others: float
    profile: KernelProfile

    @cached_property
    def costs(self) -> Mapping[str, float]:
        """Of each function, per GiB."""
        counts = Counter[str]()
        for stack, count in self.stacks.items():
            counts[_MODULE.sub(KERNEL_MARK, stack[-1])] += count
        return {name: count * self.scale for name, count in counts.items()}


@dataclass(frozen=True)
class CellProfile:
    """All profile runs of a cell on a kernel. `side`: whose kernel; `system`: of both."""

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
    def functions(self) -> Costs:
        """Each function's cost in every run."""
        names = dict.fromkeys(name for run in self.runs for name in run.costs)
        return {name: [run.costs.get(name, 0.0) for run in self.runs] for name in names}

    @property
    def totals(self) -> list[float]:
        return [sum(run.costs.values()) for run in self.runs]

    def layer_of(self, name: str) -> str:
        """The layer of one of its functions."""
        return layer_of(name, self.runs[0].profile.event == "cpu-clock")

    @cached_property
    def layers(self) -> Costs:
        """The cost of each layer in every run, in ORDER."""
        parts: dict[str, list[Sequence[float]]] = {}
        for name, values in self.functions.items():
            parts.setdefault(self.layer_of(name), []).append(values)
        return {
            each: list(map(sum, zip(*parts[each], strict=True))) for each in ORDER if each in parts
        }

    @cached_property
    def stacks(self) -> Mapping[tuple[str, ...], float]:
        """Stacks of the transfer with their mean cost."""
        costs: dict[tuple[str, ...], float] = {}
        for run in self.runs:
            for stack, count in run.stacks.items():
                costs[stack] = costs.get(stack, 0.0) + count * run.scale / len(self.runs)
        return costs


class Profiles(NamedTuple):
    """The profiles of a result, and in words what could not be read or sampled."""

    cells: Sequence[CellProfile]
    faults: Sequence[str]


def profiles_of(result: Path) -> Profiles:
    """The profiles of a result folder, as far as they can be read; never raises."""
    runs: dict[tuple[str, str, ProfileSide, str], list[RunProfile]] = {}
    levels: dict[str, Mapping[str, str]] = {}
    faults, failed = list[str](), Counter[str]()
    try:
        for record in read_profile_runs(result):
            failed.update([record.reason] * (record.status != "ok"))
            levels[record.cell] = record.factors
            for side, profile in record.profiles.items() if record.status == "ok" else ():
                try:
                    run = _run_profile(record, profile, read_folded(result, profile))
                except StoreError as error:
                    faults.append(str(error))
                    continue
                if run:
                    at = record.cell, record.pair, side, profile.unit
                    runs.setdefault(at, []).append(run)
    except StoreError as error:
        faults.append(str(error))
    faults += [f"{units.count(n, 'profile run')} gave none: {why}" for why, n in failed.items()]
    cells = [CellProfile(*at[:2], levels[at[0]], at[2], of) for at, of in runs.items()]
    return Profiles(cells, faults)


def _run_profile(
    record: ProfileRecord, profile: KernelProfile, stacks: Folded
) -> RunProfile | None:
    """What was sampled in a run; None where the run moved nothing that is known."""
    gib_per_second = throughput_of(record.receiver or NO_COUNTERS) * 1e9 / 8 / GIB
    if not gib_per_second > 0 or not profile.seconds:
        return None
    counts: dict[tuple[str, ...], int] = {}
    left_out, every = Counter[str](), sum(stacks.values()) or 1
    for stack, count in stacks.items():
        if layer_of(stack[-1]) == IDLE:
            left_out[IDLE] += count
        elif not _is_of_transfer(stack, record.factors.get("tool", "")):
            left_out[OTHER] += count
        else:
            counts[stack] = count
    scale = 1 / profile.seconds / gib_per_second
    sample = scale * every / max(profile.samples, 1)
    idle, others = left_out[IDLE] / every, left_out[OTHER] / every
    return RunProfile(counts, scale, sample, idle, others, profile)


def _is_of_transfer(stack: Sequence[str], program: str) -> bool:
    """Whether a stack is work of the transfer: of its processes, of the kernel's own threads, or
    softirq work wherever it was done.
    """
    if stack[0] in TRANSFERS or stack[0] == program:
        return True
    kernels = ("kthread", *SOFTIRQ, *IDLE_LOOP)  # users' threads begin at ret_from_fork, too
    return any(frame.removesuffix(KERNEL_MARK) in kernels for frame in stack[1:])


class Change(NamedTuple):
    """Mean costs of a function, a layer or all, and the change with its interval, per GiB."""

    name: str
    before: float
    after: float
    change: Interval


class ProfileDifference(NamedTuple):
    """What changed between profiles: in all, by function and by layer, the largest first."""

    before: CellProfile
    after: CellProfile
    total: Change
    functions: Sequence[Change]
    layers: Sequence[Change]


def difference(
    before: CellProfile, after: CellProfile, confidence: float = 0.95
) -> ProfileDifference:
    """What changed from one profile to the other, which count the same unit. Intervals are from how
    far the profile runs of each lie apart (Welch), and at least as wide as counting samples alone
    makes them (Poisson: the variance of a count is its mean); of single runs, as wide as that.
    """
    normal = float(special.ndtri((1 + confidence) / 2))

    def change(name: str, *costs: Sequence[float]) -> Change:
        (a, b), profiles = (np.asarray(each, dtype=float) for each in costs), (before, after)
        counted = sum(  # numbers of samples times what one stands for
            float(costs @ [run.sample for run in profile.runs]) / len(costs) ** 2
            for profile, costs in zip(profiles, (a, b), strict=True)
        )
        half, moved = normal * math.sqrt(counted), float(b.mean() - a.mean())
        n = min(len(a), len(b))
        if n > 1:
            error, freedom = welch_error(a, b)
            half = max(half, t_quantile(freedom, confidence) * error)
        interval = Interval(n, moved, moved - half, moved + half, half_width=half)
        return Change(name, float(a.mean()), float(b.mean()), interval)

    def changes(one: Costs, other: Costs) -> Sequence[Change]:
        nothing = [0.0] * len(before.runs), [0.0] * len(after.runs)
        names = dict.fromkeys((*one, *other))
        changed = [change(n, one.get(n, nothing[0]), other.get(n, nothing[1])) for n in names]
        return sorted(changed, key=lambda one: (-abs(one.change.mean), one.name))

    return ProfileDifference(
        before,
        after,
        change("total", before.totals, after.totals),
        changes(before.functions, after.functions),
        changes(before.layers, after.layers),
    )
