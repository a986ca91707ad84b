"""Runs that did not move what their rate offers."""

from __future__ import annotations

import numpy as np

from netbench.base.units import count, listed, said_of
from netbench.read.cautions.rule import CautionRule, Cautions, Evidence
from netbench.read.cells import rows_by_cell
from netbench.read.offered import BOTH, TOLERANCE, rate_of

NAMED = 4


class MissedRate(CautionRule):
    """One caution for all runs; those of a cell that misses its rate altogether are among them."""

    name = "rate"
    severity = 155
    about = (
        f"Runs moved over {TOLERANCE:.0%} less or more than their `rate` in the window of a side:"
        " their CPU is of another load."
    )
    reads = "`rate`, and the metrics `throughput` and `sent` of each ok run"
    shows = "each such run, and how far it is from its rate"
    remedy = (
        "find what stood still then (`top`, other guests); a rate that link and hosts carry; a"
        " window of a hundred chunks or more"
    )

    def report(self, evidence: Evidence) -> Cautions:
        result, runs = evidence.result, evidence.result.ok
        missed: dict[str, list[tuple[float, str]]] = {}
        rows, paced = rows_by_cell(runs), 0
        sides = [name for name in BOTH if name in runs]
        for c in evidence.cells if sides else ():
            rate, mine = rate_of(result, c.factors), rows.get((c.cell, c.pair))
            if rate is None or mine is None:
                continue
            paced += len(mine)
            off = np.nan_to_num(runs[sides].to_numpy(dtype=float)[mine] * 1e9 / rate - 1)
            worst = off[np.arange(len(mine)), np.abs(off).argmax(axis=1)]
            for run, by in zip(runs["run"].to_numpy()[mine], worst, strict=True):
                if abs(by) > TOLERANCE:
                    label = evidence.label(c.cell, c.pair)
                    missed.setdefault(label, []).append((abs(by), f"run {run}: {by:+.1%}"))
        if missed:
            told = sorted((each for of_cell in missed.values() for each in of_cell), reverse=True)
            yield self.caution(
                f"{said_of(len(told), 'run', 'missed')} the rate by over {TOLERANCE:.0%}, and"
                f" {'counts' if len(told) == 1 else 'count'} like all others.",
                missed,
                f"of {count(paced, 'run')} at a rate; {listed([each for _, each in told], NAMED)}",
            )
