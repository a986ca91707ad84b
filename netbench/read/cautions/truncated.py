"""A record that was cut."""

from __future__ import annotations

from collections.abc import Iterator

from netbench.read.cautions.base import Caution, CautionRule, Evidence


class Truncated(CautionRule):
    """The controller was killed while it wrote."""

    name = "truncated"
    severity = 240
    about = "The last line of records.jsonl is incomplete, so that its run is left out."
    reads = "whether records.jsonl ends with a newline"
    shows = "that one run is lost"
    remedy = "resume the campaign: it repeats the run"

    def report(self, evidence: Evidence) -> Iterator[Caution]:
        if evidence.result.truncated:
            what = (
                "The last line of records.jsonl is incomplete and is left out: the controller was"
                " killed while it wrote the line."
            )
            yield self.caution(what, evidence="one run is lost")
