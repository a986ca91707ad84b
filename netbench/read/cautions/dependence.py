"""Converged cells whose runs are not independent."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from netbench.base.units import count, listed
from netbench.read.cautions.base import Caution, CautionRule, Evidence
from netbench.read.cells import rows_by_cell
from netbench.stats.boots import without_boots
from netbench.stats.series import instabilities

NAMED = 3


class Dependence(CautionRule):
    """Signs of drift or memory in cells that are precise nevertheless."""

    name = "dependence"
    severity = 160
    about = "Runs of a converged cell drift or follow each other."
    reads = "the metrics of `repeat`, of each converged cell in order of execution"
    shows = "the sign in each cell, with its test"
    remedy = "the interval is too narrow: run longer or warm up longer, or find what switches"

    def report(self, evidence: Evidence) -> Iterator[Caution]:
        runs = evidence.result.ok
        rows, boots = rows_by_cell(runs), runs["boot"].to_numpy()
        for metric in (m for m in evidence.result.repeat.metrics if m in runs):
            values = runs[metric].to_numpy(dtype=float)
            signs: list[tuple[str, str]] = []
            for c in evidence.cells:
                if c.status != "converged" or (c.cell, c.pair) not in rows:
                    continue
                mine = rows[c.cell, c.pair]
                mine = mine[~np.isnan(values[mine])]
                label = evidence.label(c.cell, c.pair)
                if len(mine):
                    of_cell = instabilities(without_boots(values[mine], boots[mine]))
                    signs += [(label, sign) for sign in of_cell]
            if signs:
                where = tuple(dict.fromkeys(label for label, _ in signs))
                yield self.caution(
                    f"The runs of {count(len(where), 'converged cell')} are not independent in"
                    f" {metric}.",
                    where,
                    listed([f"{label} {sign}" for label, sign in signs], NAMED),
                )
