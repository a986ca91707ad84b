"""Which factor matters: main effects and two-way interactions of the crossed factors of a campaign,
as ratios.

All is of logarithms over complete blocks (those in which every crossed cell ran), each block, boot
or build a unit: a contrast is computed within each unit, and its mean over units has a Student t
interval, widened where blocks follow each other. So what units have in common cancels, and each
contrast is held against its own spread, as R's `aov(y ~ A * B + Error(unit / (A * B)))` does. All
contrasts of a metric are one family (verdicts.py).

Main effects and interactions have a meaning over crossed cells alone: every level of each factor
with every level of the others. Where `exclude`, `include` or failures leave holes, levels are
dropped until there is none: always the level that lacks the largest share of its cells, the one
written last where several lack as much.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from netbench.base.units import count, listed
from netbench.read.compare import by_cell
from netbench.read.result import Result
from netbench.read.shown_levels import shown
from netbench.read.verdicts import corrected, tested
from netbench.result.files import PlannedCell
from netbench.stats.by_boot import BOOTED
from netbench.stats.comparison import Comparison
from netbench.stats.dependence import followed
from netbench.stats.intervals import Interval, Numbers, mean_interval, means_of, ratio_confidence
from netbench.stats.pairs import Series, complete

Term = tuple[int, ...]
"""Which factors, by their places."""
TOGETHER, AND = " × ", " & "
"""Between the factors of an interaction, and between their levels."""
NAMED = 4  # levels that a note names; the rest are counted


@dataclass(frozen=True)
class Crossing:
    """`levels` of each crossed factor, two or more; `constant`: levels of swept factors that all
    cells share; `cells`: the ids by their levels of the crossed factors, in the order of these;
    `notes`: in words, what is not part of it, and which keys go with a factor.
    """

    levels: Mapping[str, tuple[str, ...]]
    constant: Mapping[str, str]
    cells: Mapping[tuple[str, ...], str]
    notes: tuple[str, ...] = ()

    @property
    def factors(self) -> tuple[str, ...]:
        return tuple(self.levels)

    @property
    def where(self) -> str:
        """The constant levels: `sg=on align=0`; "" without any."""
        return " ".join(f"{name}={level}" for name, level in self.constant.items())


@dataclass(frozen=True)
class Effect:
    """What one factor does, or two together beyond what each does alone.

    `contrasts`: for a factor, each level against its baseline, over all levels of the others; for
    two, how much each level's ratio differs between a level of the other and its baseline, a ratio
    of ratios.
    """

    factors: tuple[str, ...]
    contrasts: tuple[Comparison, ...]

    @property
    def name(self) -> str:
        return TOGETHER.join(self.factors)

    @property
    def size(self) -> tuple[float, float, float]:
        """The largest change of its contrasts, up or down, as a logarithm; what it is at least and
        at most, by their intervals.
        """
        largest = max(abs(math.log(c.ratio)) for c in self.contrasts)
        lows = [math.log(max(c.low, 1e-300)) for c in self.contrasts]
        highs = [math.log(c.high) for c in self.contrasts]
        return largest, max(0.0, *lows, *(-x for x in highs)), max(map(abs, lows + highs))


@dataclass(frozen=True)
class Effects:
    """All effects on one metric on one pair of hosts, over `n` complete units.

    `table`: logarithms, units first, then the levels of each crossed factor. `why`: why there are
    none. `notes`: what is not part of it.
    """

    pair: str
    metric: str
    crossed: Crossing
    unit: str = ""
    table: Numbers | None = None
    effects: tuple[Effect, ...] = ()
    confidence: float = math.nan
    notes: tuple[str, ...] = ()
    why: str = ""

    @property
    def n(self) -> int:
        return 0 if self.table is None else len(self.table)

    @property
    def main(self) -> tuple[Effect, ...]:
        """Those of one factor, the largest change first."""
        return self._of(1)

    @property
    def interactions(self) -> tuple[Effect, ...]:
        """Those of two factors, the largest change first."""
        return self._of(2)

    def _of(self, factors: int) -> tuple[Effect, ...]:
        mine = (effect for effect in self.effects if len(effect.factors) == factors)
        return tuple(sorted(mine, key=lambda effect: -effect.size[0]))

    def means(self, a: str, b: str) -> dict[tuple[str, str], Interval]:
        """The mean at each level of two factors over those of the others, in the metric's unit
        (geometric), each with an interval of its own. Errors: KeyError for what is not crossed.
        """
        factors = self.crossed.factors
        if missing := {a, b}.difference(factors):
            raise KeyError(missing.pop())
        if self.table is None:
            return {}
        places = [factors.index(name) for name in (a, b)]
        others = tuple(at + 1 for at in range(len(factors)) if at not in places)
        logs = self.table.mean(axis=others)
        if places[0] > places[1]:
            logs = logs.swapaxes(1, 2)
        levels = itertools.product(self.crossed.levels[a], self.crossed.levels[b])
        found = {}
        for place, each in zip(levels, logs.reshape(self.n, -1).T, strict=True):
            i = mean_interval(each, self.confidence)
            mean, low, high = (math.exp(value) for value in (i.mean, i.low, i.high))
            found[place] = Interval(i.n, mean, low, high, half_width=(high - low) / 2)
        return found


def effects_of(result: Result, metric: str) -> list[Effects]:
    """The effects on a metric, pair by pair; none where fewer than two factors were swept. Errors:
    KeyError for a metric that was not measured.
    """
    if len(result.swept) < 2:
        return []
    if metric not in result.metrics:
        raise KeyError(metric)
    cells: dict[str, dict[str, Series]] = {}
    for (pair, cell), series in by_cell(result.ok, ["pair", "cell"], metric):
        cells.setdefault(pair, {})[cell] = series
    found = [_of_pair(result, metric, pair, mine) for pair, mine in cells.items()]
    family = [c for each in found for effect in each.effects for c in effect.contrasts]
    judged = iter(corrected(family, result.repeat))

    def with_verdicts(effect: Effect) -> Effect:
        return replace(effect, contrasts=tuple(next(judged) for _ in effect.contrasts))

    return [replace(each, effects=tuple(map(with_verdicts, each.effects))) for each in found]


def _of_pair(result: Result, metric: str, pair: str, cells: Mapping[str, Series]) -> Effects:
    """The effects on one pair, their contrasts without intervals."""
    measured = [cell for cell, series in cells.items() if len(series.values) > 1]
    crossed = crossing(result.cells, result.swept, measured)
    if crossed is None:
        return Effects(pair, metric, Crossing({}, {}, {}), why="no two factors are crossed")
    empty = Effects(pair, metric, crossed, notes=crossed.notes)
    inside = [cells[cell] for cell in crossed.cells.values()]
    if any((series.values <= 0).any() for series in inside):
        return replace(empty, why="a run measured 0, which has no logarithm")
    unit, logs = complete(inside, result.repeat.boots, result.rounds)
    if len(logs) < 2:
        return replace(
            empty, why=f"all crossed cells ran in {len(logs)} {unit} alone; it takes two"
        )
    shape = tuple(len(levels) for levels in crossed.levels.values())
    table = logs.reshape(len(logs), *shape)
    dropped = max(len(set(series.block.tolist())) for series in inside) - len(logs)
    notes = list(crossed.notes)
    if unit == "block" and dropped > 0:
        notes.append(f"{dropped} blocks left out: not every crossed cell ran in them")
    contrasts = list(_contrasts(result, crossed, table))
    # each contrast within each unit
    rows = [np.tensordot(table, weights, axes=weights.ndim) for _, weights, *_ in contrasts]
    means = (means_of if unit in BOOTED else followed)(np.stack(rows))
    repeat, factors = result.repeat, crossed.factors
    base = Comparison("", "", "", {}, pair, metric, len(logs), unit, confidence=repeat.confidence)
    by_term: dict[Term, list[Comparison]] = {}
    numbers = (each.tolist() for each in (means.sd, means.mean, means.error, means.freedom))
    for (term, _, level, against), sd, *mine in zip(contrasts, *numbers, strict=True):
        # that an effect differs is neither good nor bad
        better = result.describe(metric).better if len(term) == 1 else 0
        name = TOGETHER.join(factors[at] for at in term)
        c = base.but(factor=name, level=level, baseline=against, better=better, sd=sd)
        by_term.setdefault(term, []).append(tested(c, *mine))
    effects = tuple(
        Effect(tuple(factors[at] for at in term), tuple(mine)) for term, mine in by_term.items()
    )
    confidence = repeat.confidence if unit in BOOTED else ratio_confidence(repeat)
    return replace(
        empty, unit=unit, table=table, effects=effects, confidence=confidence, notes=tuple(notes)
    )


def _baseline(result: Result, crossed: Crossing, factor: str) -> int:
    """The place of the level that others are compared with: that of `compare`, else the first."""
    asked, levels = result.compare, crossed.levels[factor]
    mine = asked is not None and asked.factor == factor and asked.baseline in levels
    return levels.index(asked.baseline) if asked and mine else 0


def _contrasts(
    result: Result, crossed: Crossing, table: Numbers
) -> Iterator[tuple[Term, Numbers, str, str]]:
    """Each contrast of each term: its weights over the cells, in their shape, its level and its
    baseline.
    """
    factors = crossed.factors
    bases = [_baseline(result, crossed, name) for name in factors]
    every = range(len(factors))
    for term in (*itertools.combinations(every, 1), *itertools.combinations(every, 2)):
        places = [[x for x in range(table.shape[at + 1]) if x != bases[at]] for at in term]
        for chosen in itertools.product(*places):
            weights = np.ones(())
            for at, size in enumerate(table.shape[1:]):
                axis = np.full(size, 1 / size)
                if at in term:
                    axis = np.zeros(size)
                    axis[chosen[term.index(at)]], axis[bases[at]] = 1.0, -1.0
                weights = np.multiply.outer(weights, axis)
            names = [factors[at] for at in term]
            level = AND.join(crossed.levels[n][x] for n, x in zip(names, chosen, strict=True))
            base = AND.join(crossed.levels[factors[at]][bases[at]] for at in term)
            yield term, weights, level, base


def crossing(
    planned: Sequence[PlannedCell], swept: Sequence[str], measured: Collection[str]
) -> Crossing | None:
    """The crossed cells; None where no two factors are crossed.

    planned: all cells; swept: the factors of `sweep:`; measured: ids of the cells with runs.
    """
    inside = [cell for cell in planned if all(name in cell.factors for name in swept)]
    words = {tuple(cell.factors[name] for name in swept): cell for cell in inside}
    usable = {levels: cell for levels, cell in words.items() if cell.cell in measured}
    if not usable:
        return None
    written = [list(dict.fromkeys(levels[at] for levels in words)) for at in range(len(swept))]
    grid = [list(levels) for levels in written]
    while missing := [levels for levels in itertools.product(*grid) if levels not in usable]:
        # times the number of its levels: what share of a level's cells are missing
        lacking = [
            (len(levels) * sum(one[at] == level for one in missing), at, place)
            for at, levels in enumerate(grid)
            for place, level in enumerate(levels)
            if len(levels) > 1
        ]
        _, at, place = max(lacking)
        del grid[at][place]
    by_name = dict(zip(swept, map(tuple, grid), strict=True))
    crossed = {name: each for name, each in by_name.items() if len(each) > 1}
    if len(crossed) < 2:
        return None
    constant = {name: each[0] for name, each in by_name.items() if len(each) == 1}
    places = [at for at, name in enumerate(swept) if name in crossed]
    whole = itertools.product(*grid)
    kept = {tuple(levels[at] for at in places): usable[levels] for levels in whole}
    notes = list(_left_out(planned, kept.values(), measured))
    dropped = [
        f"{name}={shown(level)}"
        for name, before, left in zip(swept, written, grid, strict=True)
        for level in before
        if level not in left
    ]
    if dropped:
        notes.append(f"levels that lack cells, so left out: {listed(dropped, NAMED)}")
    notes += _attached(kept, tuple(crossed), swept)
    ids = {levels: cell.cell for levels, cell in kept.items()}
    return Crossing(crossed, constant, ids, tuple(notes))


def _left_out(
    planned: Sequence[PlannedCell], kept: Collection[PlannedCell], measured: Collection[str]
) -> Iterator[str]:
    """How many cells are not part of it, and why."""
    inside = {cell.cell for cell in kept}
    outside = [cell.cell for cell in planned if cell.cell not in inside]
    empty = [cell for cell in outside if cell not in measured]
    if full := len(outside) - len(empty):
        yield (
            f"{count(full, 'cell')} of {len(planned)} left out: not crossed with the others"
            " (`exclude`, `include`, or beside a cell that is missing)"
        )
    if empty:
        cells = listed([shown(cell) for cell in empty], NAMED)
        yield f"without two values of this metric, so left out: {cells}"


def _attached(
    kept: Mapping[tuple[str, ...], PlannedCell], crossed: Sequence[str], swept: Sequence[str]
) -> Iterator[str]:
    """Keys that `include` gave to cells: what they do is part of the factor that they go with."""
    names = dict.fromkeys(name for cell in kept.values() for name in cell.factors)
    for name in (name for name in names if name not in swept):
        value = {levels: cell.factors.get(name, "") for levels, cell in kept.items()}
        if len(set(value.values())) > 1:
            leads = [
                factor
                for at, factor in enumerate(crossed)
                if len({(levels[at], word) for levels, word in value.items()})
                == len({levels[at] for levels in value})
            ]
            lead = leads[0] if leads else "several factors"
            yield f"{name} goes with {lead} (`include`): what it does is part of that effect"
