"""Facts that must match, read again while a campaign runs: whoever changes one, the runs before,
about and after that are told apart.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from netbench.base.errors import NetbenchError
from netbench.facts.comparison import BY_ITSELF, change, handled_on, must_match
from netbench.facts.fact import FactSource
from netbench.facts.registry import FACTS
from netbench.hosts.probe import read_facts
from netbench.model import Campaign
from netbench.run.host_facts import subjects
from netbench.run.recorder import Recorder
from netbench.run.worker_pool import WorkerPool
from netbench.settings.ethtool import Feature, Parameters
from netbench.settings.files import Sysfs
from netbench.settings.link import Mtu, Qdisc, SegmentSize
from netbench.settings.named import CommandSetting, find, side_of

PAUSE = 1.0  # seconds, at least, between two looks
OFTEN = 4  # how many changes of a fact make one that changes by itself
_MOVES_LINKS = re.compile(r"sysfs\..*/net/|sysctl\.net[./]ipv[46][./](?!tcp_)")  # or routes
OF_LINK = {Feature, Parameters, Mtu, Qdisc, SegmentSize}
Facts = dict[str, str | None]


def _is_of_network(source: FactSource) -> bool:
    """Whether it is of one network namespace of a kernel, as known."""
    return source.op != "file" or "/net/ipv" in source.target[0]


class FactWatch:
    """Of a campaign's hosts, but for what its own settings may take along. `say`: each change."""

    def __init__(
        self, campaign: Campaign, pool: WorkerPool, recorder: Recorder, say: Callable[[str], None]
    ) -> None:
        self._campaign, self._pool, self._recorder, self._say = campaign, pool, recorder, say
        handled, pairs = (*campaign.handled, "tcp_metrics"), [pair.name for pair in campaign.pairs]
        keys = {*campaign.settings, *(key for cell in campaign.cells for key in cell.settings)}
        found = (find(side_of(key)[1], campaign.commands) for key in keys)
        kinds = {type(setting[0]) for setting in found if setting}
        links = kinds & OF_LINK or any(map(_MOVES_LINKS.search, keys))
        hellos = [pool.host_worker(host).hello for host in campaign.roles]
        networks = {(hello.boot_id, hello.network) for hello in hellos}
        one_network = len(networks) < len(hellos)
        one_kernel = len({hello.boot_id for hello in hellos}) < len(hellos)
        of_no_side = must_match(handled)
        self._facts = [  # that are read without a program
            fact
            for fact in FACTS
            if fact.sources and all(source.op != "exec" for source in fact.sources)
            if CommandSetting not in kinds
            if not links or fact.sources[0].op == "file"
            if Sysfs not in kinds or not fact.sources[0].target[0].startswith("/sys/")
            if fact.name in of_no_side
            or not (one_network or (one_kernel and not _is_of_network(fact.sources[0])))
        ]
        self._names = {h: must_match(handled_on(h, pairs, handled)) for h in campaign.roles}
        self._looked: dict[str, int] = {}  # after which run
        self._often = Counter[tuple[str, str]]()
        self._due = 0.0

    def look(self, at_once: bool) -> None:
        """Compare facts with those in force, of hosts that answer. Errors: StoreError."""
        if not at_once and time.monotonic() < self._due:
            return
        read: dict[str, Facts] = {}
        self._looked.setdefault("", self._recorder.last)

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
                for name, was, now in changes:
                    kept = "runs before, about and after that are told apart"
                    kept = "it keeps no runs apart any more" if now == BY_ITSELF else kept
                    self._say(f"{host}: {change(name, was, now)}: {kept}")
            begun = {host: (self._recorder.hosts[host][-1].from_run or 1) - 1 for host in changed}
            looked = {h: self._looked.get(h, self._looked[""]) for h in changed}
            self._recorder.keep_changes({h: max(looked[h], begun[h]) for h in changed}, changed)
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
