"""Cuts of the management link."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from netbench.base.units import count
from netbench.read.cautions.rule import Caution, CautionRule, Evidence
from netbench.read.stack import Runs


class Cut(CautionRule):
    """The run goes on meanwhile, and counts."""

    name = "cut"
    severity = 40
    about = "The controller lost its connection to a worker for a while during a run."
    reads = "`cut` of records: seconds by side"
    shows = "the longest cut"
    remedy = (
        "look at the management link to the hosts; where data shares it, compare these runs with"
        " the others"
    )

    def __init__(self) -> None:
        self.runs: dict[tuple[str, str], int] = {}
        self.longest = 0.0  # seconds

    def observe(self, runs: Runs) -> None:
        cut = runs.record.cut
        if cut:
            place = runs.record.cell, runs.record.pair
            self.runs[place] = self.runs.get(place, 0) + len(runs)
            self.longest = max(self.longest, *(float(np.max(each)) for each in cut.values()))

    def report(self, evidence: Evidence) -> Iterator[Caution]:
        if self.runs:
            yield self.caution(
                "The controller lost its connection to a worker for a while in"
                f" {count(sum(self.runs.values()), 'run')}. The data went on, and these runs"
                " count.",
                evidence.labels(self.runs),
                f"for {self.longest:.3g} s at most; `cut` in records.jsonl says in which runs",
            )
