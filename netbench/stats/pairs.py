"""Pairing: the log differences of two cells that were run in the same campaign, one a unit. Needs
numpy only.

Both cells of a comparison ran once in each block, close together in time; the difference of their
logarithms within a block is free of what drifts between blocks. Where their runs lie in several
boots the boot is the unit, and differences within it count as their mean. Levels that never share a
boot (kernels) are paired by their rounds: the n-th boot of one with the n-th of the other. Where
each of the two was booted in several builds the build is the unit, and the differences of its boots
count as their mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from types import MappingProxyType

import numpy as np

from netbench.stats.by_boot import Builds, Places
from netbench.stats.intervals import Numbers

Rounds = Mapping[int, int]
"""For each boot, how many boots of its level precede it."""
NO_BUILDS: Builds = MappingProxyType({})


@dataclass(frozen=True)
class Series:
    """The runs of one cell on one pair: block, boot and value (above 0) of each; and the builds of
    boots.
    """

    block: Places
    boot: Places
    values: Numbers
    builds: Builds = field(default_factory=lambda: NO_BUILDS)

    @cached_property
    def boots(self) -> frozenset[int]:
        """The boots in which they lie."""
        return frozenset(self.boot.tolist())

    @cached_property
    def logs(self) -> Numbers:
        """The logarithms of the values."""
        return np.log(self.values)


def rounds(boots: Iterable[Iterable[int]]) -> Rounds:
    """The rounds of all boots, given those of each level."""
    return {boot: number for level in boots for number, boot in enumerate(sorted(set(level)))}


def differences(mine: Series, base: Series, boots: int, order: Rounds) -> tuple[str, Numbers]:
    """The unit (`block`, `boot` or `build`) and the log differences, mine less base, one a unit
    that both have.

    boots: how many the campaign asked for. With more than one, or where the runs that pair lie in
    several, the boot is the unit; the build, where both have builds.
    """
    if not mine.boots & base.boots:
        pairs, log_differences = _subtracted(_by_round(mine, order), _by_round(base, order))
        builds = [_of_rounds(series, order) for series in (mine, base)]
        return by_unit(pairs, log_differences, builds[0] if all(builds) else NO_BUILDS)
    width = 1 + max(mine.block.max(), base.block.max())
    here, there = (series.boot * width + series.block for series in (mine, base))
    places, (i, j) = _in_all([here, there])
    log_differences, boot = mine.logs[i] - base.logs[j], places // width
    if boots > 1 or len(set(boot.tolist())) > 1:
        return by_unit(boot, log_differences, mine.builds)
    return "block", log_differences


def complete(cells: Sequence[Series], boots: int, order: Rounds) -> tuple[str, Numbers]:
    """The unit, as of differences, and the logarithms of all cells, a row a unit that each of them
    has.
    """
    if not frozenset.intersection(*(series.boots for series in cells)):
        found = [_by_round(series, order) for series in cells]
        places, table = _common(found)
        builds = [_of_rounds(series, order) for series in cells]
        return _rows_by_unit(places, table, builds[0] if all(builds) else NO_BUILDS)
    width = 1 + max(int(series.block.max()) for series in cells)
    places, table = _common([(series.boot * width + series.block, series.logs) for series in cells])
    boot = places // width
    if boots > 1 or len(set(boot.tolist())) > 1:
        return _rows_by_unit(boot, table, cells[0].builds)
    return "block", table


def _common(cells: Sequence[tuple[Places, Numbers]]) -> tuple[Places, Numbers]:
    """The places that all cells have, and a row of values of each."""
    places, found = _in_all([mine for mine, _ in cells])
    columns = [values[at] for (_, values), at in zip(cells, found, strict=True)]
    return places, np.stack(columns, axis=1)


def _in_all(cells: Sequence[Places]) -> tuple[Places, list[Places | slice]]:
    """The places that all cells have, ascending, and where each has them (first)."""
    first = cells[0]
    if (first[1:] > first[:-1]).all() and all(np.array_equal(each, first) for each in cells[1:]):
        return first, [slice(None)] * len(cells)  # most are so, and that is quick
    places = reduce(np.intersect1d, cells[1:], np.unique(first))
    return places, [np.intersect1d(each, places, return_indices=True)[1] for each in cells]


def _rows_by_unit(boots: Places, table: Numbers, builds: Builds) -> tuple[str, Numbers]:
    """As by_unit, of a table with a row a boot or a block of it."""
    columns = [by_unit(boots, column, builds) for column in table.T]
    return columns[0][0], np.stack([values for _, values in columns], axis=1)


def by_unit(boots: Places, values: Numbers, builds: Builds) -> tuple[str, Numbers]:
    """The unit (`boot`, or `build` where that of every boot is known) and the mean of each: of a
    build, that of its boots' means.
    """
    known, means = _means(boots, values)
    found = np.array([builds.get(boot, 0) for boot in known.tolist()], dtype=np.int64)
    return ("build", _means(found, means)[1]) if len(found) and found.all() else ("boot", means)


def _of_rounds(series: Series, order: Rounds) -> Builds:
    """The build of each round."""
    return {order[boot]: series.builds[boot] for boot in series.boots & series.builds.keys()}


def _means(units: Places, values: Numbers) -> tuple[Places, Numbers]:
    """Each unit, ascending, and the mean of its values."""
    if not len(values):
        return units, values
    known, at = np.unique(units, return_inverse=True)
    return known, np.bincount(at, values) / np.bincount(at)


def _by_round(series: Series, order: Rounds) -> tuple[Places, Numbers]:
    return _means(
        np.array([order[boot] for boot in series.boot.tolist()], dtype=np.int64),
        series.logs,
    )


def _subtracted(
    mine: tuple[Places, Numbers], base: tuple[Places, Numbers]
) -> tuple[Places, Numbers]:
    both, i, j = np.intersect1d(mine[0], base[0], assume_unique=True, return_indices=True)
    return both, mine[1][i] - base[1][j]
