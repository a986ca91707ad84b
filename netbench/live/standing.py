"""Where a campaign stands."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from netbench.plan.plan import Key, Plan, Unit
from netbench.read.shown_levels import shown
from netbench.run.ledger import Ledger
from netbench.stats.closing import most
from netbench.stats.intervals import Interval

if TYPE_CHECKING:  # it imports pandas, a quarter of what a campaign would take to start
    from netbench.stats.comparison import Comparison

RANK = "failed refused open unsupported interrupted unstable max converged".split()
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
FIRST_SECONDS = 4.0  # a campaign that is over by then has a report


class Findings:
    """What runs show so far, as the report would say it now: comparisons in the metrics of
    `repeat`, cautions, and the statuses of cells. It reads the whole result, and is done seldom.
    """

    def __init__(self, folder: Path, share: float) -> None:
        """`share`: of the time, that looking may take."""
        self.comparisons: tuple[Comparison, ...] = ()
        self.cautions: tuple[str, ...] = ()
        self.statuses: Mapping[Key, str] = {}
        self.seconds = 0.0
        """What the last look took."""
        self._folder, self._share = folder, share
        self._due = time.monotonic() + FIRST_SECONDS

    def look(self, at_once: bool = False) -> None:
        """Compute all of it anew where that is due. Errors: ReportError, StoreError."""
        begun = time.monotonic()
        if begun < self._due and not at_once:
            return
        import scipy.special  # noqa: F401  # once, which is no time of looking

        import netbench.report.source  # noqa: F401

        begun = time.monotonic()
        try:
            self._read()
        finally:
            now = time.monotonic()
            self.seconds = now - begun
            self._due = now + self.seconds / self._share

    def leave(self, why: str) -> None:
        """Show no more than `why`: what was found grows old."""
        self.comparisons, self.statuses, self.cautions = (), {}, (why,)
        self._due = math.inf

    def _read(self) -> None:
        from netbench.report.source import Source

        source = Source.of(self._folder)
        by_metric = source.comparisons
        metrics = source.result.repeat.metrics
        self.comparisons = tuple(c for name in metrics for c in by_metric.get(name, ()))
        self.cautions = tuple(f"{c.kind}: {c.what}" for c in source.cautions)
        self.statuses = {(c.cell, c.pair): c.status for c in source.cells}


class CellView(NamedTuple):
    """A cell on a pair: `runs` ok runs that count, `failed` ones, and its intervals by metric."""

    cell: str
    pair: str
    levels: tuple[str, ...]
    status: str
    runs: int
    failed: int
    intervals: Mapping[str, Interval]


@dataclass(frozen=True)
class Overview:
    """Where a campaign stands, as far as its ledger knows. `left`: estimated seconds, None where
    nothing is to come; `state`: of STATES; `log`: the last lines of it.
    """

    plan: Plan
    ledger: Ledger
    folder: Path
    findings: Findings
    left: float | None = None
    state: str = "running"
    log: tuple[str, ...] = ()

    @cached_property
    def factors(self) -> tuple[str, ...]:
        """What names a cell: the pair where there are several, and the factors."""
        campaign = self.plan.campaign
        names = dict.fromkeys(name for cell in campaign.cells for name in cell.factors)
        several = ("pair",) if len(campaign.pairs) > 1 else ()
        return (*several, *names) or ("cell",)

    @cached_property
    def cells(self) -> list[CellView]:
        """All but controls, in file order."""
        return [self._cell(unit) for unit in self.plan.units if not unit.cell.control]

    def _cell(self, unit: Unit) -> CellView:
        words = {"pair": unit.pair.name, "cell": unit.cell.id, **unit.cell.factors}
        tally, status = self.ledger.tally(unit.key), self.ledger.status(unit.key)
        if self.state != "running":
            status = self.findings.statuses.get(unit.key) or status
        elif self.ledger.finished and status == "open":  # where boots fix the number of runs
            status = "max"
        return CellView(
            *unit.key,
            tuple(shown(words.get(name, "")) for name in self.factors),
            status,
            tally.runs,
            self.ledger.failures[unit.key],
            self.ledger.assessment(unit.key).intervals if tally.runs else {},
        )

    @property
    def statuses(self) -> dict[str, int]:
        """How many cells have each."""
        counts = Counter(cell.status for cell in self.cells)
        return {status: counts[status] for status in RANK if counts[status]}

    @property
    def least(self) -> int:
        """Ok runs of all cells together; so is `most`."""
        return self.plan.repeat.min * len(self.cells)

    @property
    def most(self) -> int:
        return most(self.plan.repeat) * len(self.cells)

    @property
    def boot(self) -> str:
        """`boot 2 of 8: patched`; "" where hosts are left as they are."""
        boots = self.plan.all_boots()
        last = (self.plan.blocks or 1) - 1
        boot = self.plan.boot(min(self.ledger.block, last)) if boots else None
        if boot is None:
            return ""
        build = f", build {boot.build}" if boot.build else ""
        return f"boot {boot.number} of {len(boots)}: {boot.kernel or 'original kernel'}{build}"

    @property
    def last(self) -> str:
        """The last run."""
        last = self.ledger.last
        return f"run {last.run} at {last.started[11:19]} UTC" if last else ""
