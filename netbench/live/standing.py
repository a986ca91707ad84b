"""Where a campaign stands: frozen values, computed from its ledger, that a screen or a program
shows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from netbench.model import Repeat
from netbench.plan.plan import Key, Plan, Unit
from netbench.read.metrics import METRICS
from netbench.read.shown_levels import shown
from netbench.run.ledger import Bad, Ledger
from netbench.stats.closing import most, reached
from netbench.stats.intervals import Interval

if TYPE_CHECKING:  # it imports pandas, which only a comparison needs
    from netbench.stats.comparison import Comparison

RANK = (
    *("failed", "refused", "open", "unsupported", "interrupted", "unstable", "max", "converged"),
)
"""Statuses of cells: those that somebody may have to act on first."""
STATES = {
    "running": "running",
    "done": "done",
    "limit": "its limit is reached",
    "interrupted": "interrupted",
    "lost": "ended: a host was lost",
    "dead": "no controller",
}
"""What a campaign does, as far as its files and its lock tell."""


@dataclass(frozen=True)
class CellView:
    """One cell on one pair: `runs` ok runs that count, `failed` ones, and its intervals by metric,
    as the closing rule sees them.
    """

    cell: str
    pair: str
    levels: tuple[str, ...]
    status: str
    runs: int
    failed: int
    intervals: Mapping[str, Interval]


@dataclass(frozen=True)
class Overview:
    """Where a campaign stands. `cells` are those that there is room for; `hidden` counts the others
    by status, `statuses` all. `repeat` says which metrics, and how precise. `runs`: records by
    status; `least`, `most` ok runs of all cells together. `left`: estimated seconds, None where
    nothing is to come. `recent`: throughput of the last runs, in Gb/s. `bad`: the last runs that
    are not ok. `cautions`, `log`: lines.
    """

    name: str
    folder: str
    factors: tuple[str, ...]
    repeat: Repeat
    compared: str
    cells: tuple[CellView, ...]
    hidden: Mapping[str, int]
    statuses: Mapping[str, int]
    runs: Mapping[str, int]
    least: int
    most: int
    block: int
    boot: str
    last: str
    recent: tuple[float, ...]
    bad: tuple[Bad, ...] = ()
    state: str = "running"
    left: float | None = None
    comparisons: tuple[Comparison, ...] = ()
    cautions: tuple[str, ...] = ()
    log: tuple[str, ...] = ()
    note: str = ""

    def reached(self, metric: str, interval: Interval) -> bool:
        """Whether an interval is as narrow as the campaign asks."""
        return reached(metric, interval, self.repeat)

    def to_json(self) -> dict[str, Any]:
        """What `watch --json` prints: NaN is null."""
        return {
            "name": self.name,
            "folder": self.folder,
            "state": self.state,
            "runs": {**self.runs, "least": self.least, "most": self.most},
            "statuses": dict(self.statuses),
            "block": self.block,
            "boot": self.boot,
            "seconds_left": None if self.left is None else round(self.left, 1),
            "precision": self.repeat.precision,
            "until": self.repeat.until,
            "cells": [_cell_json(self, each) for each in self.cells],
            "comparisons": [_comparison_json(each) for each in self.comparisons],
            "bad": [each._asdict() for each in self.bad],
            "cautions": list(self.cautions),
            "last": self.last,
            "throughput": list(self.recent),
            "log": list(self.log),
        }


def overview(
    plan: Plan,
    ledger: Ledger,
    folder: Path,
    room: int | None = None,
    statuses: Mapping[Key, str] = MappingProxyType({}),
) -> Overview:
    """Where a campaign stands, as far as a ledger knows. room: how many cells are wanted, None:
    all; others are counted, and cost next to nothing. statuses: of cells, as reports have them.
    """
    units = [unit for unit in plan.units if not unit.cell.control]
    ended = ledger.finished
    told = [statuses.get(unit.key) or _status(ledger.status(unit.key), ended) for unit in units]
    counts = Counter(told)
    titles = _titles(plan)
    views = tuple(_view(ledger, units[i], told[i], titles) for i in chosen(told, room))
    asked, trail, last = plan.campaign.compare, ledger.trail, ledger.trail.last
    return Overview(
        name=plan.campaign.name,
        folder=str(folder),
        factors=titles,
        repeat=plan.repeat,
        compared=f"{asked.factor}, against {shown(asked.baseline)}" if asked else "",
        cells=views,
        hidden=_ranked(counts - Counter(view.status for view in views)),
        statuses=_ranked(counts),
        runs=dict(trail.counts),
        least=plan.repeat.min * len(units),
        most=most(plan.repeat) * len(units),
        block=ledger.block,
        boot=_boot(plan, ledger),
        last=f"run {last.run} at {last.started[11:19]} UTC" if last else "",
        recent=tuple(trail.recent),
        bad=tuple(trail.bad),
    )


def _status(status: str, ended: bool) -> str:
    """Where boots fix the number of runs, cells stay open until the last of them."""
    return "max" if ended and status == "open" else status


def chosen(statuses: Sequence[str], room: int | None) -> list[int]:
    """Places of the cells to show, in file order: first those that somebody may have to act on."""
    places = range(len(statuses))
    if room is None or len(statuses) <= room:
        return list(places)
    ranked = sorted(places, key=lambda i: RANK.index(statuses[i]) if statuses[i] in RANK else 0)
    return sorted(ranked[:room])


def _ranked(counts: Mapping[str, int]) -> dict[str, int]:
    return {status: counts[status] for status in RANK if counts.get(status)}


def _titles(plan: Plan) -> tuple[str, ...]:
    """What names a cell: the pair where there are several, and the factors."""
    names = dict.fromkeys(name for cell in plan.campaign.cells for name in cell.factors)
    several = ("pair",) if len(plan.campaign.pairs) > 1 else ()
    return (*several, *names) or ("cell",)


def _view(ledger: Ledger, unit: Unit, status: str, titles: Sequence[str]) -> CellView:
    words = {"pair": unit.pair.name, "cell": unit.cell.id, **unit.cell.factors}
    tally = ledger.tally(unit.key)
    return CellView(
        *unit.key,
        tuple(shown(words.get(name, "")) for name in titles),
        status,
        tally.runs,
        len(ledger.trail.failures(unit.key)),
        ledger.assessment(unit.key).intervals if tally.runs else {},
    )


def _boot(plan: Plan, ledger: Ledger) -> str:
    """`boot 2 of 8: patched`; "" where hosts are left as they are."""
    boots = plan.all_boots()
    boot = plan.boot(min(ledger.block, (plan.blocks or 1) - 1)) if boots else None
    if boot is None:
        return ""
    build = f", build {boot.build}" if boot.build else ""
    return f"boot {boot.number} of {len(boots)}: {boot.kernel or 'original kernel'}{build}"


def unit_of(metric: str) -> str:
    """The unit of a metric; "" of one that a tool prints."""
    known = METRICS.get(metric.partition(".")[0])
    return known.unit if known else ""


def in_words(counts: Mapping[str, int]) -> str:
    """`2 open, 1 converged`."""
    return ", ".join(f"{n} {status}" for status, n in counts.items())


def _finite(numbers: Iterable[float]) -> list[float | None]:
    return [number if math.isfinite(number) else None for number in numbers]


def _cell_json(view: Overview, cell: CellView) -> dict[str, Any]:
    metrics = {}
    for name, interval in cell.intervals.items():
        numbers = (interval.mean, interval.low, interval.high, interval.precision)
        mean, low, high, precision = _finite(numbers)
        metrics[name] = {
            **{"unit": unit_of(name), "n": interval.n, "mean": mean, "low": low, "high": high},
            **{"precision": precision, "reached": view.reached(name, interval)},
        }
    return {
        **{"cell": cell.cell, "pair": cell.pair, "status": cell.status, "runs": cell.runs},
        **{"failed": cell.failed, "metrics": metrics},
    }


def _comparison_json(c: Comparison) -> dict[str, Any]:
    ratio, low, high = _finite((c.ratio, c.low, c.high))
    return {
        **{"factor": c.factor, "level": c.level, "baseline": c.baseline, "pair": c.pair},
        **{"context": dict(c.context), "metric": c.metric, "n": c.n, "unit": c.unit},
        **{"ratio": ratio, "low": low, "high": high, "verdict": c.verdict, "why": c.why},
        "sentence": c.sentence,
    }
