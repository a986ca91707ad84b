"""What a caution is, what it is made from, and the rules that report them, marked `caution`."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from netbench.base.units import count
from netbench.read.cells import CellResult, Rows, rows_by_cell
from netbench.read.result import Result
from netbench.read.stack import Runs
from netbench.stats.by_boot import without_boots
from netbench.stats.intervals import Numbers

NAMED = 4
"""Things of one kind that a sentence names; the rest are counted."""


@dataclass(frozen=True)
class Caution:
    """`what` is a sentence, `where` cells, pairs or hosts, `evidence` the numbers, `remedy` what to
    do, `kind` one word; these two are those of its rule where they are not given.
    """

    kind: str = field(default="", kw_only=True)
    what: str
    where: tuple[str, ...] = ()
    evidence: str = ""
    remedy: str = ""


Cautions = Iterator[Caution]
Seen = dict[Any, list[Any]]
"""What a rule saw in the records: values by whatever they are of."""


class Evidence(NamedTuple):
    """What rules look at: a result, its cells with their intervals, and what the rule `saw`."""

    result: Result
    cells: Sequence[CellResult]
    saw: Seen

    def values(self, metric: str) -> Iterator[tuple[CellResult, Rows, Numbers]]:
        """Of each cell the rows of `result.ok` that have a metric, with their values, free of what
        boots differ by; none where the metric was not measured.
        """
        runs = self.result.ok
        column = runs[metric].to_numpy(dtype=float) if metric in runs else np.empty(0)
        rows, boots = rows_by_cell(runs) if len(column) else {}, runs["boot"].to_numpy()
        for cell in self.cells:
            places = rows.get(cell.place, np.empty(0, dtype=np.int64))
            if len(places := places[~np.isnan(column[places])]):
                yield cell, places, without_boots(column[places], boots[places])

    def label(self, cell: str, pair: str) -> str:
        """A cell's id, with its pair where there are several."""
        return cell if len(self.result.plan.pairs) == 1 else f"{cell} {pair}"

    def labels(self, places: Iterable[tuple[str, str]]) -> tuple[str, ...]:
        """The labels of (cell, pair)s, each once, in their order."""
        return tuple(dict.fromkeys(self.label(*place) for place in places))

    def labels_of(self, runs: pd.DataFrame) -> tuple[str, ...]:
        """The labels of the cells that some rows of the frame of runs are of."""
        return self.labels(zip(runs["cell"].astype(str), runs["pair"].astype(str), strict=True))

    def of_ok(self, runs: pd.DataFrame, what: str, more: str = "") -> Caution:
        """A caution of some of the ok runs."""
        evidence = f"{len(runs)} of {count(len(self.result.ok), 'ok run')}{more}"
        return Caution(what, self.labels_of(runs), evidence)


class Rule(NamedTuple):
    """When a caution is due. `name`: one word; that of its cautions, unless `kinds` says otherwise.
    `severity`: its place in a report, the gravest, with the highest number, first. `about`: one
    sentence, when it is reported and what that means. `remedy`: what a reader
    can do.

    `report` yields the cautions that are due. `observe` sees each record once before, and yields
    what of it `report` shall have as `evidence.saw`: keys, each with a value.
    """

    name: str
    severity: int
    about: str
    remedy: str
    kinds: tuple[str, ...]
    report: Callable[[Evidence], Cautions]
    observe: Callable[[Runs], Iterable[tuple[Any, Any]]] | None


_MARKED: list[Rule] = []


def caution(
    severity: int,
    *,
    remedy: str,
    kinds: tuple[str, ...] = (),
    observe: Callable[[Runs], Iterable[tuple[Any, Any]]] | None = None,
) -> Callable[[Callable[[Evidence], Cautions]], Callable[[Evidence], Cautions]]:
    """Mark a function as the `report` of a Rule of its name; its docstring is `about`."""

    def mark(report: Callable[[Evidence], Cautions]) -> Callable[[Evidence], Cautions]:
        about = " ".join((report.__doc__ or "").split())
        _MARKED.append(Rule(report.__name__, severity, about, remedy, kinds, report, observe))
        return report

    return mark


@cache
def rules() -> tuple[Rule, ...]:
    """Every rule there is, the gravest first."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        import_module(f"{__package__}.{module.name}")
    return tuple(sorted(_MARKED, key=lambda rule: -rule.severity))


def observe(seen: dict[str, Seen], runs: Runs) -> None:
    """Add what rules see in some records, by the rule's name."""
    for rule in rules():
        for key, value in rule.observe(runs) if rule.observe else ():
            seen.setdefault(rule.name, {}).setdefault(key, []).append(value)


def cautions(
    result: Result, cells: Sequence[CellResult], seen: Mapping[str, Seen]
) -> list[Caution]:
    """What all rules report, the gravest first."""
    return [
        replace(each, kind=each.kind or rule.name, remedy=each.remedy or rule.remedy)
        for rule in rules()
        for each in rule.report(Evidence(result, cells, seen.get(rule.name, {})))
    ]
