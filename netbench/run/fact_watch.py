"""Facts that must match, read again while a campaign runs: whoever changes one, the runs before,
about and after that are told apart.
"""

from __future__ import annotations

import time
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
Facts = dict[str, str | None]


class FactWatch:
    """Of a campaign's hosts. `say` gets a line a change."""

    def __init__(
        self, campaign: Campaign, pool: WorkerPool, recorder: Recorder, say: Callable[[str], None]
    ) -> None:
        self._campaign, self._pool, self._recorder, self._say = campaign, pool, recorder, say
        names = must_match(campaign.handled)
        programs = {fact for fact in FACTS for source in fact.sources if source.op == "exec"}
        self._facts = [fact for fact in FACTS if fact.name in names and fact not in programs]
        self._seen: dict[tuple[str, str], tuple[int, Facts]] = {}  # after which run, and what
        self._due = 0.0

    def look(self, state: str, at_once: bool) -> None:
        """Between blocks. `state`: what the campaign itself has set; facts are compared with those
        in the same. A host that does not answer is left to the next run. Errors: StoreError.
        """
        if not at_once and time.monotonic() < self._due:
            return
        read: dict[str, Facts] = {}

        def ask(host: str) -> None:
            worker = self._pool.host_worker(host)
            about = subjects(self._campaign, host, worker)
            read[host] = read_facts(worker.ask, about, self._facts)[0]

        with suppress(NetbenchError, TimeoutError):
            self._pool.each(ask)
        self._due = time.monotonic() + PAUSE
        for host, facts in read.items():
            since, before = self._seen.get((host, state), (0, facts))
            pairs = ((name, before.get(name), now) for name, now in facts.items())
            changes = [(name, was, now) for name, was, now in pairs if was and now and was != now]
            if changes:
                self._seen = {key: seen for key, seen in self._seen.items() if key[0] != host}
                told = "; ".join(change(*each) for each in changes)
                self._say(f"{host}: {told}: runs before, about and after that are told apart")
                self._recorder.keep_changes(host, since, changes)
            self._seen[host, state] = self._recorder.last, facts
