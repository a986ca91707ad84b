"""Read a result folder: records are streamed, turned into metrics many at once, and only what
analysis needs is kept. No raw counter stays in memory, and no file is read twice.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from netbench.base.json_lines import JsonLines
from netbench.read.accounts import accounts_of
from netbench.read.counters import Number, is_known
from netbench.read.derive import in_one_unit, metrics_of
from netbench.read.epochs import Epoch, Epochs, Stratum, is_mixed, stratum
from netbench.read.meter_choice import by_best_meter, contradictions
from netbench.read.noise_labels import labels
from netbench.read.readbacks import ReadbackTally
from netbench.read.result import Result, counting, factors_of, handled_by
from netbench.read.stack import Runs, runs_of
from netbench.read.totals import Declared, Totals
from netbench.result.codec import flawed
from netbench.result.files import (
    NOISE,
    Hosts,
    NoiseEntry,
    PlanFile,
    read_facts,
    read_noise,
    read_plan,
)
from netbench.result.reading import read_campaign
from netbench.result.store import no_result

ROUND = "round"
"""A column of campaigns of several pairs."""
TOGETHER = 64 << 20
"""Bytes of lines whose runs are taken in together."""


def load(path: Path | str, observe: Callable[[Runs], None] = lambda runs: None) -> Result:
    """Read a result folder; `observe` sees each record once, as runs of one
    cell and pair, of whatever status. Errors: ReportError when it is none; StoreError, with file
    and line, for what cannot be read.
    """
    folder = Path(path)
    if not (folder / "records.jsonl").is_file() or not (folder / "plan.json").is_file():
        raise no_result(folder)
    plan, hosts = read_plan(folder / "plan.json"), read_facts(folder / "facts.json")
    if (asked := plan.compare) is not None:
        levels = {cell.factors.get(asked.factor, asked.baseline) for cell in plan.cells}
        if asked.baseline not in levels:
            why = f"no cell has its baseline {asked.baseline!r}"
            raise flawed(folder / "plan.json", "a plan", why)
    lines = JsonLines(folder / "records.jsonl")
    reader, batch, size = _Reader(plan, hosts, observe), [], 0
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


class _Reader:
    """Takes in records, those of many lines together."""

    def __init__(self, plan: PlanFile, hosts: Hosts, observe: Callable[[Runs], None]) -> None:
        self.plan, self.hosts, self.observe = plan, hosts, observe
        self.columns, self.readbacks = _RunColumns(), ReadbackTally()
        self.counted: dict[
            tuple[Stratum, Epoch, bool], tuple[Totals, list[npt.NDArray[np.int64]]]
        ] = {}  # of the ok runs of an epoch, or of their controls: their counters, and their rows
        self.seen: set[int] = set()
        self.accounts, self.declared = accounts_of(plan.rows), Declared(plan.rows)
        self.known = {"cell": {cell.cell for cell in plan.cells}, "pair": set(plan.pairs)}
        self.controls = {cell.cell for cell in plan.cells if cell.control}
        self.boots = {(host, b.boot): b for host, boots in hosts.items() for b in boots}
        self.ticks = {host: entry.clock_ticks for (host, _), entry in self.boots.items()}
        self.last_boot: dict[str, int] = {}  # by pair
        self.epochs = Epochs(hosts, handled_by(plan), plan.pairs)
        self.latest: dict[Stratum, Epoch] = {}  # of the last ok run: what counts there
        self.last_row: dict[Stratum, int] = {}
        self.units: dict[str, str] = {}
        self.odd_units: dict[tuple[str, str, str], int] = {}

    def take(self, batch: Sequence[tuple[int, bytes]], lines: JsonLines) -> None:
        """Take in lines of a file. Errors: StoreError, also where a record does not fit."""
        apart = (self.epochs.of,) if self.epochs.several else ()
        for runs in runs_of(batch, lines.where, *apart):
            record, numbers = runs.record, runs.numbers
            for row, run in zip(runs.rows.tolist(), numbers, strict=True):
                if run in self.seen:
                    raise flawed(lines.where(row + 1), "a record", f"run {run} is recorded twice")
                self.seen.add(run)
            for what, names in self.known.items():
                if (name := getattr(record, what)) not in names:
                    where = lines.where(int(runs.rows[0]) + 1)
                    raise flawed(where, "a record", f"{what} {name!r} is not in plan.json")
            shared = self.shared(record.pair, record.boot)
            self.last_boot[record.pair] = record.boot
            metrics = metrics_of(record, self.ticks, shared, self.accounts)
            for name in in_one_unit(record, metrics, self.units):
                odd = record.cell, record.pair, name
                self.odd_units[odd] = self.odd_units.get(odd, 0) + len(runs)
            why_not = self._count(runs) if record.status == "ok" else {}
            self.columns.add(runs, metrics, why_not)
            if record.cell not in self.controls:
                self.readbacks.add(runs)
            self.observe(runs)

    def _count(self, runs: Runs) -> dict[int, str]:
        """Count ok runs in their epoch; say where the mechanism did not engage, and why."""
        place = stratum(runs.record)
        epoch = self.epochs.of(runs.record.pair, runs.numbers[0], runs.record.boot)
        mixed = is_mixed(epoch)
        if runs.rows[-1] >= self.last_row.get(place, 0) and not mixed:
            self.last_row[place] = int(runs.rows[-1])
            self.latest[place] = epoch
        key = place, epoch, runs.record.cell in self.controls
        totals, rows = self.counted.setdefault(key, (Totals(self.declared), []))
        rows.append(runs.rows)
        return totals.add(runs.record)

    def shared(self, pair: str, boot: int) -> bool:
        """Whether a pair's ends are on one kernel: one host, or hosts with equal boot ids."""
        sender, _, receiver = pair.partition(">")
        here, there = (self.boots.get((host, boot)) for host in (sender, receiver))
        if here is None or there is None:
            return sender == receiver
        return sender == receiver or here.boot_id == there.boot_id

    def _pooled(self) -> list[Totals]:
        """The counters of epochs that are pooled, but for controls; other runs are marked."""
        pooled = []
        for (place, epoch, is_control), (totals, parts) in self.counted.items():
            why = self.epochs.describe(place[0], epoch, self.latest.get(place, epoch))
            if not why and not is_control:
                pooled.append(totals)
            for rows in parts if why else ():
                self.columns.exclude(rows, why)
        return pooled

    def result(self, folder: Path, truncated: bool) -> Result:
        """All that was taken in, with what the other files of the folder say."""
        pooled, noise, campaign = self._pooled(), read_noise(folder / NOISE), read_campaign(folder)
        runs = self.columns.frame(self.plan, noise, self.ticks)
        builds = {boot: entry.build for (_, boot), entry in self.boots.items() if entry.build}
        runs["build"] = runs["boot"].map(builds).fillna(0).astype(int)
        of_control = runs["cell"].isin(self.controls)
        contradicted = contradictions(counting(runs[~of_control]))
        runs, meters = by_best_meter(runs, contradicted)
        return Result(
            path=folder,
            plan=self.plan,
            hosts=self.hosts,
            about=campaign.about,
            metrics=self.columns.metrics,
            runs=runs[~of_control].reset_index(drop=True) if self.controls else runs,
            control_runs=runs[of_control].reset_index(drop=True),
            meters=meters,
            contradicted=contradicted,
            proofs={k: v for totals in pooled for k, v in totals.proofs.items()},
            readbacks=self.readbacks.readbacks(),
            moved=self.readbacks.moved(),
            noise=noise,
            # in the last boot in which a pair ran, else in the first of all
            shared={p: self.shared(p, self.last_boot.get(p, 0)) for p in self.plan.pairs},
            used={k: v for totals in pooled for k, v in totals.used.items()},
            asked=campaign.asked,
            units=self.units,
            odd_units=self.odd_units,
            truncated=truncated,
        )


