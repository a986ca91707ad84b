"""Whether a stored result may be gone on with: this account began it, and its campaign and plan are
those that it began with.
"""

from __future__ import annotations

from dataclasses import replace

from netbench.base.errors import StoreError
from netbench.base.units import listed
from netbench.model import Campaign
from netbench.plan.plan import Plan
from netbench.plan.plan_json import plan_json
from netbench.result import codec
from netbench.result.files import PlanFile
from netbench.result.store import Store
from netbench.run.ledger import LOST
from netbench.run.progress import Progress

SHOWN = 8  # pairs or hosts that a line names


def refuse_another(store: Store, plan: Plan) -> None:
    """Refuse a result whose campaign or plan are not those that it was begun with, one that this
    account did not begin, and one that was merged. Errors: StoreError; RequestError.
    """
    if parts := [part for part in store.plan().parts if part.ended != "done"]:
        names = ", ".join(f"{part.number}/{part.of} ({part.result or 'none'})" for part in parts)
        raise StoreError(
            f"{store.path} was merged from parts, and is not gone on with: `resume` those that are"
            f" not finished, {names}, and merge all of them again"
        )
    store.refuse_changed()
    _refuse_another_plan(store, plan)


def without_given_up(campaign: Campaign, store: Store, progress: Progress) -> Campaign:
    """What of a campaign is gone on with: the pairs that were not given up, and their hosts. Where
    every pair was, all of it. Errors: StoreError.
    """
    lost = {
        record.pair
        for record in store.records(having=f'"{LOST}'.encode())
        if record.status == "failed" and record.reason.startswith(LOST)
    }
    pairs = tuple(pair for pair in campaign.pairs if pair.name not in lost)
    if not lost or not pairs:
        return campaign
    there = replace(campaign, pairs=pairs)
    there = replace(there, hosts={name: campaign.hosts[name] for name in there.roles})
    left_out = [host for host in campaign.hosts if host not in there.hosts]
    line = f"given up before, and left out: {listed(sorted(lost), SHOWN, ', ')}"
    if left_out:
        line += f"; not connected to: {listed(left_out, SHOWN, ', ')}"
    if changed := [host for host in left_out if store.journal.outstanding(host)]:
        line += (
            f"; `restore {store.path}` puts back what is left changed on"
            f" {listed(changed, SHOWN, ', ')}"
        )
    store.note(line)
    progress.say(line)
    return there


def _refuse_another_plan(store: Store, plan: Plan) -> None:
    planned = codec.of_json(PlanFile, plan_json(plan))
    stored = store.plan()
    names = ["cells", "pairs", "seed", "boots", "repeat", "compare", "part"]
    if stored.rounds == planned.rounds or len(planned.pairs) == 1:
        names.append("order")  # else hosts were found to share kernels, which the order follows
    for name in names:
        if getattr(stored, name) != getattr(planned, name):
            raise StoreError(
                f"{store.path}: campaign.yaml no longer matches plan.json: `{name}` differs;"
                " restore campaign.yaml, or run the changed campaign as a new one"
            )
