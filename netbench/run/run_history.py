"""The history of a campaign's runs: what its result folder knows, read back and added to. `resume`
needs nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from netbench.engine.catalogue import Row
from netbench.model import Campaign
from netbench.plan.plan import Plan
from netbench.read.accounts import accounts_of
from netbench.result.codec import unreadable
from netbench.result.files import EngineRow, Hosts
from netbench.result.store import Store
from netbench.run.ledger import Ledger
from netbench.run.profiles_due import profiles_due


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


def is_finished(path: Path, campaign: Campaign) -> bool:
    """Whether every cell of a result is closed, from its records alone."""
    from netbench.engine.local import local

    store = Store.open(path)
    hosts = store.stored_facts()
    if not hosts:
        return False
    plan = Plan(campaign)
    ledger = new_ledger(plan, hosts, described(local().rows))
    replay(store, ledger)
    while (
        plan.boots
        and not ledger.finished
        and not plan.wanted(ledger.block, ledger.is_open, ledger.done)
    ):
        ledger.next_block()
    if not plan.boots:
        ledger.next_block()
    return ledger.finished and not profiles_due(store, plan)


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
    """Bring the ledger to where the records end. Errors: StoreError for a record that no netbench
    wrote.
    """
    for number, record in enumerate(store.records(), 1):
        if not ledger.is_possible(record.block, number):
            # The ledger would walk through all blocks between.
            raise unreadable(
                f"{store.path / 'records.jsonl'}:{number}",
                f"block {record.block} is out of order in record {number}",
            )
        ledger.add(record)


def made_sinks(store: Store) -> list[tuple[str, str]]:
    """Sinks that this campaign made, as (host, path)."""
    return [(sink.host, sink.path) for sink in store.journal.made_sinks()]
