"""Facts that must match, read again while a campaign runs: whoever changes one, the runs before,
about and after that are told apart.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from netbench.base.errors import NetbenchError
from netbench.facts.comparison import change, must_match
from netbench.facts.registry import FACTS
from netbench.hosts.probe import read_facts
from netbench.model import Campaign
from netbench.run.host_facts import subjects
from netbench.run.recorder import Recorder
from netbench.run.worker_pool import WorkerPool

PAUSE = 1.0  # seconds, at least, between two looks
OFTEN = 4  # how many changes of a fact make one that changes by itself
Facts = dict[str, str | None]
Changed = tuple[str, str, str]


class FactWatch:
    """Of a campaign's hosts. `say` gets a line a change."""

    def __init__(
        self, campaign: Campaign, pool: WorkerPool, recorder: Recorder, say: Callable[[str], None]
    ) -> None:
        self._campaign, self._pool, self._recorder, self._say = campaign, pool, recorder, say
        names = must_match((*campaign.handled, "tcp_metrics"))
        programs = {fact for fact in FACTS for source in fact.sources if source.op == "exec"}
        self._facts = [f for f in FACTS if f.name in names and f.sources and f not in programs]
        keys = {*campaign.settings, *(key for cell in campaign.cells for key in cell.settings)}
        others = {key.rpartition(".")[2] for key in keys if "sysctl." not in key}
        files = any("sysfs." in key for key in keys)
        self._moving = {  # what settings of the campaign's own may take along
            fact.name
            for fact in self._facts
            if others & campaign.commands.keys()
            or (others and not fact.setting and fact.sources[0].op != "file")
            or (files and fact.sources[0].target[0].startswith("/sys/"))
        }
        self._seen: dict[tuple[str, str], tuple[int, Facts]] = {}  # after which run, and what
        self._often = Counter[tuple[str, str]]()
        self._due = 0.0

    def look(self, state: str, at_once: bool) -> None:
        """Compare facts with those in force, and those that may move with those seen when the
        campaign had set the same, `state`. A host that does not answer is left to the next run.
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
        found = {host: self._changed(host, state, facts) for host, facts in read.items()}
        if changed := {host: changes for host, (_, changes) in found.items() if changes}:
            for host, changes in changed.items():
                told = "; ".join(change(*each) for each in changes)
                self._say(f"{host}: {told}: runs before, about and after that are told apart")
            self._recorder.keep_changes(min(found[host][0] for host in changed), changed)
        for host, facts in read.items():
            if host in changed:
                self._seen = {key: seen for key, seen in self._seen.items() if key[0] != host}
            self._seen[host, state] = self._seen[host, ""] = self._recorder.last, facts

    def _changed(self, host: str, state: str, facts: Facts) -> tuple[int, list[Changed]]:
        """After which run a host may have changed, and what it has: (fact, was, now)."""
        known = self._recorder.hosts[host][-1].known
        at, in_state = self._seen.get((host, state), (0, facts))
        since = self._seen.get((host, ""), (0, {}))[0]
        changes = []
        for name, now in facts.items():
            was = (in_state if name in self._moving else known).get(name)
            if was and now and was != now and self._often[host, name] < OFTEN:
                self._often[host, name] += 1
                since = min(since, at) if name in self._moving else since
                by_itself = self._often[host, name] == OFTEN
                changes.append((name, was, "changes by itself" if by_itself else now))
        return since, changes
