"""Runs far from the others of their cell. Outliers are named, never dropped."""

from __future__ import annotations

import numpy as np

from netbench.base.units import listed, said_of
from netbench.read.cautions.rule import CautionRule, Cautions, Evidence
from netbench.stats.series import outliers

NAMED = 4


class Outlier(CautionRule):
    """A run lies far from the median of its cell; it counts like all others."""

    name = "outlier"
    severity = 150
    reads = "the metrics of `repeat`, of each cell"
    shows = "each such run, its value and its distance from the median"
    remedy = "look at what else ran then (plot of runs in order); a quieter host or longer runs"

    def report(self, evidence: Evidence) -> Cautions:
        runs = evidence.result.ok
        for metric in evidence.result.repeat.metrics:
            apart: list[tuple[str, str]] = []
            for c, rows, within in evidence.values(metric):
                values, numbers = runs[metric].to_numpy(float)[rows], runs["run"].to_numpy()[rows]
                middle = float(np.median(values))
                for i in outliers(within):
                    off = values[i] / middle - 1 if middle else 0.0
                    text = f"run {numbers[i]}: {values[i]:.4g} ({off:+.1%} of the median)"
                    apart.append((evidence.label(c.cell, c.pair), text))
            if apart:
                lie = said_of(len(apart), "run", "lie")
                yield self.caution(
                    f"{lie} far from the other runs of the cell in {metric}, and"
                    f" {'counts' if len(apart) == 1 else 'count'} like all others.",
                    dict.fromkeys(label for label, _ in apart),
                    listed([text for _, text in apart], NAMED),
                )
