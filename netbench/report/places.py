"""Where the cells and runs of a result are on its page: what a number of a table links to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from netbench.read.cells import CellResult
from netbench.read.shown_levels import shown
from netbench.report.blocks import ROW, Levels, Table
from netbench.report.numbers import words
from netbench.report.source import Source

RUNS = "#runs"
BOTH = "|"
"""Between levels of which any will do."""


@dataclass(frozen=True)
class Link:
    """An address within the page; `only`: the words that the table of runs is to be filtered by."""

    to: str
    only: str = ""


@dataclass(frozen=True)
class Places:
    """The cells of a result, in the order of its page."""

    source: Source

    @cached_property
    def _names(self) -> Mapping[tuple[str, str], str]:
        return {(c.cell, c.pair): f"cell-{i}" for i, c in enumerate(self.source.cells, 1)}

    @cached_property
    def _of_label(self) -> Mapping[str, str]:
        """By what cautions call a cell."""
        several = len(self.source.result.plan.pairs) > 1
        return {
            shown(f"{cell} {pair}" if several else cell): name
            for (cell, pair), name in self._names.items()
        }

    @cached_property
    def _levels(self) -> Sequence[tuple[str, Levels]]:
        """Each cell's name, with what a table may say of it."""
        return [
            (
                self._names[c.cell, c.pair],
                {
                    "pair": c.pair,
                    "cell": shown(c.cell),
                    **{k: shown(v) for k, v in c.factors.items()},
                },
            )
            for c in self.source.cells
        ]

    @cached_property
    def _shown(self) -> Mapping[tuple[str, str], str]:
        return {(shown(cell), pair): name for (cell, pair), name in self._names.items()}

    @cached_property
    def _keys(self) -> Mapping[tuple[str, ...], str]:
        """By the words of a row's key columns."""
        return {self.source.key(c): self._names[c.cell, c.pair] for c in self.source.cells}

    @cached_property
    def _matching(self) -> dict[tuple[tuple[str, str], ...], list[str]]:
        """What was searched, since each metric's table asks the same."""
        return {}

    def name(self, cell: str, pair: str) -> str:
        """The id of a cell; "" for one that the page has not, such as a control."""
        return self._names.get((cell, pair), "")

    def address(self, cell: CellResult) -> str:
        """Where a cell is."""
        return f"#{self.name(cell.cell, cell.pair)}"

    def of_label(self, label: str) -> str:
        """Where the cell is that cautions call so; "" where none is."""
        name = self._of_label.get(label)
        return f"#{name}" if name else ""

    def of(self, levels: Levels) -> Link:
        """Where the cells with these levels are: the one that has them, or the table of runs."""
        asked = {name: shown(level) for name, level in levels.items() if level}
        mine = self.matching(asked)
        if len(mine) == 1 and not asked.keys() & {"boot", "block"}:
            return Link(f"#{mine[0]}")
        return Link(RUNS, " ".join(_word(k, v) for k, v in asked.items()))

    def matching(self, levels: Levels) -> Sequence[str]:
        """The ids of the cells that have these levels."""
        if levels.keys() == {"cell", "pair"}:
            name = self._shown.get((levels["cell"], levels["pair"]), "")
            return [name] if name else []
        if levels.keys() == set(self.source.keys) and not any(BOTH in v for v in levels.values()):
            name = self._keys.get(tuple(levels[key] for key in self.source.keys), "")
            return [name] if name else []
        asked = tuple(sorted(levels.items()))
        if asked not in self._matching:
            self._matching[asked] = self._search(asked)
        return self._matching[asked]

    def _search(self, asked: tuple[tuple[str, str], ...]) -> list[str]:
        wanted = [(k, v.split(BOTH)) for k, v in asked if k not in ("boot", "block")]
        return [
            name
            for name, mine in self._levels
            if all(mine.get(key, "") in levels for key, levels in wanted)
        ]

    def of_row(self, table: Table, row: int) -> Link | None:
        """Where the runs of a table's row are; None for a row that is not of runs."""
        if (row, ROW) in table.places:
            return self.of(table.places[row, ROW])
        known = {"pair", "cell", "boot", *self.source.result.factors}
        keys = {
            column.name: words(value)
            for column, value in zip(table.columns, table.rows[row], strict=True)
            if column.kind == "key" and column.name in known
        }
        if keys:
            return self.of(keys)
        return Link(RUNS) if any(column.name == "runs" for column in table.columns) else None

    def of_value(self, table: Table, row: int, column: int) -> Link | None:
        """Where the runs of one value are, where that is not where its row's are."""
        levels = table.places.get((row, column))
        return None if levels is None else self.of(levels)


def _word(name: str, level: str) -> str:
    """A level as a word of a filter."""
    return f'{name}="{level}"' if any(map(str.isspace, level)) else f"{name}={level}"
