"""Which profile runs a campaign still has to do, from its result folder alone."""

from __future__ import annotations

from netbench.plan.plan import Key, Plan
from netbench.result.store import Store
from netbench.run.ledger import LOST


def profiles_due(store: Store, plan: Plan) -> set[tuple[Key, int]]:
    """Units and rounds of the profile runs that are not done, once all measured runs are: of cells
    that have an ok run, on pairs that were not given up. A run that failed is not repeated. Errors:
    StoreError.
    """
    profile = plan.campaign.profile
    if profile is None:
        return set()
    # These import pandas, a quarter of what a campaign without profiles would take to start.
    from netbench.read.changed import changed
    from netbench.read.load import load

    result = load(store.path)
    measured = set(zip(result.ok["cell"].tolist(), result.ok["pair"].tolist(), strict=True))
    wanted = measured if profile.cells == "all" else measured & changed(result)
    done = {((record.cell, record.pair), record.round) for record in store.profile_runs()}
    lost = {
        pair
        for pair, reason in zip(result.failed["pair"], result.failed["reason"], strict=True)
        if reason.startswith(LOST)
    }
    known = {unit.key for unit in plan.units if unit.pair.name not in lost}
    return {(key, number) for key in wanted & known for number in range(profile.runs)} - done
