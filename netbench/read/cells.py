"""Cells: every (cell, pair) of the plan with intervals and status; also as the frame of the CSV."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from netbench.read.accounts import METER_ORDER
from netbench.read.compare import builds_of
from netbench.read.metrics import METRICS
from netbench.read.result import Result
from netbench.result.files import PlannedCell
from netbench.stats.by_boot import KERNEL, without_boots
from netbench.stats.closing import Standing, closings, ratio_widths, reached
from netbench.stats.dependence import DOUBT, correlations, run_intervals
from netbench.stats.intervals import (
    Interval,
    Numbers,
    count_interval,
    mean_interval,
    sequential_confidence,
)
from netbench.stats.pairs import by_unit
from netbench.stats.series import instabilities

Rows = npt.NDArray[np.int64]  # positions in the frame of runs
TIDY = ("metric", "unit", "n", "mean", "low", "high", "precision", "status")


class CellResult(NamedTuple):
    """One (cell, pair): `status`, `reasons` of runs that are not ok with their number, `n` ok runs,
    `intervals` by metric (only metrics it has).

    `unit` is what an interval's n counts: `run`, or `boot` where the runs lie in several boots, or
    several were asked for, or `build` where these are of several builds. `signs` are what makes it
    unstable. `marked`: ok runs whose mechanism did not engage. `mean`: the status of its means,
    which `status` is not about where ratios decide: `converged`, `max` (wider than asked), or
    `unstable`. `widths`: by metric that is asked for, of what decides (the ratio to the baseline
    where there is one, else the mean) the half-width as a fraction.
    """

    cell: str
    pair: str
    factors: Mapping[str, str]
    status: str
    n: int
    intervals: Mapping[str, Interval]
    reasons: Mapping[str, int] = {}
    unit: str = "run"
    signs: tuple[str, ...] = ()
    marked: int = 0
    mean: str = ""
    widths: Mapping[str, float] = {}

    @property
    def place(self) -> tuple[str, str]:
        return self.cell, self.pair


def metric_order(names: Sequence[str]) -> list[str]:
    """Metrics as tables list them: METRICS' order, bare names first; then those of tools."""
    bare, meters = list(METRICS), ("", *METER_ORDER)

    def place(name: str) -> tuple[int, int, str]:
        base, _, meter = name.partition(".")
        at = bare.index(base) if base in METRICS else len(bare)
        return at, meters.index(meter) if meter in meters else len(meters), name

    return sorted(names, key=place)


def cells_of(result: Result) -> list[CellResult]:
    """All cells of the plan times all its pairs, in that order, those without any run too."""
    groups, table = rows_by_cell(result.runs), _Table(result)
    nothing = np.array([], dtype=np.int64)
    cells = {(cell.cell, pair): cell for cell in result.cells for pair in result.plan.pairs}
    rows = {key: groups.get(key, nothing) for key in cells}
    standings = {key: table.standing(cell, rows[key]) for key, cell in cells.items()}
    kernels = result.compare is not None and result.compare.factor == KERNEL
    rounds = result.rounds if kernels else None
    campaign = result.swept, result.compare, result.repeat, rounds
    closed, widths = closings(standings, *campaign), ratio_widths(standings, *campaign)
    return [
        table.cell(cell, key[1], rows[key], closed[key], widths.get(key))
        for key, cell in cells.items()
    ]


def rows_by_cell(frame: pd.DataFrame) -> dict[tuple[str, str], Rows]:
    """Row positions of each (cell, pair) of a runs frame, in order of execution."""
    indices = frame.groupby(["cell", "pair"], observed=True, sort=False).indices
    return {(str(key[0]), str(key[1])): np.asarray(rows) for key, rows in indices.items()}  # type: ignore[index]


