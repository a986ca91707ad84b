"""Cells whose content could not be verified."""

from __future__ import annotations

from collections.abc import Iterator

from netbench.read.cautions.rule import Caution, CautionRule, Evidence
from netbench.read.stack import Runs


class Unverified(CautionRule):
    """The runs count: what arrived was counted, and not looked at."""

    name = "unverified"
    severity = 25
    about = "`verify` was asked for, and what arrived could not be read again."
    reads = "`unverified` of records"
    shows = "why"
    remedy = "a sink that keeps the data (discard, a file), or verify: off"

    def __init__(self) -> None:
        self.whys: dict[tuple[str, str], str] = {}

    def observe(self, runs: Runs) -> None:
        record = runs.record
        if record.unverified:
            self.whys[record.cell, record.pair] = record.unverified

    def report(self, evidence: Evidence) -> Iterator[Caution]:
        if self.whys:
            yield self.caution(
                "Whether what arrived is what was sent was not verified.",
                evidence.labels(self.whys),
                "; ".join(dict.fromkeys(self.whys.values())),
            )
