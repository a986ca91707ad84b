"""The history of a campaign's runs: what its result folder knows, read back and added to. `resume`
needs nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from netbench.engine.catalogue import Row
from netbench.facts.registry import FACTS
from netbench.model import Campaign
from netbench.plan.plan import Plan
from netbench.read.accounts import accounts_of
from netbench.result.codec import unreadable
from netbench.result.files import EngineRow, HostEntry, Hosts
from netbench.result.store import Store
from netbench.run.ledger import Ledger
from netbench.run.profiles_due import profiles_due


class RunHistory:
    """The records and facts of a campaign's result folder."""

    def __init__(self, store: Store, plan: Plan, rows: Iterable[Row]) -> None:
        self.store = store
        self._plan = plan
        self._rows = described(rows)

    def ledger(self, hosts: Hosts, present: Ledger | None = None) -> Ledger:
        """A ledger that stands where the records end: the present one, where what is known of hosts
        by now says nothing else of its runs. `hosts`: facts.json. Errors: StoreError.
        """
        ledger = new_ledger(self._plan, hosts, self._rows)
        if present is not None and present.go_on_with(ledger):
            return present
        _replay(self.store, ledger)
        return ledger

    def keep_facts(
        self, read: Mapping[str, HostEntry], boot: int | None = None, last_run: int | None = None
    ) -> Hosts:
        """Add what was read of hosts to facts.json: an entry for each boot that a host was seen in,
        and for each change of its facts within one. Returns facts.json. Errors: StoreError.

        `boot`: the number of the boot that the campaign has just made. Without it the number goes
        up by one where a host's boot id has changed. `last_run`: the number of the last run, where
        it is known; else the records are read for it.
        """
        hosts = {name: list(entries) for name, entries in self.store.stored_facts().items()}
        for name, found in read.items():
            entries = hosts.setdefault(name, [])
            number = found.boot if boot is None else boot
            if boot is None and entries:
                number = entries[-1].boot + (entries[-1].boot_id != found.boot_id)
            entry = replace(found, boot=number)
            if not entries or _steady(entries[-1]) != _steady(entry):
                if last_run is None:
                    last_run = max((record.run for record in self.store.records()), default=0)
                entries.append(replace(entry, from_run=last_run + 1))
        self.store.facts(hosts)
        return hosts


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
    _replay(store, ledger)
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


def _replay(store: Store, ledger: Ledger) -> None:
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


def _steady(entry: HostEntry) -> HostEntry:
    """What of an entry must not change without being noticed: all but the number of its first run
    and what varies by itself.
    """
    varying = {fact.name for fact in FACTS if fact.varies}
    facts = {name: value for name, value in entry.facts.items() if name not in varying}
    return replace(entry, facts=facts, from_run=None, missing={}, unread={}, not_held={})
