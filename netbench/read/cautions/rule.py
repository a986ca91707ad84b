"""What a caution is, what it is made from, and the rule that reports it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from netbench.read.cells import CellResult, Rows, rows_by_cell
from netbench.read.result import Result
from netbench.stats.by_boot import without_boots
from netbench.stats.intervals import Numbers


@dataclass(frozen=True)
class Caution:
    """`kind` is one word, `what` a sentence, `where` cells, pairs or hosts, `evidence` the numbers,
    `remedy` what to do.
    """

    kind: str
    what: str
    where: tuple[str, ...]
    evidence: str
    remedy: str


@dataclass(frozen=True)
class Evidence:
    """What rules look at: a result, and its cells with their intervals."""

    result: Result
    cells: Sequence[CellResult]

    def ticks(self, host: str) -> int:
        """Clock ticks of a host in a second."""
        return self.result.ticks(host)

    def values(self, metric: str) -> Iterator[tuple[CellResult, Rows, Numbers]]:
        """Of each cell the rows of `result.ok` that have a metric, with their values, free of what
        boots differ by; none where the metric was not measured.
        """
        runs = self.result.ok
        column = runs[metric].to_numpy(dtype=float) if metric in runs else np.empty(0)
        rows, boots = rows_by_cell(runs) if len(column) else {}, runs["boot"].to_numpy()
        for cell in self.cells:
            mine = rows.get((cell.cell, cell.pair), np.empty(0, dtype=np.int64))
            if len(mine := mine[~np.isnan(column[mine])]):
                yield cell, mine, without_boots(column[mine], boots[mine])

    def label(self, cell: str, pair: str) -> str:
        """A cell's id, with its pair where there are several."""
        return cell if len(self.result.plan.pairs) == 1 else f"{cell} {pair}"

    def labels(self, places: Iterable[tuple[str, str]]) -> tuple[str, ...]:
        """The labels of (cell, pair)s, each once, in their order."""
        return tuple(dict.fromkeys(self.label(cell, pair) for cell, pair in places))

    def labels_of(self, runs: pd.DataFrame) -> tuple[str, ...]:
        """The labels of the cells that some rows of the frame of runs are of."""
        return self.labels(
            (str(cell), str(pair)) for cell, pair in zip(runs["cell"], runs["pair"], strict=True)
        )


Cautions = Iterator[Caution]


class CautionRule(ABC):
    """When a caution is due. A rule with a method `observe(runs)` (load.Observer) sees each run
    once, before `report`; a report has rules of its own, so they may keep what they saw.
    """

    name: ClassVar[str]
    """One word; that of its cautions, unless `kinds` says otherwise."""
    kinds: ClassVar[tuple[str, ...]] = ()
    """The kinds of its cautions where they are not `name`."""
    severity: ClassVar[int]
    """Its place in a report: the gravest, with the highest number, comes first."""
    about: ClassVar[str]
    """One sentence: when it is reported and what that means; the class's docstring, unless it is
    written here.
    """
    reads: ClassVar[str]
    """What it looks at: keys of records or facts, columns of the frame of runs."""
    shows: ClassVar[str]
    """What its evidence holds."""
    remedy: ClassVar[str]
    """What a reader can do."""

    def __init_subclass__(cls) -> None:
        cls.about = vars(cls).get("about") or " ".join((cls.__doc__ or "").split())

    @abstractmethod
    def report(self, evidence: Evidence) -> Cautions:
        """The cautions that are due."""

    def caution(
        self,
        what: str,
        where: Iterable[str] = (),
        evidence: str = "",
        *,
        remedy: str = "",
        kind: str = "",
    ) -> Caution:
        """A caution of this rule; its remedy and its name, where no other is given."""
        return Caution(kind or self.name, what, tuple(where), evidence, remedy or type(self).remedy)