class _RunColumns:
    """The columns of the frame; 100,000 runs take about 50 MB."""

    def __init__(self) -> None:
        self._runs = 0
        self._parts: list[tuple[npt.NDArray[np.int64], dict[str, Any]]] = []
        # rows, and what some columns say there: one value each, or one for all
        self._metrics: dict[str, None] = {}

    @property
    def metrics(self) -> tuple[str, ...]:
        """Those that any run has."""
        return tuple(self._metrics)

    def add(self, runs: Runs, metrics: Mapping[str, Number], why: Mapping[int, str]) -> None:
        """Append runs. why: the mechanism of the runs at these places did not engage."""
        names = ("run", "cell", "pair", "block", "boot", "status", ROUND)
        values = {name: getattr(runs.record, name) for name in names}
        if values[ROUND] is None:
            del values[ROUND]
        values |= {name: [raw[name] for raw in runs.said] for name in ("started", "reason")}
        if why:
            values["engaged"] = [why.get(i, "") for i in range(len(runs))]
        known = {name: numbers for name, numbers in metrics.items() if is_known(numbers)}
        self._metrics |= dict.fromkeys(known)
        self._parts.append((runs.rows, values | known))
        self._runs += len(runs)

    def exclude(self, rows: npt.NDArray[np.int64], why: str) -> None:
        """Say why ok runs do not count."""
        self._parts.append((rows, {"excluded": why, "engaged": ""}))

    def _column(self, name: str, missing: object, kind: type) -> npt.NDArray[Any]:
        column: npt.NDArray[Any] = np.full(self._runs, missing, dtype=kind)
        for rows, values in self._parts:
            if name in values:
                column[rows] = values[name]
        return column

    def frame(
        self, plan: PlanFile, noise: Sequence[NoiseEntry], ticks: Mapping[str, int]
    ) -> pd.DataFrame:
        """The frame, as Result has it but for builds: run cell pair block boot ROUND (where any
        record has one) status reason engaged excluded noise started, one column a factor, one a
        metric (NaN: that run has none). ticks: of each host's clock, in a second.
        """
        factors = {cell.cell: cell.factors for cell in plan.cells}
        cell, pair, status, started, *texts = (
            self._column(name, "", object)
            for name in ("cell", "pair", "status", "started", "reason", "engaged", "excluded")
        )
        cells = pd.Categorical(cell, categories=list(factors))
        columns: dict[str, Any] = {"run": self._column("run", 0, int), "cell": cells}
        columns["pair"] = pd.Categorical(pair)
        columns |= {name: self._column(name, 0, int) for name in ("block", "boot")}
        if (rounds := self._column(ROUND, 0, int)).any():
            columns[ROUND] = pd.arrays.IntegerArray(rounds, rounds == 0)
        columns["status"] = pd.Categorical(status)
        # without any run pandas guesses numbers
        for name, column in zip(("reason", "engaged", "excluded"), texts, strict=True):
            columns[name] = pd.Series(column, dtype="object")
        columns["noise"] = _noise(pair, columns["block"], labels(noise, ticks))
        columns["started"] = pd.to_datetime(
            pd.Series(started, dtype="str"), format="ISO8601", utc=True
        )
        for name in factors_of(plan):  # levels in the plan's order; missing where a cell has none
            if name.lower() in {each.lower() for each in (*columns, *self._metrics)}:
                raise ValueError(f"{name} is a factor, and a column of every table of runs")
            of_cells = [levels.get(name) for levels in factors.values()]
            levels = pd.Categorical(
                of_cells, categories=list(dict.fromkeys(filter(None, of_cells)))
            )
            columns[name] = levels[cells.codes]
        columns |= {name: self._column(name, math.nan, float) for name in self._metrics}
        return pd.DataFrame(columns)


def _noise(
    pairs: npt.NDArray[Any],
    blocks: npt.NDArray[Any],
    disturbed: Mapping[tuple[str, int], Sequence[str]],
) -> list[str]:
    """Of each run what disturbed its block on the pair's hosts, in words."""
    if not disturbed:
        return [""] * len(pairs)
    hosts = {pair: pair.split(">") for pair in set(pairs)}
    return [
        "; ".join(
            dict.fromkeys(w for host in hosts[pair] for w in disturbed.get((host, block), ()))
        )
        for pair, block in zip(pairs, blocks, strict=True)
    ]
