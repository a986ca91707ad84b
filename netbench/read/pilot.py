"""An earlier result as a campaign that has not run sees it: how far the differences of its cells
vary, and what boots and runs cost.

Each comparison of the campaign takes the runs of the two cells of the pilot whose levels agree with
it in all factors that both sweep. Where the pilot has only one of them, differences are taken to
vary as those of two cells like it that do not go up and down together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from netbench.base.units import listed
from netbench.model import Campaign, Cell
from netbench.read.compare import Place, by_cell
from netbench.read.matching import NAMED
from netbench.read.result import Result
from netbench.stats.boots import Builds, split
from netbench.stats.dependence import followed
from netbench.stats.intervals import NAN, Numbers
from netbench.stats.pairs import Series


@dataclass(frozen=True)
class Variation:
    """How far log differences of two cells vary: deviations `between` boots (NaN: not known) and
    `within`, of one block, with the degrees of freedom of `within`, and the number of boots; and
    deviations `apart` of `builds` builds (NaN: not known; then `between` is that of all boots).
    `paired`: seen as differences.
    """

    between: float
    within: float
    freedom: int
    boots: int
    paired: bool
    apart: float = NAN
    builds: int = 1

    @property
    def whole(self) -> float:
        """The deviation of one block in one boot, as far as it is known."""
        return self.within if math.isnan(self.between) else self.of_boot(1)

    def of_boot(self, blocks: float) -> float:
        """The deviation of the difference of two boots of so many blocks."""
        return math.hypot(self.between, self.within / math.sqrt(blocks))

    def of_build(self, boots: float, blocks: float) -> float:
        """The deviation of the difference of two builds of so many boots of so many blocks."""
        return math.hypot(self.apart, self.of_boot(blocks) / math.sqrt(boots))


@dataclass(frozen=True)
class Contrast:
    """A cell, the baseline that it is compared with (None: its campaign compares nothing), and the
    pair of hosts.
    """

    cell: str
    base: str | None
    pair: str

    @property
    def words(self) -> str:
        against = f" against {self.base}" if self.base else ""
        return f"{self.cell or 'the one cell'}{against}"


class Pilot:
    """An earlier result, as a campaign sees it."""

    def __init__(self, result: Result, campaign: Campaign) -> None:
        self._result = result
        self._campaign = campaign
        self._swept = [factor.name for factor in campaign.factors]
        self._common = [name for name in self._swept if name in result.swept]
        self._matches = {cell.id: self._match(cell) for cell in campaign.cells}
        self._series: dict[str, dict[Place, Series]] = {}

    def _match(self, cell: Cell) -> list[str]:
        """The cells there whose levels agree."""
        return [
            other.cell
            for other in self._result.cells
            if all(other.factors.get(n, "") == cell.factors.get(n, "") for n in self._common)
        ]

    def notes(self) -> Iterator[str]:
        """What does not match."""
        alone = [cell for cell, found in self._matches.items() if not found]
        if alone:
            yield f"no cell there has the levels of {listed(alone, NAMED)}"
        ours = [name for name in self._swept if name not in self._common]
        if ours:
            yield f"{', '.join(ours)}: not swept there, so what there is stands for each level"
        theirs = [name for name in self._result.swept if name not in self._common]
        if theirs:
            yield f"{', '.join(theirs)}: swept there alone, and the level that varies most counts"
        if self._pairs(self._campaign.pairs[0].name) != [self._campaign.pairs[0].name]:
            yield f"other pairs of hosts there: {listed(self._result.plan.pairs, NAMED)}"

    def _pairs(self, pair: str) -> list[str]:
        there = list(self._result.plan.pairs)
        return [pair] if pair in there else there

    def _of(self, metric: str) -> dict[Place, Series]:
        if metric not in self._series:
            runs = by_cell(self._result.ok, ["pair", "cell"], metric)
            self._series[metric] = {
                (words[1], words[0]): each for words, each in runs if (each.values > 0).all()
            }
        return self._series[metric]

    def variation(self, contrast: Contrast, metric: str) -> Variation | None:
        """How far the differences of a comparison vary there, where they vary most; None where the
        result does not tell.
        """
        found = [
            variation
            for pair in self._pairs(contrast.pair)
            for one, two in self._cells(contrast)
            if (variation := _variation(self._of(metric), (one, pair), (two, pair)))
        ]
        return max(found, key=lambda v: v.whole, default=None)

    def _cells(self, contrast: Contrast) -> list[tuple[str, str]]:
        """The two cells there of a comparison; one cell twice where there is only one."""
        mine = self._matches[contrast.cell]
        bases = self._matches[contrast.base] if contrast.base else []
        apart = {cell.cell: self._others(cell.factors) for cell in self._result.cells}
        both = [(x, y) for x in mine for y in bases if x != y and apart[x] == apart[y]]
        return both or [(x, x) for x in (mine or bases)]

    def _others(self, factors: Mapping[str, str]) -> tuple[str, ...]:
        """The levels of what the campaign does not sweep."""
        return tuple(
            factors.get(name, "") for name in self._result.swept if name not in self._common
        )

    @cached_property
    def costs(self) -> tuple[float, float] | None:
        """Seconds of a boot and of a run: medians of the times between starts; None without several
        boots.
        """
        runs = self._result.runs[["started", "boot"]].dropna().sort_values("started")
        gaps = runs["started"].diff().dt.total_seconds().to_numpy()[1:]
        booted = np.diff(runs["boot"].to_numpy()) != 0
        if not booted.any() or booted.all():
            return None
        run = float(np.median(gaps[~booted]))
        return max(float(np.median(gaps[booted])) - run, 0.0), run


def _variation(cells: Mapping[Place, Series], one: Place, two: Place) -> Variation | None:
    mine, base = cells.get(one), cells.get(two)
    if mine is None or base is None:
        return None
    if one == two:
        parts = [_parts(mine.logs, mine.boot, mine.builds)] * 2
    elif mine.boots & base.boots:
        width = 1 + max(mine.block.max(), base.block.max())
        here, there = (series.boot * width + series.block for series in (mine, base))
        _, i, j = np.intersect1d(here, there, return_indices=True)
        apart = mine.logs[i] - base.logs[j]
        parts = [_parts(apart, mine.boot[i], mine.builds)]
    else:
        parts = [_parts(s.logs, s.boot, s.builds) for s in (mine, base)]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return Variation(
        math.sqrt(sum(v.between**2 for v in known)),
        math.sqrt(sum(v.within**2 for v in known)),
        sum(v.freedom for v in known) if one != two else known[0].freedom,
        min(v.boots for v in known),
        one != two,
        math.sqrt(sum(v.apart**2 for v in known)),
        min(v.builds for v in known),
    )


def _parts(logs: Numbers, boots: npt.NDArray[np.int64], builds: Builds) -> Variation | None:
    """Deviations between builds, boots and within them; None with fewer than 2 runs in a boot."""
    units = len(set(boots.tolist()))
    if units == 1:
        if len(logs) < 2:
            return None
        error = float(followed(logs).error)
        return Variation(NAN, error * math.sqrt(len(logs)), len(logs) - 1, 1, True)
    free = len(logs) - units
    if parts := split(logs, boots, builds=builds):
        # boots of builds that had one each are in what builds differ by
        own = 0.0 if math.isnan(parts.between) else parts.between
        return Variation(own, parts.within, free, units, True, parts.apart, parts.builds)
    found = split(logs, boots)
    if found is None:
        return None
    return Variation(found.between, found.within, free, units, True)
