"""What a campaign's runs show so far, as its report would say it now. It reads the whole result,
and is done seldom.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from netbench.plan.plan import Key

if TYPE_CHECKING:  # it imports pandas, a quarter of what a campaign would take to start
    from netbench.stats.comparison import Comparison

FIRST_SECONDS = 4.0  # a campaign that is over by then has a report


class Findings:
    """Comparisons in the metrics of `repeat`, cautions, and the statuses of cells."""

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
