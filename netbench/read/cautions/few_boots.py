"""Too few boots, or boots that were not asked for."""

from __future__ import annotations

from collections.abc import Sequence

from netbench.base.units import count
from netbench.read.cautions.rule import CautionRule, Cautions, Evidence
from netbench.stats.by_boot import ENOUGH, KERNEL, half_width


class Boots(CautionRule):
    """What lies between boots is in no interval over runs of one boot."""

    name = "boots"
    severity = 130
    about = f"Each kernel was booted fewer than {ENOUGH} times, or a host was rebooted in between."
    reads = "boot ids, the factor `kernel`, repeat.boots"
    shows = "how wide an interval over so many boots is"
    remedy = f"repeat.boots: {ENOUGH} or more"

    def report(self, evidence: Evidence) -> Cautions:
        result = evidence.result
        if KERNEL in result.factors and result.repeat.boots == 1:
            yield self.caution(
                "Each kernel was booted once. Any two boots of one kernel differ too, so a"
                " difference between kernels cannot be told from that.",
                (),
                "one boot has no interval",
                remedy=f"{self.remedy}; the intervals here are over runs of one boot each",
            )
        places: dict[int, list[tuple[str, str]]] = {}
        for c in evidence.cells:
            if c.unit == "boot" and c.intervals:
                most = max(interval.n for interval in c.intervals.values())
                places.setdefault(most, []).append((c.cell, c.pair))
        for boots, where in sorted(places.items()):
            yield from self._of_cells(evidence, boots, where)

    def _of_cells(
        self, evidence: Evidence, boots: int, places: Sequence[tuple[str, str]]
    ) -> Cautions:
        """The caution of cells that were run in so many boots, if one is due."""
        cells = f"{count(len(places), 'cell')} {'was' if len(places) == 1 else 'were'}"
        if not evidence.result.in_boots:
            yield self.caution(
                f"{cells} run in {boots} boots that the campaign did not ask for: the means are"
                " over boots, no precision closes a cell, and comparisons have no verdict.",
                evidence.labels(places),
                "boot ids",
                remedy=f"run the campaign anew without a reboot, or with repeat.boots: {ENOUGH}",
            )
        elif boots < ENOUGH:
            width = half_width(boots, evidence.result.repeat.confidence)
            yield self.caution(
                f"{cells} run in {count(boots, 'boot')}, which proves little.",
                evidence.labels(places),
                "one boot has no interval"
                if boots == 1
                else f"an interval over {boots} boots is ±{width:.1f} standard deviations of a"
                " boot's mean",
            )
