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

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import numpy as np

from netbench.stats.by_boot import Builds, Places
from netbench.stats.intervals import Numbers

Rounds = Mapping[int, int]
"""For each boot, how many boots of its level precede it."""
NO_BUILDS: Builds = MappingProxyType({})


@dataclass(frozen=True)
class Series:
    """The runs of one cell on one pair: block, boot and value (above 0) of each; the builds of
    boots; and why they give no verdict ("": they do).
    """

    block: Places
    boot: Places
    values: Numbers
    builds: Builds = field(default_factory=lambda: NO_BUILDS)
    doubt: str = ""

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
    that both have. boots: as of `paired`.
    """
    unit, boot, logs, builds = paired(mine, base, boots, order)
    return (unit, logs) if unit == "block" else by_unit(boot, logs, builds)


def paired(
    mine: Series, base: Series, boots: int, order: Rounds
) -> tuple[str, Places, Numbers, Builds]:
    """Whether the `block` or the `boot` is the unit; of each block that both ran in its boot and
    the log difference; and the builds of boots. Where they share no boot: of rounds, and their
    means.

    boots: how many the campaign asked for. With more than one, or where the runs that pair lie in
    several, the boot is the unit; the build, where both have builds.
    """
    both = mine, base
    if not mine.boots & base.boots:
        builds = [
            {order[boot]: series.builds[boot] for boot in series.boots & series.builds.keys()}
            for series in both
        ]
        series_less = _less(*(_by_round(series, order) for series in both))
        return "boot", *series_less, builds[0] if all(builds) else NO_BUILDS
    width = 1 + max(int(series.block.max()) for series in both)
    places, logs = _less(*((series.boot * width + series.block, series.logs) for series in both))
    boot = places // width
    is_block = boots == 1 and len(set(boot.tolist())) <= 1
    return "block" if is_block else "boot", boot, logs, mine.builds


def _less(mine: tuple[Places, Numbers], base: tuple[Places, Numbers]) -> tuple[Places, Numbers]:
    """The places that both have, ascending, and what the values differ by there."""
    places, here, there = np.intersect1d(mine[0], base[0], return_indices=True)
    return places, mine[1][here] - base[1][there]


def by_unit(boots: Places, values: Numbers, builds: Builds) -> tuple[str, Numbers]:
    """The unit (`boot`, or `build` where that of every boot is known) and the mean of each: of a
    build, that of its boots' means.
    """
    known, means = _means(boots, values)
    built = np.array([builds.get(boot, 0) for boot in known.tolist()], dtype=np.int64)
    return ("build", _means(built, means)[1]) if len(built) and built.all() else ("boot", means)


def _means(units: Places, values: Numbers) -> tuple[Places, Numbers]:
    """Each unit, ascending, and the mean of its values."""
    if not len(values):
        return units, values
    known, at = np.unique(units, return_inverse=True)
    return known, np.bincount(at, values) / np.bincount(at)


def _by_round(series: Series, order: Rounds) -> tuple[Places, Numbers]:
    places = np.array([order[boot] for boot in series.boot.tolist()], dtype=np.int64)
    return _means(places, series.logs)
