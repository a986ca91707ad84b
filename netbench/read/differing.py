"""What two results differ in besides what is compared: facts of their hosts, and keys of their
campaigns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from netbench.facts import comparison
from netbench.read.matching import pairs_of
from netbench.read.result import Result
from netbench.stats.by_boot import KERNEL

PRIVATE = ("source", "sink", "tool")
"""Keys of transfer that may hold paths: that they differ is reported, not how."""


@dataclass(frozen=True)
class Difference:
    """A fact that must match, or a key of the campaign, and what it is in each result."""

    where: str  # hosts, or `campaign`
    what: str
    a: str
    b: str


def differences(a: Result, b: Result) -> list[Difference]:
    """What the two differ in: facts that must match, and what their campaigns say of the transfer
    and of settings.
    """
    hosts_of: dict[tuple[str, str, str], list[str]] = {}
    own = set(a.handled) & set(b.handled) - {
        "kernel"
    }  # what both set themselves is in what their campaigns say
    compared = comparison.must_match(own)
    for host, other in _hosts(a, b):
        one, two = _known(a, host), _known(b, other)
        label = host if host == other else f"{host} and {other}"
        for name in compared:
            if name in one and name in two and one[name] != two[name]:
                hosts_of.setdefault((name, one[name], two[name]), []).append(label)
    of_facts = [
        Difference(", ".join(hosts), name, *comparison.shortened(x, y))
        for (name, x, y), hosts in hosts_of.items()
    ]
    return [*of_facts, *_words(a, b)]


def _hosts(a: Result, b: Result) -> list[tuple[str, str]]:
    """Hosts of one name, or those that play one part in the pairs that are compared."""
    pairs, _ = pairs_of(a, b)
    ends = [
        (x, y)
        for pair, other in pairs
        for x, y in zip(pair.split(">"), other.split(">"), strict=True)
    ]
    return list(dict.fromkeys(ends))


def _known(result: Result, host: str) -> dict[str, str]:
    """Each fact over all entries of a host: one value, or all that there were."""
    values: dict[str, dict[str, None]] = {}
    for entry in result.hosts.get(host, ()):
        for name, value in entry.known.items():
            values.setdefault(name, {})[value] = None
    return {name: " or ".join(sorted(each)) for name, each in values.items()}


def _words(a: Result, b: Result) -> Iterator[Difference]:
    """Keys of transfer and settings that the campaigns write otherwise, and that neither swept."""
    if a.asked is None or b.asked is None:
        return
    for key in dict.fromkeys((*a.asked, *b.asked)):
        one, two = a.asked.get(key), b.asked.get(key)
        name = key.partition(".")[2]
        if one != two and name not in (*a.factors, *b.factors, KERNEL):
            hidden = name in PRIVATE or key.startswith("tools.")
            words = (
                ("differs", "differs")
                if hidden
                else tuple("not written" if w is None else w for w in (one, two))
            )
            yield Difference("campaign", key, *words)
