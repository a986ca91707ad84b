"""Pairing: the log differences of two cells that were run in the same campaign, one a unit. Needs
numpy only.

Both cells of a comparison ran once in each block, close together in time; the difference of their
logarithms within a block is free of what drifts between blocks. Where their runs lie in several
boots the boot is the unit, and differences within it count as their mean. Levels that never share a
boot (kernels) are paired by their rounds: the n-th boot of one with the n-th of the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from netbench.analysis.intervals import Numbers

Places = npt.NDArray[np.int64]
Rounds = Mapping[int, int]
"""For each boot, how many boots of its level precede it."""


@dataclass(frozen=True)
class Series:
    """The runs of one cell on one pair: block, boot and value (above 0) of each."""

    block: Places
    boot: Places
    values: Numbers


def rounds(boots: Iterable[Iterable[int]]) -> Rounds:
    """The rounds of all boots, given those of each level."""
    return {boot: number for level in boots for number, boot in enumerate(sorted(set(level)))}


def differences(mine: Series, base: Series, boots: int, order: Rounds) -> tuple[str, Numbers]:
    """The unit (`block` or `boot`) and the log differences, mine less base, one a unit that both
    have.

    boots: how many the campaign asked for. With more than one, or where the runs that pair lie in
    several, the boot is the unit.
    """
    if not set(mine.boot.tolist()) & set(base.boot.tolist()):
        return "boot", _subtracted(_by_round(mine, order), _by_round(base, order))
    width = 1 + max(mine.block.max(), base.block.max())
    here, there = (series.boot * width + series.block for series in (mine, base))
    _, i, j = np.intersect1d(here, there, return_indices=True)
    log_differences = np.log(mine.values[i]) - np.log(base.values[j])
    boot = mine.boot[i]
    if boots > 1 or len(set(boot.tolist())) > 1:
        return "boot", _means(boot, log_differences)[1]
    return "block", log_differences


def _means(units: Places, values: Numbers) -> tuple[Places, Numbers]:
    """Each unit, ascending, and the mean of its values."""
    if not len(values):
        return units, values
    known, at = np.unique(units, return_inverse=True)
    return known, np.bincount(at, values) / np.bincount(at)


def _by_round(series: Series, order: Rounds) -> tuple[Places, Numbers]:
    return _means(
        np.array([order[boot] for boot in series.boot.tolist()], dtype=np.int64),
        np.log(series.values),
    )


def _subtracted(mine: tuple[Places, Numbers], base: tuple[Places, Numbers]) -> Numbers:
    _, i, j = np.intersect1d(mine[0], base[0], assume_unique=True, return_indices=True)
    return mine[1][i] - base[1][j]
