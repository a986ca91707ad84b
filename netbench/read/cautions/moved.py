"""What the kernel changed together with settings: a caution for all that moved in one cell."""

from __future__ import annotations

from netbench.base.units import count, listed
from netbench.read.cautions.rule import CautionRule, Cautions, Evidence

NAMED = 4


class Moved(CautionRule):
    """The kernel changed something else together with a setting."""

    name = "moved"
    severity = 50
    reads = "`settings.moved` of records"
    shows = "the number of cells"
    remedy = "a difference between such levels includes everything that moved"

    def report(self, evidence: Evidence) -> Cautions:
        places: dict[str, set[str]] = {}
        for cell, pair, change in evidence.result.moved:
            places.setdefault(change, set()).add(evidence.label(cell, pair))
        together: dict[tuple[str, ...], list[str]] = {}
        for change, where in places.items():
            together.setdefault(tuple(sorted(where)), []).append(change)
        for cells, changes in together.items():
            yield self.caution(
                f"Something else moved with a setting: {listed(sorted(changes), NAMED, ', ')}.",
                cells,
                f"in {count(len(cells), 'cell')}; the table of what else moved has them all",
            )
