"""Runs that have no numbers. One caution for each status and reason."""

from __future__ import annotations

import pandas as pd

from netbench.base.units import count, said_of
from netbench.read.cautions.rule import CautionRule, Cautions, Evidence

REMEDIES = {
    "failed": "see the reason and log.txt, remove the cause and repeat the campaign",
    "refused": "choose a level that the host accepts, or exclude the cell",
    "unsupported": "exclude the cell, or use a host that can run it (`netbench check` says why)",
    "interrupted": "resume the campaign",
}


class BadRuns(CautionRule):
    """Runs failed, were refused, unsupported or interrupted, and count in no number."""

    name = "bad_runs"
    kinds = tuple(REMEDIES)
    severity = 220
    reads = "`status` and `reason` of records"
    shows = "the number of all runs"
    remedy = "; ".join(f"{status}: {remedy}" for status, remedy in REMEDIES.items())

    def report(self, evidence: Evidence) -> Cautions:
        runs = pd.concat([evidence.result.runs, evidence.result.control_runs])
        bad = runs[runs["status"] != "ok"]
        first_lines = [str(reason).partition("\n")[0] for reason in bad["reason"]]
        # what follows is a console's output, which differs from run to run
        groups = bad.assign(reason=first_lines).groupby(
            ["status", "reason"], observed=True, sort=True
        )
        for (status, reason), group in groups:
            what = said_of(len(group), "run", "failed" if status == "failed" else f"were {status}")
            yield self.caution(
                f"{what}: {reason or 'no reason was recorded'}.",
                evidence.labels_of(group),
                f"of {count(len(runs), 'run')}",
                remedy=REMEDIES[str(status)],
                kind=str(status),
            )