class _Table:
    """The metrics of all runs as one array, and what makes a CellResult of some of its rows."""

    def __init__(self, result: Result) -> None:
        self.result = result
        self.names = metric_order(result.metrics)
        frame = result.runs
        self.values = (
            frame[self.names].to_numpy(dtype=float) if self.names else np.empty((len(frame), 0))
        )
        self.ok = ((frame["status"] == "ok") & (frame["excluded"] == "")).to_numpy()
        self.boot, self.block = frame["boot"].to_numpy(), frame["block"].to_numpy()
        self.builds = builds_of(frame)
        self.status = frame["status"].to_numpy(dtype=object)
        self.reason = frame["reason"].to_numpy(dtype=object)
        self.unmarked = (frame["engaged"] == "").to_numpy()
        self.described = [result.describe(name) for name in self.names]

    def over_runs(self, rows: Rows) -> dict[str, Interval]:
        """The intervals of the metrics that ok runs of a (cell, pair) have, widened where the
        number of runs was chosen by looking, and where runs follow each other. Those of counts have
        their own distribution.
        """
        if not len(rows):
            return {}
        repeat = self.result.repeat
        confidence = sequential_confidence(repeat.confidence, repeat.min, repeat.max)
        columns = self.values[rows].T
        have = ~np.isnan(columns)
        by_metric: dict[int, Interval] = {}
        for mask in {each.tobytes(): each for each in have if each.any()}.values():
            alike = np.flatnonzero((have == mask).all(axis=1))  # they miss the same runs
            series = columns[alike][:, mask]
            intervals = run_intervals(series, confidence)
            for at, values, interval in zip(alike.tolist(), series, intervals, strict=True):
                counts = self.described[at].is_count
                by_metric[at] = (
                    count_interval(values, confidence)
                    if counts
                    else self.in_range(at, interval, values)
                )
        return {self.names[at]: by_metric[at] for at in sorted(by_metric)}

    def over_boots(self, rows: Rows) -> dict[str, Interval]:
        """Intervals over the means of boots, or of builds, the unit then; their number is not
        chosen by looking, so nothing is widened. A boot counts as one whatever its number of runs.
        """
        confidence, by_metric = self.result.repeat.confidence, {}
        for at, column in enumerate(self.values[rows].T):
            if (have := ~np.isnan(column)).any():
                means = by_unit(self.boot[rows][have], column[have], self.builds)[1]
                interval = mean_interval(means, confidence)
                by_metric[self.names[at]] = self.in_range(at, interval, column[have])
        return by_metric

    def in_range(self, at: int, interval: Interval, values: Numbers) -> Interval:
        """The interval of these values within what its metric cannot leave."""
        metric = self.described[at]
        ends = float(values.min()), float(values.max())
        return interval.within(metric.lowest, metric.highest, ends)

    def standing(self, cell: PlannedCell, rows: Rows) -> Standing:
        """What the closing rule sees: values by block, and a status that no run can help."""
        good = rows[self.ok[rows]]
        blocks = self.block[good]
        asked = [name for name in self.result.repeat.metrics if name in self.names] or self.names
        values: dict[str, dict[int, float]] = {}
        for name in asked:
            column = self.values[good, self.names.index(name)]
            have = ~np.isnan(column)
            if have.any():
                values[name] = dict(zip(blocks[have].tolist(), column[have].tolist(), strict=True))
        boots = dict(zip(blocks.tolist(), self.boot[good].tolist(), strict=True))
        return Standing(
            cell.factors,
            values,
            self.final(rows),
            boots=boots,
            lost=self.lost(rows),
            builds=self.builds,
        )

    def lost(self, rows: Rows) -> int:
        """Failed runs that are not repeated."""
        return int((self.status[rows] == "failed").sum()) if self.result.in_boots else 0

    def final(self, rows: Rows) -> str:
        """The status of a cell whose `verify` failed, or without an ok run; else ""."""
        bad = rows[~self.ok[rows]]
        seen = list(zip(self.status[bad], self.reason[bad], strict=True))
        if any(s == "failed" and reason.startswith("verify") for s, reason in seen):
            return "failed"
        if self.ok[rows].any():
            return ""
        statuses = {s for s, _ in seen}
        final = (s for s in ("refused", "unsupported", "failed") if s in statuses)
        return next(final, "interrupted")

    def cell(
        self,
        planned: PlannedCell,
        pair: str,
        rows: Rows,
        closed: str,
        ratios: Mapping[str, float] | None,
    ) -> CellResult:
        """The result of one (cell, pair); `closed`: why it closed, "" if it did not; `ratios`: the
        widths of those to its baseline, None where none decide.
        """
        name, good = planned.cell, rows[self.ok[rows]]
        repeat, boots = self.result.repeat, len(set(self.boot[good].tolist()))
        by_boot = bool(boots) and max(repeat.boots, boots) > 1
        intervals = (self.over_boots if by_boot else self.over_runs)(good)
        status, signs = self.final(rows), tuple[str, ...]()
        if not status:
            enough = len(good) + self.lost(rows) >= repeat.min and boots >= repeat.boots
            asked = ((m, self.within(m, good)) for m in repeat.metrics if m in intervals)
            status, signs = _status(asked, closed, enough, str(self.status[rows[-1]]))
        means = {m: intervals[m] for m in repeat.metrics if m in intervals}
        of_means = {m: mean.precision for m, mean in means.items() if mean.known}
        return CellResult(
            cell=name,
            pair=pair,
            factors=planned.factors,
            status=status,
            n=len(good),
            intervals=intervals,
            reasons=Counter(self.reason[rows[self.status[rows] != "ok"]].tolist()),
            unit=self.unit(good) if by_boot else "run",
            signs=signs,
            marked=int((~self.unmarked[good]).sum()),
            mean=self.mean_status(status, pair, good, intervals),
            widths=of_means if ratios is None else ratios,
        )

    def mean_status(
        self, status: str, pair: str, rows: Rows, intervals: Mapping[str, Interval]
    ) -> str:
        """The status of a cell's means, which are not free of what blocks have in common."""
        repeat = self.result.repeat
        asked = [name for name in repeat.metrics if name in intervals]
        if self.result.compare is None or status not in ("converged", "max", "unstable"):
            return status
        for name in asked:
            if (pair, name) in self.in_common or instabilities(self.within(name, rows)):
                return "unstable"
        precise = all(reached(name, intervals[name], repeat) for name in asked)
        return "converged" if asked and precise else "max"

    @cached_property
    def in_common(self) -> set[tuple[str, str]]:
        """The pairs and metrics of which all cells together follow the block before."""
        ok, metrics = self.result.ok, set()
        for name in (name for name in self.result.repeat.metrics if name in self.names):
            means = ok.groupby(["cell", "pair"], observed=True)[name].transform("mean")
            relative = ok[name] / means.replace(0, 1)
            for pair, of_pair in relative.groupby(ok["pair"], observed=True):
                blocks = of_pair.groupby([ok["boot"], ok["block"]]).mean().dropna()
                estimate, error = correlations(blocks.to_numpy(dtype=float))
                if estimate > DOUBT * error:
                    metrics.add((str(pair), name))
        return metrics

    def unit(self, rows: Rows) -> str:
        """`build` where that of every boot is known, else `boot`."""
        return "build" if self.builds.keys() >= set(self.boot[rows].tolist()) else "boot"

    def within(self, name: str, rows: Rows) -> Numbers:
        """The values of a metric, free of what boots differ by: they may still be dependent."""
        column = self.values[rows, self.names.index(name)]
        have = ~np.isnan(column)
        return without_boots(column[have], self.boot[rows][have])


