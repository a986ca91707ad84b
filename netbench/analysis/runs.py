"""The frame of runs: one row a run, gathered column by column while records stream by."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from netbench.analysis.noise import labels
from netbench.analysis.planned import factors_of
from netbench.result_files import NoiseEntry, PlanFile

TEXTS = ("reason", "engaged", "excluded")
FIXED = (
    "run",
    "cell",
    "pair",
    "block",
    "boot",
    "status",
    "reason",
    "started",
    "engaged",
    "excluded",
)


class _Block:
    """The runs that have the same metrics: their rows, and the values of each, run after run."""

    def __init__(self) -> None:
        self.rows, self.values = array("q"), array("d")


class RunColumns:
    """The columns of the frame; 100,000 runs take about 30 MB."""

    def __init__(self) -> None:
        self.fixed: dict[str, list[Any]] = {name: [] for name in FIXED}
        self._append = [column.append for column in self.fixed.values()]
        self._blocks: dict[tuple[str, ...], _Block] = {}  # by the names of their metrics

    @property
    def metrics(self) -> tuple[str, ...]:
        """Those that any run has."""
        return tuple(dict.fromkeys(name for names in self._blocks for name in names))

    def add(self, row: Sequence[Any], metrics: Mapping[str, float]) -> None:
        """Append a run: its values of FIXED, and its metrics."""
        names = tuple(metrics)
        block = self._blocks.get(names)
        if block is None:
            block = self._blocks[names] = _Block()
        block.rows.append(len(self.fixed["run"]))
        block.values.extend(metrics.values())
        for append, value in zip(self._append, row, strict=True):
            append(value)

    def _metric_columns(self) -> dict[str, pd.Series[float]]:
        """NaN: that run has no such metric."""
        names = self.metrics
        table = np.full((len(self.fixed["run"]), len(names)), math.nan)
        for mine, block in self._blocks.items():
            values = np.frombuffer(block.values).reshape(len(block.rows), len(mine))
            table[np.ix_(block.rows, [names.index(name) for name in mine])] = values
        return {name: pd.Series(table[:, i]) for i, name in enumerate(names)}

    def frame(
        self, plan: PlanFile, noise: Sequence[NoiseEntry], ticks: Mapping[str, int]
    ) -> pd.DataFrame:
        """The frame: FIXED with `noise`, one column a factor, one a metric (NaN: that run has
        none). ticks: of each host's clock, in a second.
        """
        factors = {cell.cell: cell.factors for cell in plan.cells}
        cells = pd.Categorical(self.fixed["cell"], categories=list(factors))
        frame = pd.DataFrame(
            {name: self.fixed[name] for name in FIXED if name not in ("cell", "started")}
        )
        frame.insert(1, "cell", pd.Series(cells))
        for name in ("pair", "status"):
            frame[name] = frame[name].astype("category")
        for name in TEXTS:
            frame[name] = frame[name].astype("object")  # without any run pandas guesses numbers
        frame["noise"] = self._noise(labels(noise, ticks))
        frame["started"] = pd.to_datetime(
            pd.Series(self.fixed["started"], dtype="str"), format="ISO8601", utc=True
        )
        levels = {name: _levels(factors, name, cells) for name in factors_of(plan)}
        return pd.concat([frame, pd.DataFrame(levels | self._metric_columns())], axis=1)

    def _noise(self, disturbed: Mapping[tuple[str, int], Sequence[str]]) -> list[str]:
        """Of each run what disturbed its block on the pair's hosts, in words."""
        words: dict[tuple[str, int], str] = {}
        places = list(zip(self.fixed["pair"], self.fixed["block"], strict=True))
        for pair, block in set(places) if disturbed else ():
            hosts = dict.fromkeys(pair.split(">"))
            words[pair, block] = "; ".join(
                dict.fromkeys(word for host in hosts for word in disturbed.get((host, block), ()))
            )
        return [words.get(place, "") for place in places]


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
