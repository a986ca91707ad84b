"""A result: everything that analysis keeps of a result folder."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path

import numpy as np
import pandas as pd

from netbench.base.names import OF_SHARES
from netbench.model import Compare, Repeat
from netbench.read.meter_choice import Contradiction
from netbench.read.metrics import NO_UNITS, Metric, describe
from netbench.read.noise_labels import foreign_loads
from netbench.read.readbacks import Readback
from netbench.read.totals import CounterKey, Total
from netbench.result.files import HostEntry, Hosts, NoiseEntry, PlanFile, PlannedCell
from netbench.result.journal import Journal, LeftChanged
from netbench.stats.by_boot import KERNEL, in_boots
from netbench.stats.pairs import Rounds, rounds

MOST_PAIRS = 8
"""A campaign with more pairs is a fleet."""
MOVED = ("throughput", "transactions")
"""Metrics that are 0 where nothing moved, of which others have no value then."""


@dataclass(frozen=True)
class Result:
    """A result folder in memory.

    runs: one row a run in order of execution: run cell pair block boot round (of those that run
    side by side, from 1; only in campaigns of several pairs) build (0: its kernel has one) status
    reason started engaged (why the mechanism did not engage, or "") excluded (why an ok run is not
    pooled with the others: facts that changed) noise (what disturbed its block), one column a
    factor, one a metric (NaN: that run has none). control_runs: those of controls, which
    nothing else here has. proofs, used: by cell, pair, side and counter, over the runs that count.
    readbacks: what was asked and read of each setting. moved: (cell, pair, change) -> runs in which
    it moved unasked. noise: the entries of noise.jsonl. shared: by pair, whether both ends are on
    one kernel. meters: by CPU metric, the order in which the bare name takes its meter;
    contradicted: meters that counted less than the processes used. asked: what campaign.yaml says
    of the transfer, of settings and of tools, `transfer.chunk` to its words; None without one.
    units: of the metrics that tools print; odd_units: (cell, pair, metric) -> runs whose number
    is in a unit that is no multiple of that, and is left out. truncated: the last line was cut.
    """

    path: Path
    plan: PlanFile
    hosts: Hosts
    about: str
    metrics: tuple[str, ...]
    runs: pd.DataFrame
    control_runs: pd.DataFrame
    proofs: Mapping[CounterKey, Total]
    readbacks: Sequence[Readback]
    moved: Mapping[tuple[str, str, str], int]
    noise: Sequence[NoiseEntry]
    shared: Mapping[str, bool]
    meters: Mapping[str, Sequence[str]]
    contradicted: Sequence[Contradiction]
    used: Mapping[CounterKey, Total]
    asked: Mapping[str, str] | None = None
    units: Mapping[str, str] = field(default_factory=lambda: NO_UNITS)
    odd_units: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    truncated: bool = False

    def describe(self, metric: str) -> Metric:
        """What a metric of this result is. Errors: KeyError where it has none of that name."""
        return describe(metric, self.units)

    def without(self, metrics: Collection[str]) -> Result:
        """The same, as if its runs had none of these metrics."""
        return replace(
            self,
            metrics=tuple(each for each in self.metrics if each not in metrics),
            runs=self.runs.drop(columns=[*metrics]),
            control_runs=self.control_runs.drop(columns=[*metrics]),
            units={name: unit for name, unit in self.units.items() if name not in metrics},
        )

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def is_fleet(self) -> bool:
        """Whether there are so many pairs that hosts are looked at, not cells."""
        return len(self.plan.pairs) > MOST_PAIRS

    @cached_property
    def ended(self) -> str:
        """How its last controller ended (an End); "" while it runs or when it was killed."""
        return self._journal.ended()

    @cached_property
    def _counted(self) -> dict[str, list[int]]:
        """The numbers of the runs that count, by host."""
        runs = self.runs[(self.runs["status"] == "ok") & (self.runs["excluded"] == "")]
        hosts: dict[str, list[int]] = {}
        for pair, of in runs.groupby("pair", observed=True):
            for host in str(pair).split(">"):
                hosts.setdefault(host, []).extend(of["run"])
        return hosts

    def in_force(self, host: str) -> list[HostEntry]:
        """The entries of a host that runs which count were made under; all, where none counts."""
        entries = list(self.hosts.get(host, ()))
        begun = [entry.from_run for entry in entries if entry.from_run is not None]
        if len(begun) < len(entries):
            return entries
        used = {max(bisect_right(begun, run) - 1, 0) for run in self._counted.get(host, ())}
        return [entries[at] for at in sorted(used)] or entries

    @cached_property
    def left_changed(self) -> list[LeftChanged]:
        """What was not as before once everything was put back."""
        return self._journal.all(LeftChanged)

    @property
    def _journal(self) -> Journal:
        file = self.path / "journal.jsonl"
        return Journal(file if file.is_file() else None)

    @cached_property
    def foreign_loads(self) -> Mapping[tuple[str, int], float]:
        """CPUs that others used on the kernel of a host in a block, where there were such."""
        return foreign_loads(self.noise, self.ticks)

    @cached_property
    def factors(self) -> tuple[str, ...]:
        """The factors of the plan's cells, in the order in which cells name them."""
        return factors_of(self.plan)

    @property
    def handled(self) -> tuple[str, ...]:
        """What the campaign sets itself: factors, and settings that it holds."""
        return handled_by(self.plan)

    @cached_property
    def repeat(self) -> Repeat:
        """The plan's `repeat`. Where hosts are booted `max` is `min`, since nothing stops early."""
        asked = Repeat(**vars(self.plan.repeat))
        booted = bool(self.plan.boots) or in_boots(asked, self.factors)
        return asked._replace(max=asked.min) if booted else asked

    @cached_property
    def compare(self) -> Compare | None:
        """The plan's `compare`; None where the campaign compares nothing."""
        return Compare(**vars(self.plan.compare)) if self.plan.compare else None

    @property
    def swept(self) -> tuple[str, ...]:
        """Factors of `sweep:`; a key that only `include` gave belongs to its level, so a comparison
        does not hold it equal.
        """
        return tuple(n for n in self.plan.swept if n in self.factors) or self.factors

    def levels(self, factors: Mapping[str, str]) -> tuple[str, ...]:
        """The levels of what is swept; "" for what a cell lacks."""
        return tuple(factors.get(name, "") for name in self.swept)

    @cached_property
    def in_boots(self) -> bool:
        """Whether netbench booted the hosts."""
        return bool(self.plan.boots) or in_boots(self.repeat, self.factors)

    @cached_property
    def rounds(self) -> Rounds:
        """In which round of the plan each boot was, by its blocks: a resumed campaign may have
        booted twice for one.

        Without boots in the plan: how many boots of its kernel precede it.
        """
        slots = list(accumulate(each.blocks for each in self.plan.boots))
        order = [each.kernel for each in self.plan.boots]
        ok = self.runs[self.runs["status"] == "ok"]
        places = {
            int(str(boot)): bisect_right(slots, int(block))
            for boot, block in ok.groupby("boot")["block"].min().items()
        }
        if order and all(order[p : p + 1] == [self.kernels[b]] for b, p in places.items()):
            return {boot: order[:place].count(order[place]) for boot, place in places.items()}
        return rounds(
            [b for b, kernel in self.kernels.items() if kernel == each]
            for each in dict.fromkeys(self.kernels.values())
        )

    @cached_property
    def kernels(self) -> Mapping[int, str]:
        """The level of the factor `kernel` in each boot that has a run, in order; "" where kernels
        are not swept.

        Runs that failed because a kernel did not come up carry the number of the boot before them:
        ok ones are asked first.
        """
        frame = self.runs.iloc[np.argsort((self.runs["status"] == "ok").to_numpy(), kind="stable")]
        levels = frame[KERNEL].astype("object") if KERNEL in self.factors else [""] * len(frame)
        level_of = dict(zip(frame["boot"].tolist(), levels, strict=True))
        return {boot: str(level_of[boot]) for boot in sorted(level_of)}

    @cached_property
    def builds(self) -> Mapping[str, int]:
        """How many builds each level of the factor `kernel` was planned to have, 1 or more."""
        most = {each.kernel: 1 for each in self.plan.boots}
        for each in self.plan.boots:
            most[each.kernel] = max(most[each.kernel], each.build or 1)
        return most

    def ticks(self, host: str) -> int:
        """Clock ticks of a host in a second; those of nearly all kernels where its facts miss."""
        return next((entry.clock_ticks for entry in self.hosts.get(host, ())), 100)

    def kernel_of(self, entry: HostEntry) -> str:
        """The level of `kernel` that an entry of facts.json is of; "" where kernels are not swept,
        or none of them was booted.
        """
        if not any(self.kernels.values()):
            return ""
        return self.kernels.get(entry.boot, "") if entry.on is None else entry.on

    @cached_property
    def emulated(self) -> tuple[str, ...]:
        """Pairs of which a host's CPU is software: no speed of any machine."""
        return self._pairs_where(lambda entry: entry.is_emulated)

    @cached_property
    def virtual_machines(self) -> tuple[str, ...]:
        """Pairs of which a host is a lab's guest under KVM, and none is emulated: what was measured
        there costs what it costs in a virtual machine.
        """
        pairs = self._pairs_where(lambda entry: entry.is_virtual_machine)
        return tuple(pair for pair in pairs if pair not in self.emulated)

    def _pairs_where(self, true: Callable[[HostEntry], bool]) -> tuple[str, ...]:
        """Pairs of which a host has such an entry, in the plan's order."""
        hosts = {host for host, entries in self.hosts.items() if any(map(true, entries))}
        return tuple(pair for pair in self.plan.pairs if hosts & set(pair.split(">")))

    @property
    def cells(self) -> tuple[PlannedCell, ...]:
        """The plan's cells, in its order, without controls."""
        return tuple(cell for cell in self.plan.cells if not cell.control)

    @property
    def controls(self) -> tuple[PlannedCell, ...]:
        """The plan's controls, in its order."""
        return tuple(cell for cell in self.plan.cells if cell.control)

    @property
    def failed(self) -> pd.DataFrame:
        """The runs that failed."""
        return self.runs[self.runs["status"] == "failed"]

    def lost(self, metric: str, statuses: Collection[str] = ("failed",)) -> pd.DataFrame:
        """The runs of these statuses, with those as failed that count and lack the metric since
        nothing moved in them, or too few requests for a quantile that others of the cell have.
        """
        gone, ok = self.runs[self.runs["status"].isin(statuses)], self.ok
        slow = ok.reindex(columns=MOVED).eq(0).any(axis=1)
        if metric in OF_SHARES:
            slow |= ok[metric].groupby([ok["cell"], ok["pair"]]).transform("count") > 0
        still = ok[slow & ok[metric].isna()]
        return gone if still.empty else pd.concat([gone, still.assign(status="failed")])

    @cached_property
    def ok(self) -> pd.DataFrame:
        """The runs that count: ok, and made under the facts that hold at the end."""
        return counting(self.runs)


def counting(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs of a frame that count."""
    return runs[(runs["status"] == "ok") & (runs["excluded"] == "")]


def factors_of(plan: PlanFile) -> tuple[str, ...]:
    """The factors of the plan's cells, in the order in which cells name them."""
    return tuple(dict.fromkeys(name for cell in plan.cells for name in cell.factors))


def handled_by(plan: PlanFile) -> tuple[str, ...]:
    """What the campaign sets itself: factors, and settings that it holds."""
    return tuple(dict.fromkeys([*factors_of(plan), *plan.held]))


def in_one_unit(results: Sequence[Result]) -> tuple[list[Result], list[str]]:
    """Results without tools' metrics that an earlier one has in another unit; and these."""
    units: dict[str, str] = {}
    alike, notes = [], []
    for result in results:
        odd = [m for m, unit in result.units.items() if units.setdefault(m, unit) != unit]
        notes += [
            f"{result.path}: {m} is in {result.units[m]}, elsewhere in {units[m]}: left out of"
            " columns without a unit"
            for m in odd
        ]
        alike.append(result.without(odd) if odd else result)
    return alike, notes
