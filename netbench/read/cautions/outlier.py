"""Runs far from the others of their cell."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from netbench.base.units import listed, said_of
from netbench.read.cautions.base import Caution, CautionRule, Evidence
from netbench.read.cells import rows_by_cell
from netbench.stats.boots import without_boots
from netbench.stats.series import outliers

NAMED = 4


class Outlier(CautionRule):
    """Outliers are named, never dropped."""

    name = "outlier"
    severity = 150
    about = "A run lies far from the median of its cell; it counts like all others."
    reads = "the metrics of `repeat`, of each cell"
    shows = "each such run, its value and its distance from the median"
    remedy = "look at what else ran then (plot of runs in order); a quieter host or longer runs"

    def report(self, evidence: Evidence) -> Iterator[Caution]:
        runs = evidence.result.ok
        numbers, boots = runs["run"].to_numpy(), runs["boot"].to_numpy()
        rows = rows_by_cell(runs)
        for metric in (m for m in evidence.result.repeat.metrics if m in runs):
            values = runs[metric].to_numpy(dtype=float)
            apart: list[tuple[str, str]] = []
            for c in (c for c in evidence.cells if (c.cell, c.pair) in rows):
                mine = rows[c.cell, c.pair]
                mine = mine[~np.isnan(values[mine])]
                middle = float(np.median(values[mine])) if len(mine) else 0.0
                for i in outliers(without_boots(values[mine], boots[mine])):
                    value = values[mine[i]]
                    off = value / middle - 1 if middle else 0.0
                    text = f"run {numbers[mine[i]]}: {value:.4g} ({off:+.1%} of the median)"
                    apart.append((evidence.label(c.cell, c.pair), text))
            if apart:
                lie = said_of(len(apart), "run", "lie")
                yield self.caution(
                    f"{lie} far from the other runs of the cell in {metric}, and"
                    f" {'counts' if len(apart) == 1 else 'count'} like all others.",
                    dict.fromkeys(label for label, _ in apart),
                    listed([text for _, text in apart], NAMED),
                )
