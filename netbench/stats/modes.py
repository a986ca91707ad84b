"""Two modes: runs of which a part, the same in kind in all cells of a pair, lies far from the rest,
as where a fifth of the connections lands on a busy CPU.

A mean says little then, and a cell of ten runs has none of a fifth of slow runs in 0.8^10 = 10.7%
of the cases: it looks precise and is wrong. So modes are looked for in the residuals of all cells
of a pair: logarithms (values, where one is not positive) less the middle of the cell's shortest
half, which lies in the larger mode whatever the other is like. Distances from it, in robust
deviations of all cells or of a noisy one, have a gap of GAP where there are two modes. Simulated:
normal runs show one in less than 0.3% of campaigns of 2 to 12 cells, very skewed ones in 3%; 20% of
runs that are 30% slower, with deviations of 1 to 2%, are seen in 96 to 100% of campaigns of 3 cells
or more and 10 runs (tests/unit/analysis/test_modes.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from netbench.stats.intervals import Numbers

FEWEST = 8  # runs of all cells, and 4 of a cell
GAP = 4.5  # deviations between the runs of one mode and those of the other
SHARE = 0.05  # of all runs, or
SHARE_OF_CELL = 0.15  # of those of a cell, are in the smaller mode, or these are outliers
NOISY = 1.4  # times the deviation of all cells: a cell's own counts beyond that
SLOW = 0.2  # the share of runs for which a cell says how easily it misses them
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class CellModes:
    """The runs of one cell: how many are in the lower and the upper mode, and their means (0 where
    there is none).
    """

    lower: int
    upper: int
    low: float
    high: float

    def __str__(self) -> str:
        each = ((self.lower, self.low), (self.upper, self.high))
        known = [(n, mean) for n, mean in each if n]
        whole = self.lower + self.upper
        if len(known) == 1:
            return f"all {whole} runs near {known[0][1]:.4g}"
        return " and ".join(f"{n} near {mean:.4g}" for n, mean in known) + f" of {whole} runs"


@dataclass(frozen=True)
class Modes:
    """Two modes of a metric on a pair: the share of the runs that lie apart from most of a cell,
    the ratio of the lower to the upper mode, and each cell's runs.
    """

    share: float
    ratio: float
    runs: int
    cells: Mapping[str, CellModes]


def find_modes(series: Mapping[str, Numbers]) -> Modes | None:
    """The modes of a metric from its values in each cell of a pair; None where there is one."""
    parts = {cell: _residuals(v) for cell, v in series.items() if len(v) >= FEWEST // 2}
    residuals = {cell: each for cell, (each, _) in parts.items()}
    if sum(map(len, residuals.values())) < FEWEST:
        return None
    pooled = 1.4826 * float(np.median(np.abs(np.concatenate(list(residuals.values())))))
    scales = {cell: max(spread / NOISY, pooled) for cell, (_, spread) in parts.items()}
    if not all(scales.values()):
        return None
    limit = _limit(np.concatenate([np.abs(e) / scales[c] for c, e in residuals.items()]))
    apart = {c: np.abs(e) > limit * scales[c] for c, e in residuals.items()}
    count, runs = (sum(map(f, apart.values())) for f in (np.count_nonzero, len))
    if count < SHARE * runs and max(each.mean() for each in apart.values()) < SHARE_OF_CELL:
        return None
    if count < 2:
        return None
    distance = np.concatenate([np.abs(e[apart[c]]) for c, e in residuals.items()]).mean()
    cells = {c: _cell(series[c], e, apart[c]) for c, e in residuals.items()}
    return Modes(count / runs, float(np.exp(-distance)), runs, cells)


def missed(runs: int, share: float = SLOW) -> float:
    """How probable it is that none of so many runs is of a mode with that share."""
    return float((1 - share) ** runs)


def _residuals(values: Numbers) -> tuple[Numbers, float]:
    """Logarithms less the mean of their shortest half, and the deviation that this half tells."""
    x = np.log(values) if (values > 0).all() else values / (np.abs(values).max() or 1.0)
    ordered = np.sort(x)
    half = (len(x) + 1) // 2
    lengths = ordered[half - 1 :] - ordered[: len(x) - half + 1]
    at = int(lengths.argmin())
    return np.asarray(x - ordered[at : at + half].mean()), float(lengths[at]) / 1.349


def _limit(distances: Numbers) -> float:
    """The middle of the first gap beyond the median; infinite without one."""
    ordered = np.sort(distances)
    middle = len(ordered) // 2
    wide = np.flatnonzero(np.diff(ordered)[middle:] >= GAP)
    return float(ordered[middle + wide[0] :][:2].mean()) if len(wide) else math.inf


def _cell(values: Numbers, residuals: Numbers, apart: Bools) -> CellModes:
    """Which runs are of which mode: those apart lie below or above the others."""
    low = apart & (residuals < 0) if (residuals[apart] < 0).any() else ~apart & apart.any()
    if not apart.any():
        low = np.zeros(len(values), dtype=bool)
    high = ~low
    means = [float(values[each].mean()) if each.any() else 0.0 for each in (low, high)]
    return CellModes(int(low.sum()), int(high.sum()), *means)
