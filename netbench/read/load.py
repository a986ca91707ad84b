"""Read a result folder: records are streamed, turned into metrics many at once, and only what
analysis needs is kept. No raw counter stays in memory, and no file is read twice.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from netbench.base.json_lines import JsonLines
from netbench.read.accounts import accounts_of
from netbench.read.derive import metrics_of
from netbench.read.epochs import Epoch, Epochs, Stratum, stratum
from netbench.read.meter_choice import SIDES_OF_CPU, by_best_meter, contradictions, order_of
from netbench.read.planned import compare_of, factors_of, handled_by, repeat_of
from netbench.read.proofs import Declared, ProofTally
from netbench.read.readbacks import ReadbackTally
from netbench.read.result import Result
from netbench.read.runs import RunColumns
from netbench.read.stack import Runs, runs_of
from netbench.read.usage import UsageTally
from netbench.result.bundles import folder_of
from netbench.result.codec import flawed
from netbench.result.files import NOISE, Hosts, PlanFile, read_facts, read_noise, read_plan
from netbench.result.reading import read_campaign
from netbench.result.store import no_result

_ByCell = TypeVar("_ByCell", bound=tuple[str, ...])
_Total = TypeVar("_Total")


@runtime_checkable
class Observer(Protocol):
    """Who wants to see each record once, while a folder is read."""

    def observe(self, runs: Runs) -> None:
        """Take in runs of one cell and pair, of whatever status."""


def load(path: Path | str, observers: Sequence[Observer] = ()) -> Result:
    """Read a result folder, or a bundle of one; observers see every record. Errors: ReportError
    when it is none; StoreError, with file and line, for what cannot be read.
    """
    folder = folder_of(Path(path))
    if not (folder / "records.jsonl").is_file() or not (folder / "plan.json").is_file():
        raise no_result(folder)
    plan, hosts = read_plan(folder / "plan.json"), read_facts(folder / "facts.json")
    lines = JsonLines(folder / "records.jsonl")
    reader, batch, size = _Reader(plan, hosts, observers), [], 0
    with no_collector():
        for number, line in lines:
            batch.append((number, line))
            size += len(line)
            if size > TOGETHER:
                reader.take(batch, lines)
                batch, size = [], 0
        reader.take(batch, lines)
    try:
        return reader.result(folder, lines.truncated)
    except ValueError as error:  # such as a cell that is there twice
        raise flawed(folder / "plan.json", "a plan", error) from error


@contextmanager
def no_collector() -> Iterator[None]:
    """Records, and what is made of them, hold no cycles; looking for some after every few hundred
    objects is a fifth of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Counted:
    """Tallies over the ok runs of one epoch of a stratum; `rows` are those of the frame."""

    def __init__(self, declared: Declared) -> None:
        self.proofs = ProofTally(declared)
        self.usage = UsageTally()
        self.rows: list[npt.NDArray[np.int64]] = []


