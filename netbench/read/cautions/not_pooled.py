"""Runs that are in no mean, since facts that must match have changed. One caution for each pair and
change of facts.
"""

from __future__ import annotations

from netbench.base.units import count, listed
from netbench.read.cautions.rule import CautionRule, Cautions, Evidence
from netbench.read.epochs import BETWEEN

NAMED = 4


class NotPooled(CautionRule):
    """Facts that must match changed, so that ok runs made before are excluded."""

    name = "not_pooled"
    kinds = ("facts",)
    severity = 120
    reads = "facts.json, and in which run or boot its entries begin (read/epochs.py)"
    shows = "the facts that differ, each with both values"
    remedy = (
        "the records are kept: to go on with them, restore these facts and resume; else run the"
        " campaign anew"
    )

    def report(self, evidence: Evidence) -> Cautions:
        runs = evidence.result.runs
        excluded = runs[runs["excluded"] != ""]
        for (pair, why), group in excluded.groupby(["pair", "excluded"], observed=True, sort=False):
            ok = int(((runs["status"] == "ok") & (runs["pair"] == pair)).sum())
            changes = str(why).split(BETWEEN)
            first, last = int(group["run"].min()), int(group["run"].max())
            yield self.caution(
                f"{len(group)} of {count(ok, 'ok run')} (between run {first} and run {last}) are"
                " excluded from all means, intervals and comparisons: these facts differed from"
                " those at the end of the campaign.",
                dict.fromkeys(change.partition(":")[0] for change in changes),
                listed(changes, NAMED),
                kind="facts",
            )
