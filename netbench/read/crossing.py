"""Which cells of a campaign are crossed: every level of each factor with every level of the others.

Main effects and interactions have a meaning over such cells alone. Where `exclude`, `include` or
failures leave holes, levels are dropped until there is none: always the level that lacks the
largest share of its cells, the one written last where several lack as much.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from netbench.base.units import count, listed
from netbench.read.shown_levels import shown
from netbench.result.files import PlannedCell

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
    grid = [list(dict.fromkeys(levels[at] for levels in words)) for at in range(len(swept))]
    dropped = []
    while missing := [levels for levels in itertools.product(*grid) if levels not in usable]:
        at, level = _sparsest(grid, missing)
        grid[at].remove(level)
        dropped.append((at, level))
    by_name = dict(zip(swept, map(tuple, grid), strict=True))
    crossed = {name: each for name, each in by_name.items() if len(each) > 1}
    if len(crossed) < 2:
        return None
    constant = {name: each[0] for name, each in by_name.items() if len(each) == 1}
    places = [at for at, name in enumerate(swept) if name in crossed]
    kept = {
        tuple(levels[at] for at in places): usable[levels] for levels in itertools.product(*grid)
    }
    notes = list(_left_out(planned, kept.values(), measured))
    if dropped:
        in_order = [
            f"{name}={shown(level)}"
            for at, name in enumerate(swept)
            for level in dict.fromkeys(levels[at] for levels in words)
            if (at, level) in dropped
        ]
        notes.append(f"levels that lack cells, so left out: {listed(in_order, NAMED)}")
    notes += _attached(kept, tuple(crossed), swept)
    ids = {levels: cell.cell for levels, cell in kept.items()}
    return Crossing(crossed, constant, ids, tuple(notes))


def _sparsest(grid: Sequence[Sequence[str]], missing: Sequence[tuple[str, ...]]) -> tuple[int, str]:
    """The place of the factor and the level that lacks the largest share of its cells, the last of
    those that lack as much.
    """
    places = [(at, level) for at, each in enumerate(grid) if len(each) > 1 for level in each]
    # times the number of cells: what share of those of a level are missing
    lacking = [len(grid[at]) * sum(one[at] == level for one in missing) for at, level in places]
    return places[max(range(len(places)), key=lambda n: (lacking[n], n))]


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