class _Reader:
    """Takes in records, those of many lines together."""

    def __init__(self, plan: PlanFile, hosts: Hosts, observers: Sequence[Observer]) -> None:
        self.plan, self.hosts = plan, hosts
        self.observers = observers
        self.columns = RunColumns()
        self.readbacks = ReadbackTally()
        self.counted: dict[tuple[Stratum, Epoch], _Counted] = {}
        self.seen: set[int] = set()
        rows = plan.rows
        self.accounts, self.declared = accounts_of(rows), Declared(rows)
        self.known = {cell.cell for cell in plan.cells}
        self.controls = {cell.cell for cell in plan.cells if cell.control}
        self.boots = {(host, b.boot): b for host, boots in hosts.items() for b in boots}
        self.ticks = {host: entry.clock_ticks for (host, _), entry in self.boots.items()}
        self.one_kernel: dict[tuple[str, int], bool] = {}
        self.epochs = Epochs(hosts, handled_by(plan))
        self.latest: dict[Stratum, Epoch] = {}  # of the last ok run: what counts there
        self.last_row: dict[Stratum, int] = {}
        self.units: dict[str, str] = {}

    def take(self, batch: Sequence[tuple[int, bytes]], lines: JsonLines) -> None:
        """Take in lines of a file. Errors: StoreError, also for a record that does not fit the
        others or the plan.
        """
        for runs in runs_of(batch, lines.where):
            record = runs.record
            numbers: Any = record.run
            for row, run in zip(runs.rows.tolist(), numbers.tolist(), strict=True):
                if run in self.seen:
                    why = f"run {run} is recorded twice"
                elif record.cell not in self.known:
                    why = f"cell {record.cell!r} is not in plan.json"
                else:
                    self.seen.add(run)
                    continue
                raise flawed(lines.where(row + 1), "a record", why)
            metrics = metrics_of(
                record, self.ticks, self.shared(record.pair, record.boot), self.accounts
            )
            captures = record.captures.items()
            self.units |= {name: each.unit for name, each in captures if each.value is not None}
            why_not = self._count(runs) if record.status == "ok" else {}
            self.columns.add(runs, metrics, why_not)
            self.readbacks.add(runs)
            for observer in self.observers:
                observer.observe(runs)

    def _count(self, runs: Runs) -> dict[int, str]:
        """Count ok runs within their epochs; say of which the mechanism did not engage, by their
        places, and why.
        """
        if not self.epochs.several:
            return self._count_in(_ALL, runs)
        why: dict[int, str] = {}
        record, place = runs.record, stratum(runs.record)
        numbers: Any = record.run
        epochs = [self.epochs.of(record.pair, run, record.boot) for run in numbers.tolist()]
        for epoch in dict.fromkeys(epochs):
            which = np.array([each == epoch for each in epochs])
            places = np.flatnonzero(which).tolist()
            mine = self._count_in((place, epoch), runs.chosen(which))
            why |= {places[i]: reason for i, reason in mine.items()}
        if runs.rows[-1] >= self.last_row.get(place, 0):
            self.last_row[place] = int(runs.rows[-1])
            self.latest[place] = epochs[-1]
        return why

    def _count_in(self, epoch: tuple[Stratum, Epoch], runs: Runs) -> dict[int, str]:
        counted = self.counted.get(epoch)
        if counted is None:
            counted = self.counted[epoch] = _Counted(self.declared)
        counted.rows.append(runs.rows)
        counted.usage.add(runs.record)
        return counted.proofs.add(runs.record)

    def shared(self, pair: str, boot: int) -> bool:
        """Whether a pair's ends are on one kernel: one host, or hosts with equal boot ids."""
        known = self.one_kernel.get((pair, boot))
        if known is None:
            sender, _, receiver = pair.partition(">")
            ids = [
                entry.boot_id if (entry := self.boots.get((host, boot))) else None
                for host in (sender, receiver)
            ]
            known = self.one_kernel[pair, boot] = sender == receiver or (
                ids[0] is not None and ids[0] == ids[1]
            )
        return known

    def _shared(self) -> dict[str, bool]:
        """By pair whether it is on one kernel: in the last boot in which it ran, else in the
        first of all.
        """
        last = dict(self.one_kernel.keys())
        return {pair: self.shared(pair, last.get(pair, 0)) for pair in self.plan.pairs}

    def _exclude(self) -> list[_Counted]:
        """Mark the ok runs of epochs that are not pooled; the tallies of those that are."""
        pooled = []
        for (place, epoch), counted in self.counted.items():
            why = self.epochs.describe(place[0], epoch, self.latest.get(place, epoch))
            if not why:
                pooled.append(counted)
            for rows in counted.rows if why else ():
                self.columns.exclude(rows, why)
        return pooled

    def _without_controls(
        self, totals: Iterable[Mapping[_ByCell, _Total]]
    ) -> dict[_ByCell, _Total]:
        """Totals by keys that begin with a cell, those of controls left out."""
        return {k: v for each in totals for k, v in each.items() if k[0] not in self.controls}

    def result(self, folder: Path, truncated: bool) -> Result:
        """All that was taken in, with what the other files of the folder say."""
        counted, noise, campaign = (
            self._exclude(),
            read_noise(folder / NOISE),
            read_campaign(folder),
        )
        every = self.columns.frame(self.plan, noise, self.ticks)
        builds = {boot: entry.build for (_, boot), entry in self.boots.items() if entry.build}
        every["build"] = every["boot"].map(builds).fillna(0).astype(int)
        of_control = every["cell"].isin(self.controls)
        counts = (every["status"] == "ok") & (every["excluded"] == "") & ~of_control
        contradicted = contradictions(every[counts])
        meters = {metric: order_of(metric, contradicted) for metric in SIDES_OF_CPU}
        every = by_best_meter(every, meters)
        return Result(
            path=folder,
            plan=self.plan,
            hosts=self.hosts,
            about=campaign.about,
            repeat=repeat_of(self.plan),
            compare=compare_of(self.plan),
            factors=factors_of(self.plan),
            metrics=self.columns.metrics,
            runs=every[~of_control].reset_index(drop=True) if self.controls else every,
            control_runs=every[of_control].reset_index(drop=True),
            meters=meters,
            contradicted=contradicted,
            proofs=self._without_controls(each.proofs.totals() for each in counted),
            readbacks=[r for r in self.readbacks.readbacks() if r.cell not in self.controls],
            moved=self._without_controls([self.readbacks.moved()]),
            noise=noise,
            shared=self._shared(),
            used=self._without_controls(each.usage.totals() for each in counted),
            asked=campaign.asked,
            units=self.units,
            truncated=truncated,
        )


TOGETHER = 64 << 20
"""Bytes of lines whose runs are taken in together."""
_ALL: tuple[Stratum, Epoch] = (("", ""), ())
"""Where all ok runs count: no host was ever different."""
