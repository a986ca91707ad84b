"""Facts that must match, read again while a campaign runs: whoever changes one, the runs before,
about and after that are told apart.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from netbench.base.errors import NetbenchError
from netbench.facts.comparison import BY_ITSELF, change, handled_on, must_match
from netbench.facts.registry import FACTS
from netbench.hosts.probe import read_facts
from netbench.model import Campaign
from netbench.run.host_facts import subjects
from netbench.run.recorder import Recorder
from netbench.run.worker_pool import WorkerPool

PAUSE = 1.0  # seconds, at least, between two looks
OFTEN = 4  # how many changes of a fact make one that changes by itself
Facts = dict[str, str | None]


class FactWatch:
    """Of a campaign's hosts. What its own settings may take along is not looked at. `say` gets a
    line a change.
    """

    def __init__(
        self, campaign: Campaign, pool: WorkerPool, recorder: Recorder, say: Callable[[str], None]
    ) -> None:
        self._campaign, self._pool, self._recorder, self._say = campaign, pool, recorder, say
        handled, pairs = (*campaign.handled, "tcp_metrics"), [pair.name for pair in campaign.pairs]
        keys = {*campaign.settings, *(key for cell in campaign.cells for key in cell.settings)}
        others = {key.rpartition(".")[2] for key in keys if "sysctl." not in key}
        files = any("sysfs." in key for key in keys)
        shared = sum(host.local for host in campaign.hosts.values()) > 1
        of_no_side = must_match(handled)
        self._facts = [  # that are read without a program
            fact
            for fact in FACTS
            if fact.sources and all(source.op != "exec" for source in fact.sources)
            if not others & campaign.commands.keys()
            if not others or fact.sources[0].op == "file"
            if not files or not fact.sources[0].target[0].startswith("/sys/")
            if fact.name in of_no_side or not (shared or "sysctl." in fact.setting)
        ]
        self._names = {h: must_match(handled_on(h, pairs, handled)) for h in campaign.roles}
        self._looked: dict[str, int] = {}  # after which run
        self._often = Counter[tuple[str, str]]()
        self._due = 0.0

    def look(self, at_once: bool) -> None:
        """Compare facts with those in force. A host that does not answer is left to the next run.
        Errors: StoreError.
        """
        if not at_once and time.monotonic() < self._due:
            return
        read: dict[str, Facts] = {}

        def ask(host: str) -> None:
            worker = self._pool.host_worker(host)
            about = subjects(self._campaign, host, worker)
            read[host] = read_facts(worker.ask, about, self._facts)[0]

        with suppress(NetbenchError, TimeoutError):
            there = self._campaign.roles.items() & self._pool.workers().keys()
            self._pool.each(ask, [host for host, _ in there])
        self._due = time.monotonic() + PAUSE
        found = {host: self._changed(host, facts) for host, facts in read.items()}
        if changed := {host: changes for host, changes in found.items() if changes}:
            for host, changes in changed.items():
                told = "; ".join(change(*each) for each in changes)
                self._say(f"{host}: {told}: runs before, about and after that are told apart")
            self._recorder.keep_changes(min(self._looked.get(h, 0) for h in changed), changed)
        self._looked |= dict.fromkeys(read, self._recorder.last)

    def _changed(self, host: str, facts: Facts) -> list[tuple[str, str, str]]:
        """What of a host has: (fact, was, now)."""
        entries = self._recorder.hosts[host]
        varying = {n for each in entries for n in facts if each.facts.get(n) == BY_ITSELF}
        changes = []
        for name in (n for n in self._names[host] if n in facts and n not in varying):
            if (was := entries[-1].known.get(name)) and (now := facts[name]) and was != now:
                self._often[host, name] += 1
                changes.append((name, was, BY_ITSELF if self._often[host, name] == OFTEN else now))
        return changes
