"""Levels whose runs fail more often than those of the other levels. What is left of a level whose
slow runs fail looks fast.
"""

from __future__ import annotations

from netbench.read.cautions.rule import CautionRule, Cautions, Evidence
from netbench.stats.failures import failing_levels


class FailingLevels(CautionRule):
    """A level's runs fail more often than those of the other levels of its factor: what is left of
    them may be a choice of the fast ones.
    """

    name = "failing_level"
    severity = 225
    reads = "`status` of records, by the levels of factors (Fisher's exact test, Holm)"
    shows = "failed runs of the level and of the others, and p"
    remedy = (
        "see the reasons of the failed runs and log.txt, remove the cause and repeat; until then"
        " trust only verdicts that say `even if`"
    )

    def report(self, evidence: Evidence) -> Cautions:
        result = evidence.result
        for found in failing_levels(result.runs, result.factors):
            mine = result.failed[result.failed[found.factor] == found.level]
            yield self.caution(
                f"Runs of {found.factor}={found.level} fail more often than those of its other"
                " levels.",
                evidence.labels_of(mine),
                f"{found.failed} of {found.runs} against {found.others_failed} of"
                f" {found.others_runs}, p = {found.p:.2g}",
            )
