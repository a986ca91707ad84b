"""A trend that all cells share."""

from __future__ import annotations

import numpy as np

from netbench.read.cautions.rule import CautionRule, Cautions, Evidence
from netbench.stats.series import ALPHA, FEWEST, drift

DRIFT_SIZE = 0.01  # of the mean, over the whole campaign: less does not matter


class Drift(CautionRule):
    """Each run over its cell's mean, against the order of execution. Blocks of one boot are not
    independent: where there are several boots they are the unit.
    """

    name = "drift"
    severity = 170
    about = f"All cells together rise or fall by {DRIFT_SIZE:.0%} or more over the campaign."
    reads = "the metrics of `repeat`, by block or by boot in order of execution"
    shows = "Kendall's tau over blocks or boots, and its p value"
    remedy = (
        "comparisons within blocks stand, means do not: warm the hosts up, fix clock speed and"
        " cooling, repeat"
    )

    def report(self, evidence: Evidence) -> Cautions:
        runs = evidence.result.ok
        unit = "boot" if len(evidence.result.kernels) > 1 else "block"
        for metric in (m for m in evidence.result.repeat.metrics if m in runs):
            means = runs.groupby(["cell", "pair"], observed=True)[metric].transform("mean")
            for pair, relative in (runs[metric] / means).groupby(runs["pair"], observed=True):
                if len(relative) < FEWEST:
                    continue
                units = relative.groupby(runs[unit]).mean().dropna()
                tau, p = drift(units.to_numpy(dtype=float))
                if len(units) < FEWEST or p >= ALPHA:
                    continue
                slope = float(np.polyfit(np.arange(len(units)), units, 1)[0])
                change = slope * (len(units) - 1)
                if abs(change) >= DRIFT_SIZE:
                    yield self.caution(
                        f"{metric} of all cells together {'rises' if tau > 0 else 'falls'} by"
                        f" {abs(change):.1%} over the campaign.",
                        (str(pair),),
                        f"{len(units)} {unit}s, Kendall's tau {tau:+.2f}, p {p:.1g}",
                    )
