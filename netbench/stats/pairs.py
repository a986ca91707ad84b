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
    that both have. boots: as of `rows_of_all`.
    """
    unit, boot, table, builds = rows_of_all([mine, base], boots, order)
    found = table[:, 0] - table[:, 1]
    return (unit, found) if unit == "block" else by_unit(boot, found, builds)


def complete(cells: Sequence[Series], boots: int, order: Rounds) -> tuple[str, Numbers]:
    """The unit, as of differences, and the logarithms of all cells, a row a unit that each of them
    has.
    """
    unit, boot, table, builds = rows_of_all(cells, boots, order)
    if unit == "block":
        return unit, table
    columns = [by_unit(boot, column, builds) for column in table.T]
    return columns[0][0], np.stack([values for _, values in columns], axis=1)


def rows_of_all(
    cells: Sequence[Series], boots: int, order: Rounds
) -> tuple[str, Places, Numbers, Builds]:
    """Whether the `block` or the `boot` is the unit; of each block that all cells ran in its boot
    and a row of logarithms; and the builds of boots. Where no boot has all cells: of rounds, and
    their means.

    boots: how many the campaign asked for. With more than one, or where the runs that pair lie in
    several, the boot is the unit; the build, where all cells have builds.
    """
    if not frozenset.intersection(*(series.boots for series in cells)):
        places, table = _rows([_by_round(series, order) for series in cells])
        builds = [
            {order[boot]: series.builds[boot] for boot in series.boots & series.builds.keys()}
            for series in cells
        ]
        return "boot", places, table, builds[0] if all(builds) else NO_BUILDS
    width = 1 + max(int(series.block.max()) for series in cells)
    places, table = _rows([(series.boot * width + series.block, series.logs) for series in cells])
    boot = places // width
    is_block = boots == 1 and len(set(boot.tolist())) <= 1
    return "block" if is_block else "boot", boot, table, cells[0].builds


def _rows(cells: Sequence[tuple[Places, Numbers]]) -> tuple[Places, Numbers]:
    """The places that all cells have, ascending, and a row of values of each."""
    first, *rest = (places for places, _ in cells)
    if (first[1:] > first[:-1]).all() and all(np.array_equal(each, first) for each in rest):
        return first, np.stack([values for _, values in cells], axis=1)  # most are so: quick
    places = reduce(np.intersect1d, rest, np.unique(first))
    found = [values[np.intersect1d(mine, places, return_indices=True)[1]] for mine, values in cells]
    return places, np.stack(found, axis=1)


def by_unit(boots: Places, values: Numbers, builds: Builds) -> tuple[str, Numbers]:
    """The unit (`boot`, or `build` where that of every boot is known) and the mean of each: of a
    build, that of its boots' means.
    """
    known, means = _means(boots, values)
    found = np.array([builds.get(boot, 0) for boot in known.tolist()], dtype=np.int64)
    return ("build", _means(found, means)[1]) if len(found) and found.all() else ("boot", means)


def _means(units: Places, values: Numbers) -> tuple[Places, Numbers]:
    """Each unit, ascending, and the mean of its values."""
    if not len(values):
        return units, values
    known, at = np.unique(units, return_inverse=True)
    return known, np.bincount(at, values) / np.bincount(at)


def _by_round(series: Series, order: Rounds) -> tuple[Places, Numbers]:
    places = np.array([order[boot] for boot in series.boot.tolist()], dtype=np.int64)
    return _means(places, series.logs)
