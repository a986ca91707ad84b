"""A record that was cut. The controller was killed while it wrote."""

from __future__ import annotations

from netbench.read.cautions.rule import CautionRule, Cautions, Evidence


class Truncated(CautionRule):
    """The last line of records.jsonl is incomplete, so that its run is left out."""

    name = "truncated"
    severity = 240
    reads = "whether records.jsonl ends with a newline"
    shows = "that one run is lost"
    remedy = "resume the campaign: it repeats the run"

    def report(self, evidence: Evidence) -> Cautions:
        if evidence.result.truncated:
            what = (
                "The last line of records.jsonl is incomplete and is left out: the controller was"
                " killed while it wrote the line."
            )
            yield self.caution(what, evidence="one run is lost")
