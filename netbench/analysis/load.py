"""Read a result folder: records are streamed, turned into metrics one by one, and only what
analysis needs is kept. No raw counter stays in memory, and no file is read twice.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, runtime_checkable

from netbench.analysis.accounts import accounts_of
from netbench.analysis.derive import metrics_of
from netbench.analysis.epochs import Epoch, Epochs, Latest, Stratum, stratum
from netbench.analysis.meter_choice import SIDES_OF_CPU, by_best_meter, contradictions, order_of
from netbench.analysis.planned import compare_of, factors_of, handled_by, repeat_of
from netbench.analysis.proofs import Declared, ProofTally
from netbench.analysis.readbacks import ReadbackTally
from netbench.analysis.reading import read_campaign
from netbench.analysis.result import Result
from netbench.analysis.runs import RunColumns
from netbench.analysis.usage import UsageTally
from netbench.codec import flawed
from netbench.json_lines import JsonLines
from netbench.record import Record, parse_record
from netbench.result_files import NOISE, Hosts, PlanFile, read_facts, read_noise, read_plan
from netbench.store import no_result


@runtime_checkable
class Observer(Protocol):
    """Who wants to see each record once, while a folder is read."""

    def observe(self, record: Record) -> None:
        """Take in a record, of whatever status, in order of execution."""


def load(path: Path | str, observers: Sequence[Observer] = ()) -> Result:
    """Read a result folder; observers see every record. Errors: ReportError when it is none;
    StoreError, with file and line, for what cannot be read.
    """
    folder = Path(path)
    if not (folder / "records.jsonl").is_file() or not (folder / "plan.json").is_file():
        raise no_result(folder)
    plan, hosts = read_plan(folder / "plan.json"), read_facts(folder / "facts.json")
    reader = _Reader(plan, hosts, observers)
    lines = JsonLines(folder / "records.jsonl")
    with _no_collector():
        for number, line in lines:
            try:
                reader.add(parse_record(line, lines.where(number)))
            except ValueError as error:
                raise flawed(lines.where(number), "a record", error) from error
    try:
        return reader.result(folder, lines.truncated)
    except ValueError as error:  # such as a cell that is there twice
        raise flawed(folder / "plan.json", "a plan", error) from error


@contextmanager
def _no_collector() -> Iterator[None]:
    """Records hold no cycles; looking for some after every few hundred objects is a fifth of the
    time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Counted:
    """Tallies over the ok runs of one epoch of a stratum."""

    def __init__(self, declared: Declared) -> None:
        self.proofs = ProofTally(declared)
        self.usage = UsageTally()


class _Reader:
    """Takes in records one by one."""

    def __init__(self, plan: PlanFile, hosts: Hosts, observers: Sequence[Observer]) -> None:
        self.plan, self.hosts = plan, hosts
        self.observe = [observer.observe for observer in observers]
        self.columns = RunColumns()
        self.readbacks = ReadbackTally()
        self.counted: dict[tuple[Stratum, Epoch], _Counted] = {}
        self.counted_in: list[tuple[Stratum, Epoch] | None] = []  # of each run; None: it is not ok
        self.seen: set[int] = set()
        rows = plan.rows
        self.accounts, self.declared = accounts_of(rows), Declared(rows)
        self.known = {cell.cell for cell in plan.cells}
        self.boots = {(host, b.boot): b for host, boots in hosts.items() for b in boots}
        self.ticks = {host: entry.clock_ticks for (host, _), entry in self.boots.items()}
        self.one_kernel: dict[tuple[str, int], bool] = {}
        self.epochs = Epochs(hosts, handled_by(plan))
        self.latest = Latest(self.epochs)

    def add(self, record: Record) -> None:
        """Take in a record. Errors: ValueError for one that does not fit the others or the plan."""
        if record.run in self.seen:
            raise ValueError(f"run {record.run} is recorded twice")
        if record.cell not in self.known:
            raise ValueError(f"cell {record.cell!r} is not in plan.json")
        self.seen.add(record.run)
        counted_in = self._epoch(record) if record.status == "ok" else None
        self.counted_in.append(counted_in)
        row = (
            record.run,
            record.cell,
            record.pair,
            record.block,
            record.boot,
            record.status,
            record.reason,
            record.started,
            self._count(record, counted_in) if counted_in else "",
            "",
        )
        shared = self.shared(record.pair, record.boot)
        self.columns.add(row, metrics_of(record, self.ticks, shared, self.accounts))
        self.readbacks.add(record)
        for observe in self.observe:
            observe(record)

    def _epoch(self, record: Record) -> tuple[Stratum, Epoch]:
        """Of an ok run."""
        if not self.epochs.several:
            return _ALL
        self.latest.see(record)
        return stratum(record), self.epochs.of(record)

    def _count(self, record: Record, epoch: tuple[Stratum, Epoch]) -> str:
        """Count an ok run within its epoch; say why its mechanism did not engage, or ""."""
        counted = self.counted.get(epoch)
        if counted is None:
            counted = self.counted[epoch] = _Counted(self.declared)
        counted.usage.add(record)
        return counted.proofs.add(record)

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

    def _boots(self, pair: str) -> list[int]:
        """The boots in which a pair ran; the first where it did not run at all."""
        return [boot for known, boot in self.one_kernel if known == pair] or [0]

    def _exclude(self) -> list[_Counted]:
        """Mark the ok runs of epochs that are not pooled; the tallies of those that are."""
        if not self.epochs.several:
            return list(self.counted.values())
        fixed = self.columns.fixed
        for i, key in enumerate(self.counted_in):
            why = self.latest.why_excluded(*key) if key else ""
            if why:
                fixed["excluded"][i], fixed["engaged"][i] = why, ""
        return [
            counted
            for (place, epoch), counted in self.counted.items()
            if epoch == self.latest.epoch(place)
        ]

    def result(self, folder: Path, truncated: bool) -> Result:
        """All that was taken in, with what the other files of the folder say."""
        counted, noise, campaign = (
            self._exclude(),
            read_noise(folder / NOISE),
            read_campaign(folder),
        )
        runs = self.columns.frame(self.plan, noise, self.ticks)
        counts = (runs["status"] == "ok") & (runs["excluded"] == "")
        contradicted = contradictions(runs[counts])
        meters = {metric: order_of(metric, contradicted) for metric in SIDES_OF_CPU}
        return Result(
            path=folder,
            plan=self.plan,
            hosts=self.hosts,
            about=campaign.about,
            repeat=repeat_of(self.plan),
            compare=compare_of(self.plan),
            factors=factors_of(self.plan),
            metrics=self.columns.metrics,
            runs=by_best_meter(runs, meters) if contradicted else runs,
            meters=meters,
            contradicted=contradicted,
            proofs={k: v for each in counted for k, v in each.proofs.totals().items()},
            readbacks=self.readbacks.readbacks(),
            moved=self.readbacks.moved(),
            noise=noise,
            shared={
                pair: self.shared(pair, boot)
                for pair in self.plan.pairs
                for boot in self._boots(pair)
            },
            used={k: v for each in counted for k, v in each.usage.totals().items()},
            asked=campaign.asked,
            truncated=truncated,
        )


_ALL: tuple[Stratum, Epoch] = (("", ""), ())
"""Where all ok runs count: no host was ever different."""
