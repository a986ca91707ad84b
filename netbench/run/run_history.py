"""The history of a campaign's runs: what its result folder knows, read back and added to."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from netbench.base.errors import StoreError
from netbench.base.names import shell_word
from netbench.base.units import listed
from netbench.engine.catalogue import Row
from netbench.model import Campaign
from netbench.plan.plan import Key, Plan
from netbench.plan.plan_json import plan_json
from netbench.read.accounts import accounts_of
from netbench.result import codec
from netbench.result.codec import unreadable
from netbench.result.files import EngineRow, Hosts, PlanFile
from netbench.result.store import Store
from netbench.run.ledger import LOST, Ledger
from netbench.run.progress import Progress


def described(rows: Iterable[Row]) -> list[EngineRow]:
    """Descriptors as plan.json keeps them: what is needed to read the records."""
    kinds = ("send", "receive", "meter", "counter", "proof")
    return [
        EngineRow(
            row.kind, row.name, row.owner, row.unit, row.per, tuple(sorted(row.flags)), row.about
        )
        for row in rows
        if row.kind in kinds
    ]


def finished(path: Path, campaign: Campaign) -> Ledger | None:
    """The ledger of a result in which every cell is closed, from its records alone."""
    from netbench.engine.own_engine import local

    store = Store.open(path)
    if not store.stored_facts():
        return None
    plan = Plan(campaign)
    ledger = replayed(store, plan, described(local().rows))
    return ledger if ledger.finished and not profiles_due(store, plan) else None


def replayed(store: Store, plan: Plan, rows: Iterable[EngineRow]) -> Ledger:
    """The ledger where the records end, beyond blocks with nothing to run. Errors: as replay."""
    ledger = new_ledger(plan, store.stored_facts(), rows)
    replay(store, ledger)
    while not ledger.finished and not plan.wanted(ledger.block, ledger.is_open, ledger.done):
        ledger.next_block()
    return ledger


def new_ledger(plan: Plan, hosts: Hosts, rows: Iterable[EngineRow]) -> Ledger:
    """A ledger without records. `hosts`: facts.json; `rows`: those of plan.json."""
    ticks = {name: entries[-1].clock_ticks for name, entries in hosts.items()}
    ids = {name: entries[-1].boot_id for name, entries in hosts.items()}
    shared = {  # a merged result may lack hosts
        pair.name: ids.get(pair.sender, "") == ids.get(pair.receiver)
        for pair in plan.campaign.pairs
    }
    return Ledger(plan, ticks, shared, accounts_of(rows), hosts)


def replay(store: Store, ledger: Ledger) -> None:
    """Bring the ledger to where the records end. Errors: StoreError for a record of no netbench."""
    for number, record in enumerate(store.records(), 1):
        if not ledger.is_possible(record.block, number):
            # The ledger would walk through all blocks between.
            raise unreadable(
                f"{store.path / 'records.jsonl'}:{number}",
                f"block {record.block} is out of order in record {number}",
            )
        ledger.add(record)


def profiles_due(store: Store, plan: Plan) -> set[tuple[Key, int]]:
    """Units and rounds of the profile runs that are not done, once all measured runs are: of cells
    that have an ok run, on pairs that were not given up. A run that failed is not repeated. Errors:
    StoreError.
    """
    profile = plan.campaign.profile
    if profile is None:
        return set()
    # These import pandas, a quarter of what a campaign without profiles would take to start.
    from netbench.read.compare import changed
    from netbench.read.load import load

    result = load(store.path)
    measured = set(zip(result.ok["cell"].tolist(), result.ok["pair"].tolist(), strict=True))
    cells = measured if profile.cells == "all" else measured & changed(result)
    done = {((record.cell, record.pair), record.round) for record in store.profile_runs()}
    lost = {
        pair
        for pair, reason in zip(result.failed["pair"], result.failed["reason"], strict=True)
        if reason.startswith(LOST)
    }
    known = {unit.key for unit in plan.units if unit.pair.name not in lost}
    return {(key, number) for key in cells & known for number in range(profile.runs)} - done


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
    planned, stored = codec.of_json(PlanFile, plan_json(plan)), store.plan()
    keys = ["cells", "pairs", "seed", "boots", "repeat", "compare", "part"]
    if stored.rounds == planned.rounds or len(planned.pairs) == 1:
        keys.append("order")  # else hosts were found to share kernels, which the order follows
    for name in keys:
        if getattr(stored, name) != getattr(planned, name):
            raise StoreError(
                f"{store.path}: campaign.yaml no longer matches plan.json: `{name}` differs;"
                " restore campaign.yaml, or run the changed campaign as a new one"
            )


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
    there = campaign._replace(pairs=pairs)
    there = there._replace(hosts={name: campaign.hosts[name] for name in there.roles})
    left_out = [host for host in campaign.hosts if host not in there.hosts]
    line = f"given up before, and left out: {listed(sorted(lost), SHOWN, ', ')}"
    if left_out:
        line += f"; not connected to: {listed(left_out, SHOWN, ', ')}"
    if changed := [host for host in left_out if store.journal.outstanding(host)]:
        line += (
            f"; `restore {shell_word(store.path)}` puts back what is left changed on"
            f" {listed(changed, SHOWN, ', ')}"
        )
    store.note(line)
    progress.say(line)
    return there