def _status(
    asked: Iterable[tuple[str, Numbers]], closed: str, enough: bool, last: str
) -> tuple[str, tuple[str, ...]]:
    """The status of a cell with ok runs, and what makes it unstable. enough: has repeat.min."""
    if closed == "converged":
        return closed, ()
    if not enough and closed != "max":
        return ("failed" if last == "failed" else "interrupted"), ()
    signs = tuple(f"{name}: {sign}" for name, values in asked for sign in instabilities(values))
    return ("unstable" if signs else "max"), signs


def tidy(result: Result, cells: Sequence[CellResult]) -> pd.DataFrame:
    """One row a cell, pair and metric, in the columns of the CSV: cell pair FACTORS metric
    unit n mean low high precision status.

    A cell without any value has a row for each metric that was asked for, with n 0. NaN is "there
    is none".
    """
    known = (*result.metrics, *(name for name in result.repeat.metrics if name in METRICS))
    units = {name: result.describe(name).unit for name in known}
    rows: list[tuple[object, ...]] = []
    for cell in cells:
        levels = (cell.factors.get(name, "") for name in result.factors)
        head = (cell.cell, cell.pair, *levels)
        intervals = cell.intervals or {name: Interval(0) for name in result.repeat.metrics}
        for name, i in intervals.items():
            numbers = (i.n, i.mean, i.low, i.high, i.precision)
            rows.append((*head, name, units.get(name, ""), *numbers, cell.status))
    return pd.DataFrame(rows, columns=["cell", "pair", *result.factors, *TIDY])


def finite(value: float) -> float | None:
    """A number for reports and JSON: None where it is not finite."""
    return value if math.isfinite(value) else None
