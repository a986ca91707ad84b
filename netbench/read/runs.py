"""The frame of runs: one row a run, gathered from runs of one cell after the other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from netbench.read.counters import Number, is_known
from netbench.read.noise_labels import labels
from netbench.read.result import factors_of
from netbench.read.stack import Runs
from netbench.result.files import NoiseEntry, PlanFile

ROUND = "round"
"""A column of campaigns of several pairs."""


class RunColumns:
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
            if name in columns or name in self._metrics:
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
