"""The frame of runs: one row a run, gathered from runs of one cell after the other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from netbench.read.counters import Number
from netbench.read.noise_labels import labels
from netbench.read.planned import factors_of
from netbench.read.stack import Runs
from netbench.result.files import NoiseEntry, PlanFile

TEXTS = ("reason", "engaged", "excluded")
OF_RECORD = ("run", "block", "boot", "status")
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
        record, said = runs.record, runs.said
        values = {name: getattr(record, name) for name in ("cell", "pair", *OF_RECORD)}
        if record.round is not None:
            values[ROUND] = record.round
        values |= {name: [raw[name] for raw in said] for name in ("started", "reason")}
        if why:
            values["engaged"] = [why.get(i, "") for i in range(len(runs))]
        for name, numbers in metrics.items():
            column = np.asarray(numbers, dtype=float)
            if not np.isnan(column).all():
                values[name] = column
                self._metrics[name] = None
        self._parts.append((runs.rows, values))
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

    def _category(self, name: str, levels: Sequence[str] = ()) -> pd.Categorical[str]:
        """A column that is one text in each part. levels: its categories, if not those seen."""
        said = [(rows, values[name]) for rows, values in self._parts if name in values]
        known = list(levels) or sorted({text for _, text in said})
        place = {text: code for code, text in enumerate(known)}
        codes = np.full(self._runs, -1)
        for rows, text in said:
            codes[rows] = place[text]
        return pd.Categorical.from_codes(codes, categories=pd.Index(known))

    def frame(
        self, plan: PlanFile, noise: Sequence[NoiseEntry], ticks: Mapping[str, int]
    ) -> pd.DataFrame:
        """The frame: OF_RECORD, cells, pairs and TEXTS with `noise`, ROUND where any record has
        one, one column a factor, one a metric (NaN: that run has none). ticks: of each host's
        clock, in a second.
        """
        factors = {cell.cell: cell.factors for cell in plan.cells}
        cells = self._category("cell", list(factors))
        columns: dict[str, Any] = {"run": self._column("run", 0, int), "cell": cells}
        columns["pair"] = self._category("pair")
        columns |= {name: self._column(name, 0, int) for name in ("block", "boot")}
        if (rounds := self._column(ROUND, 0, int)).any():
            columns[ROUND] = pd.arrays.IntegerArray(rounds, rounds == 0)
        columns["status"] = self._category("status")
        # without any run pandas guesses numbers
        columns |= {
            name: pd.Series(self._column(name, "", object), dtype="object") for name in TEXTS
        }
        columns["noise"] = self._noise(columns["pair"], columns["block"], labels(noise, ticks))
        columns["started"] = pd.to_datetime(
            pd.Series(self._column("started", "", object), dtype="str"), format="ISO8601", utc=True
        )
        columns |= {name: _levels(factors, name, cells) for name in factors_of(plan)}
        columns |= {name: self._column(name, math.nan, float) for name in self._metrics}
        return pd.DataFrame(columns)

    def _noise(
        self,
        pairs: pd.Categorical[str],
        blocks: npt.NDArray[Any],
        disturbed: Mapping[tuple[str, int], Sequence[str]],
    ) -> list[str]:
        """Of each run what disturbed its block on the pair's hosts, in words."""
        if not disturbed:
            return [""] * len(pairs)
        words: dict[tuple[str, int], str] = {}
        places = list(zip(pairs.tolist(), blocks.tolist(), strict=True))
        for pair, block in set(places):
            hosts = dict.fromkeys(pair.split(">"))
            words[pair, block] = "; ".join(
                dict.fromkeys(word for host in hosts for word in disturbed.get((host, block), ()))
            )
        return [words[place] for place in places]


def _levels(
    factors: Mapping[str, Mapping[str, str]], factor: str, cells: pd.Categorical[str]
) -> pd.Categorical[str]:
    """One factor's column, levels in the plan's order; missing where a cell has no level of it."""
    levels = list(dict.fromkeys(str(f[factor]) for f in factors.values() if factor in f))
    place = {level: i for i, level in enumerate(levels)}
    codes = np.array(
        [place[str(f[factor])] if factor in f else -1 for f in factors.values()], dtype=np.int64
    )
    return pd.Categorical.from_codes(codes[cells.codes], categories=pd.Index(levels))
