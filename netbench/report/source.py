"""What sections are made from: a result folder after analysis, computed once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from netbench.read import offered
from netbench.read.cautions.rule import Caution, Seen, cautions, observe
from netbench.read.cells import CellResult, cells_of, rows_by_cell
from netbench.read.compare import in_result
from netbench.read.control import controls, in_places_of, marked
from netbench.read.grounds import grounded, with_processes
from netbench.read.histograms import by_second
from netbench.read.load import load
from netbench.read.load_curves import LoadCurve, load_curves
from netbench.read.metrics import METRICS
from netbench.read.profiles import CellProfile, ProfileDifference, Profiles, difference, profiles_of
from netbench.read.result import Result
from netbench.read.shown_levels import shown, used
from netbench.report.blocks import Value, keyed
from netbench.report.phrases import answering
from netbench.stats.comparison import Comparison

if TYPE_CHECKING:
    from netbench.fleet.differing_facts import Known
    from netbench.fleet.host_effects import Fleet

ADD_ON = "netbench.fleet.section"
"""Which reports campaigns of many pairs; named, since it takes a Source."""
MOST_CELLS = 60
"""Cells times pairs: beyond, only the factor of `compare` is compared without being asked."""


@dataclass(frozen=True)
class Source:
    """A result with everything that is computed from it on demand."""

    result: Result
    seen: Mapping[str, Seen] = field(default_factory=dict)  # by cautions, in the records
    with_cells: bool = False  # tables of cells, of a fleet, too

    @staticmethod
    def of(path: Path | str) -> Source:
        """Read a result folder. Errors: as read.load.load."""
        seen: dict[str, Seen] = {}
        return Source(load(path, partial(observe, seen)), seen)

    @cached_property
    def cells(self) -> list[CellResult]:
        return cells_of(self.result)

    @cached_property
    def at(self) -> dict[tuple[str, str], CellResult]:
        """The cells by (cell, pair)."""
        return {(cell.cell, cell.pair): cell for cell in self.cells}

    @cached_property
    def cautions(self) -> list[Caution]:
        return cautions(self.result, self.cells, self.seen)

    def doubts(self, cells: Iterable[CellResult]) -> tuple[int, ...]:
        """The numbers of the cautions that are of these cells, their pairs or hosts, or of all."""
        names = ((c.cell, f"{c.cell} {c.pair}", c.pair, *c.pair.split(">")) for c in cells)
        asked = set(chain.from_iterable(names))
        every = enumerate(self.cautions, 1)
        return tuple(n for n, each in every if not each.where or asked & {*each.where})

    @cached_property
    def apart(self) -> set[str]:
        """The factors in which what the campaign compares lies apart."""
        every = [used(c.context) for family in self.answers.values() for c in family]
        names = {name for context in every for name in context}
        return {name for name in names if len({context.get(name) for context in every}) > 1}

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that tables show.

        Transactions and their latency, throughput, then CPU and demand of the sides, or of the
        system where no pair can tell the sides apart; then what else `repeat.metrics` asks for, and
        what tools print.
        """
        shared = set(self.result.shared.values())
        who = ["system"] if True in shared else []
        who += ["sender", "receiver"] if shared != {True} else []
        names = ["transactions", "latency", "p50", "p99", "p99.9", "throughput", "steps"]
        names += [f"{w}_{of}" for of in ("cpu", "demand", "request_demand") for w in who]
        printed = [name for name in self.result.units if name not in METRICS]
        chosen = dict.fromkeys((*names, *self.result.repeat.metrics, *printed))
        return tuple(name for name in chosen if name in self.result.metrics)

    @cached_property
    def load_curves(self) -> list[LoadCurve]:
        return load_curves(self.result, self.cells)

    @property
    def offered(self) -> str:
        """What a rate did to throughput: one sentence, or ""."""
        return offered.told(self.result, self.cells)

    @cached_property
    def comparisons(self) -> Mapping[str, list[Comparison]]:
        """By metric, the comparisons that the campaign asked for; empty without `compare`. Where a
        rate fixes throughput, it is not compared.
        """
        asked = self.result.compare
        if asked is None or asked.factor not in self.result.swept:
            return {}

        def compare(name: str) -> list[Comparison]:
            return self.compare(asked.factor, asked.baseline, name, asked.margin, free=True)

        # of an open loop the rate fixes transactions
        fixed = ("transactions",) if "lateness" in self.result.metrics else ()
        names = (name for name in self.metrics if name not in fixed)
        return with_processes(self.result, {name: compare(name) for name in names}, compare)

    @cached_property
    def answers(self) -> Mapping[str, list[Comparison]]:
        """The comparisons in those metrics that answer the question."""
        names = answering(self.comparisons, self.result.repeat.metrics, self.offered)
        return {name: self.comparisons[name] for name in names}

    def repeats_cpu(self, metric: str) -> bool:
        """Whether a demand that nobody asked for says what CPU says, as a rate fixes throughput."""
        fixed = bool(self.offered) and offered.METRIC not in self.comparisons
        return fixed and "_demand" in metric and metric not in self.result.repeat.metrics

    @cached_property
    def other_answers(self) -> Mapping[str, Mapping[str, list[Comparison]]]:
        """By factor that `compare` does not name, and metric that answers: its levels against the
        first of them. Those that can be compared, in a campaign of few cells with `compare`.
        """
        result = self.result
        if len(result.cells) * len(result.plan.pairs) > MOST_CELLS or result.compare is None:
            return {}
        by_factor: dict[str, Mapping[str, list[Comparison]]] = {}
        for factor in (name for name in result.swept if name != result.compare.factor):
            levels = [str(level) for level in result.runs[factor].cat.categories]
            families = {
                name: [c for c in self.compare(factor, levels[0], name, free=True) if c.ratio > 0]
                for name in self.answers
                if len(levels) > 1
            }
            if answers := {name: family for name, family in families.items() if family}:
                by_factor[factor] = answers
        return by_factor

    @cached_property
    def by_second(self) -> list[tuple[CellResult, list[list[float]]]]:
        """The cells whose runs have requests in several seconds, and of each second the p99 of each
        run that has one. Errors: StoreError.
        """
        if "p99" not in self.result.metrics:
            return []
        rows = rows_by_cell(self.result.ok)
        asked = [cell for cell in self.cells if "p99" in cell.intervals]
        by_cell = [(cell, by_second(self.result, rows[cell.place])) for cell in asked]
        return [(cell, seconds) for cell, seconds in by_cell if any(seconds[1:])]

    @property
    def several(self) -> bool:
        """Whether there are several pairs of hosts, so that a row or sentence says its own."""
        return len(self.result.plan.pairs) > 1

    @property
    def add_on(self) -> ModuleType:
        """What tells a fleet: its sentences, JSON, and drawing."""
        return import_module(ADD_ON)

    @cached_property
    def fleets(self) -> Mapping[str, list[Fleet]]:
        """By metric, the hosts of a campaign with many pairs: an entry a cell. Throughput that a
        rate fixes everywhere is left out.
        """
        if not self.result.is_fleet:
            return {}
        from netbench.fleet.host_effects import fleets_of, metrics_of

        names = metrics_of(self.result)
        if not offered.free(self.result, self.cells):
            names = [name for name in names if name != offered.METRIC] or names
        by_metric = {name: fleets_of(self.result, name) for name in names}
        return {name: each for name, each in by_metric.items() if each}

    @cached_property
    def fleet_facts(self) -> Known:
        """The facts in which hosts of a fleet differ; none where there are few pairs."""
        if not self.fleets:
            return {}
        from netbench.fleet.host_effects import facts_that_differ

        return facts_that_differ(self.result)

    def compare(
        self,
        factor: str,
        baseline: str,
        metric: str,
        margin: float | None = None,
        free: bool = False,
    ) -> list[Comparison]:
        """Each level of a factor against the baseline in one metric, marked where the control shows
        as much; free: throughput only where no rate fixes it, and contexts that have the metric.
        Errors: KeyError for what is not there.
        """
        result = self.result
        runs = result.ok
        if (
            free
            and metric == offered.METRIC
            and (fixed := offered.fixed(result, self.cells, factor))
        ):
            places = zip(runs["cell"], runs["pair"], strict=True)
            runs = runs.loc[[place not in fixed for place in places]]  # of none, no rows
        family = in_result(result, metric, factor, baseline, margin, runs, not free)
        return [self._grounded(c) for c in marked(family, self.controls(family))]

    def _grounded(self, c: Comparison) -> Comparison:
        cell, base = (self.cell_of(c, level) for level in (c.level, c.baseline))
        result = self.result
        return grounded(c, (result, cell), (result, base)) if cell and base else c

    def cell_of(self, c: Comparison, level: str) -> CellResult | None:
        """The cell of a comparison that has a level of its factor, where there is one."""
        levels = self.result.levels({**c.context, c.factor: level})
        return self._by_levels.get((c.pair, *levels))

    @cached_property
    def _by_levels(self) -> dict[tuple[str, ...], CellResult]:
        return {(c.pair, *self.result.levels(c.factors)): c for c in self.cells}

    def controls(self, family: Sequence[Comparison]) -> list[Comparison]:
        """The controls beside a family of one metric: none where the campaign has none, or compares
        another factor, or with another baseline.
        """
        asked = self.result.compare
        if asked is None or not family or not asked.control:
            return []
        metric = family[0].metric
        if (family[0].factor, family[0].baseline) != (asked.factor, asked.baseline):
            return []
        if metric not in self._controls:
            self._controls[metric] = controls(self.result, metric)
        return in_places_of(family, self._controls[metric])

    @cached_property
    def _controls(self) -> dict[str, list[Comparison]]:
        """By metric."""
        return {}

    @cached_property
    def profiles(self) -> Profiles:
        """The profiles, cells in the plan's order."""
        every = profiles_of(self.result.path)
        order = {cell.cell: at for at, cell in enumerate(self.result.cells)}
        known = (cell for cell in every.cells if cell.cell in order)
        return every._replace(cells=sorted(known, key=lambda cell: (order[cell.cell], cell.side)))

    @cached_property
    def profile_differences(self) -> list[ProfileDifference]:
        """Each profile against that of its baseline; none without `compare`."""
        asked = self.result.compare
        return self.profile_changes(asked.factor, asked.baseline) if asked else []

    def profile_changes(self, factor: str, baseline: str) -> list[ProfileDifference]:
        """Each profile against that of the cell that differs from it by one factor's level."""

        def context(cell: CellProfile) -> tuple[str, ...]:
            others = (cell.factors.get(n, "") for n in self.result.swept if n != factor)
            return (cell.pair, cell.side, cell.unit, *others)

        cells = self.profiles.cells
        bases = {context(cell): cell for cell in cells if cell.factors.get(factor) == baseline}
        return [
            difference(bases[context(cell)], cell, self.result.repeat.confidence)
            for cell in cells
            if cell.factors.get(factor, baseline) != baseline and context(cell) in bases
        ]

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that name a cell in a table.

        Pair where there are several, and the factors; `cell` where nothing is swept.
        """
        pair = ("pair",) if self.several else ()
        return (*pair, *self.result.factors) or ("cell",)

    def keyed(self, cell: CellResult) -> dict[Any, Value]:
        """The same as the first columns of a cell's row."""
        return keyed(self.keys, *self.key(cell))

    def key_without(self, cell: CellResult, name: str) -> str:
        """The words of a cell's key but that of one factor; "" where there is no other."""
        words = zip(self.keys, self.key(cell), strict=True)
        return " · ".join(word for each, word in words if each not in (name, "cell"))

    def key(self, cell: CellResult) -> tuple[str, ...]:
        """The words of `keys` for one cell."""
        words = {"pair": cell.pair, "cell": cell.cell, **used(cell.factors)}
        return tuple(shown(words.get(name, "")) for name in self.keys)
