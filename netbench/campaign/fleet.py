"""Groups, pairs and links of a campaign file, by the names of its hosts."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from netbench.base.hostlist import expand, fold, is_notation
from netbench.base.names import PAIRS_MAX
from netbench.campaign import patterns
from netbench.campaign.messages import listed, nearest
from netbench.campaign.problems import Problems
from netbench.campaign.schema.file import FileKeys
from netbench.campaign.schema.pairs import (
    AllKeys,
    BisectionKeys,
    PairKeys,
    Pairs,
    RingKeys,
    StarKeys,
)
from netbench.campaign.tree import Listing, Loc
from netbench.model import Link, Pair

ALL = "all"
SHOWN = 8  # names in a message; more are folded


class Names:
    """Which hosts the words of a campaign file name: hosts, groups and notations of both."""

    def __init__(self, hosts: Collection[str], file: FileKeys, problems: Problems) -> None:
        self._hosts = dict.fromkeys(hosts)
        self._problems = problems
        self._written = file.groups
        self.groups: dict[str, tuple[str, ...]] = {}
        self._reading: list[str] = []
        for name in file.groups:
            self._group(name)

    def _group(self, name: str) -> tuple[str, ...]:
        """The hosts of a group, which may hold others."""
        at: Loc = ("groups", name)
        if name in self._reading:
            ring = " > ".join([*self._reading[self._reading.index(name) :], name])
            self._problems.add(at, f"expected groups that do not contain themselves, got {ring}")
            return ()
        if name not in self.groups:
            self._reading.append(name)
            members = self.of(self._written[name], at)
            self._reading.pop()
            if name == ALL or (name in self._hosts and members != (name,)):
                what = "stands for all hosts" if name == ALL else "is a host"
                self._problems.add(at, f"expected another name, since {name} {what}")
            self.groups[name] = members
        return self.groups[name]

    def of(self, words: Sequence[str], at: Loc) -> tuple[str, ...]:
        """The hosts that words name, each once; words that name none are noted."""
        return tuple(dict.fromkeys(host for word in words for host in self._named(word, at)))

    def _named(self, word: str, at: Loc) -> Sequence[str]:
        if word in self._written:
            return self._group(word)
        if word in self._hosts:
            return (word,)
        if word == ALL:
            return tuple(self._hosts)
        if is_notation(word):
            return self._expanded(word, at)
        self._unknown(word, repr(word), at)
        return ()

    def _expanded(self, word: str, at: Loc) -> Sequence[str]:
        try:
            names = expand(word)
        except ValueError as error:
            self._problems.add(at, str(error))
            return ()
        wrong = [n for n in names if n not in self._hosts and n not in self._written and n != ALL]
        if wrong:
            more = f" of {word}" if wrong != names else ""
            self._unknown(wrong[0], f"{fold(wrong)}{more}", at)
        return [host for n in names if n not in wrong for host in self._named(n, at)]

    def _unknown(self, name: str, shown: str, at: Loc) -> None:
        if not self._problems.clean("hosts", *(("groups",) if at[0] != "groups" else ())):
            return  # what it may name is not known
        known, groups = list(self._hosts), list(self._written)
        hosts = listed(known) if len(known) <= SHOWN else fold(known)
        what = f"the name of a host ({hosts})"
        if groups:
            what += f" or of a group ({listed(groups) if len(groups) <= SHOWN else fold(groups)})"
        self._problems.add(at, f"expected {what}, got {shown}", nearest(name, [*known, *groups]))


def read_links(file: FileKeys, names: Names) -> dict[str, Link]:
    """Links by name."""
    return {
        name: Link(names.of(keys.hosts, ("links", name)), keys.capacity)
        for name, keys in file.links.items()
    }


def read_pairs(
    file: FileKeys, hosts: Mapping[str, object], names: Names, problems: Problems
) -> tuple[Pair, ...]:
    """The pairs; by default the first two hosts, or the only one with itself. Pairs with unknown
    hosts are noted and left out.
    """
    if not file.pairs:
        first, *others = hosts
        return (Pair(first, others[0] if others else first),)
    is_list = isinstance(problems.tree.entries.get("pairs"), Listing)
    pairs: dict[Pair, None] = {}
    for i, keys in enumerate(file.pairs):
        at: Loc = ("pairs", i) if is_list else ("pairs",)
        for pair in _pairs_of(keys, at, file.order.seed, names, problems):
            if pair in pairs:
                problems.add(at, f"expected each pair once, got {pair.name} again")
                break
            pairs[pair] = None
            if len(pairs) > PAIRS_MAX:
                problems.add(at, f"expected at most {PAIRS_MAX} pairs, got more")
                return ()
    return tuple(pairs)


def _pairs_of(keys: Pairs, at: Loc, seed: int, names: Names, problems: Problems) -> Iterable[Pair]:
    """The pairs that one word or mapping stands for."""

    def named(key: str, least: int = 1) -> tuple[str, ...]:
        before = len(problems.noted)
        hosts = names.of(getattr(keys, key), (*at, key))
        if len(hosts) < least:
            if len(problems.noted) == before and problems.clean("hosts", "groups"):
                message = f"expected {least} hosts or more, got {len(hosts)}"
                problems.add((*at, key), message)
            return ()
        return hosts

    match keys:
        case PairKeys():
            return _crossed(named("sender"), named("receiver"))
        case RingKeys():
            return patterns.ring(hosts) if (hosts := named("ring", 2)) else ()
        case AllKeys():
            return _crossed(hosts := named("all", 2), hosts)
        case StarKeys():
            return _star(keys, named("star", 2), at, problems)
        case BisectionKeys():
            return _bisection(keys, named("bisection", 2), at, seed, problems)


def _crossed(senders: Sequence[str], receivers: Sequence[str]) -> Iterator[Pair]:
    """Every sender with every receiver; a host with itself only where that is the only pair."""
    only = len(senders) * len(receivers) == 1
    for sender in senders:
        yield from (Pair(sender, other) for other in receivers if only or other != sender)


def _star(keys: StarKeys, hosts: Sequence[str], at: Loc, problems: Problems) -> Iterable[Pair]:
    hub = keys.hub or (hosts[0] if hosts else "")
    if hosts and hub not in hosts:
        shown = listed(hosts) if len(hosts) <= SHOWN else fold(hosts)
        message = f"expected one of the star's hosts ({shown}), got {hub!r}"
        problems.add((*at, "hub"), message, nearest(hub, hosts))
        return ()
    return patterns.star(hosts, hub)


def _bisection(
    keys: BisectionKeys, hosts: Sequence[str], at: Loc, seed: int, problems: Problems
) -> Iterable[Pair]:
    if not hosts:
        return ()
    most = patterns.matchings(len(hosts))
    rounds = keys.rounds or min(patterns.ROUNDS, most)
    if rounds > 2 * most:
        message = f"expected at most {2 * most} rounds of {len(hosts)} hosts, got {rounds}"
        problems.add((*at, "rounds"), message)
        return ()
    chance = random.Random(f"netbench {seed} bisection {' '.join(hosts)}")
    return patterns.bisection(hosts, rounds, chance)
