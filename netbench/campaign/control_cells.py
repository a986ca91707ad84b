"""The control of a comparison: its baseline as a cell of its own, shuffled into each block like any
level. Nothing but chance is to tell the two apart.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from netbench.model import CONTROL, Cell, Compare

SHARE = 4  # by default controls are less than a quarter of all cells, themselves included

Cells = tuple[Cell, ...]


def with_controls(
    cells: Cells, swept: Collection[str], compare: Compare, wanted: bool | None
) -> tuple[Cells, Compare]:
    """The cells and, last, the controls; and whether there are any. `wanted`: what the campaign
    writes, None where it leaves the choice.
    """
    controls = tuple(
        cell._replace(id=cell.id + CONTROL, control=True)
        for cell in _baselines(cells, swept, compare)
    )
    cheap = SHARE * len(controls) < len(cells) + len(controls)
    if not controls or not (cheap if wanted is None else wanted):
        return cells, compare
    return cells + controls, compare._replace(control=True)


def _baselines(cells: Sequence[Cell], swept: Collection[str], compare: Compare) -> list[Cell]:
    """The baseline of each context of the other swept factors in which a level is compared."""
    others = [name for name in swept if name != compare.factor]
    contexts: dict[tuple[str | None, ...], dict[str | None, Cell]] = {}
    for cell in cells:
        by_level = contexts.setdefault(tuple(cell.factors.get(name) for name in others), {})
        by_level.setdefault(cell.factors.get(compare.factor), cell)
    compared = (by_level for by_level in contexts.values() if len(by_level) > 1)
    return [by_level[compare.baseline] for by_level in compared if compare.baseline in by_level]
