"""What hosts of a fleet are: which facts, and which settings as they were read back, differ between
them, and in which of them a host differs from nearly all others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from netbench.base.units import listed
from netbench.facts.comparison import same, shortened
from netbench.facts.registry import BY_NAME
from netbench.read.result import Result

NEARLY_ALL = 0.8  # of the other hosts
READ_BACK = " (read back)"
OWN = ("cpus", "architecture")  # kept beside the facts
NAMED = 3
Known = Mapping[str, Mapping[str, str]]
"""By fact, each host's value."""


@dataclass(frozen=True)
class Odd:
    """A fact of a host that nearly all others have otherwise; `words` says both."""

    fact: str
    value: str
    usual: str
    words: str


def known_facts(result: Result, hosts: Sequence[str], cell: str = "") -> Known:
    """The facts of hosts in the last run that counts, without what varies by itself; with `cell`
    its settings as read back, but for buffers that the kernel sizes by what a run moved.
    """
    by_name: dict[str, dict[str, str]] = {}
    for host in hosts:
        for entry in result.in_force(host):
            own = {name: str(value) for name in OWN if (value := getattr(entry, name))}
            for name, value in (own | entry.known).items():
                if not (name in BY_NAME and BY_NAME[name].varies):
                    by_name.setdefault(name, {})[host] = value
    for each in result.readbacks if cell else ():
        if each.cell == cell and each.read and not each.is_outcome:
            sender, _, receiver = each.pair.partition(">")
            host = sender if each.side == "sender" else receiver
            by_name.setdefault(each.name + READ_BACK, {})[host] = each.read
    return by_name


def odd_facts(known: Known) -> dict[str, list[Odd]]:
    """By host, the facts that nearly all others have otherwise."""
    odds: dict[str, list[Odd]] = {}
    for name, values in known.items():
        (usual, times), *others = Counter(values.values()).most_common()
        if not others or times < NEARLY_ALL * (len(values) - 1):
            continue
        for host, value in values.items():
            if not same(name, value, usual):
                odds.setdefault(host, []).append(Odd(name, value, usual, told(name, value, usual)))
    return odds


def told(name: str, value: str, usual: str) -> str:
    """A fact of a host against that of the others, in words."""
    if name == "speed" and value.isdigit() and usual.isdigit():
        here, there = (f"{int(each) / 1000:g} Gb/s" for each in (value, usual))
        return f"its link came up at {here}, those of the others at {there}"
    if name == "features":
        return _features(value, usual)
    here, there = shortened(value, usual)
    return f"its fact `{name}` is {here}, that of the others {there}"


def _features(value: str, usual: str) -> str:
    """Only what is switched otherwise."""
    here, there = (_switched(each) for each in (value, usual))
    parts = []
    for state, other in (("off", "on"), ("on", "off")):
        names = [n for n in here if here[n] == state and there.get(n) == other]
        if names:
            parts.append(f"{listed(names, NAMED, ', ')} {state}")
    what = "; ".join(parts) or "others than those of nearly all"
    return f"its fact `features` differs ({what})"


def _switched(features: str) -> dict[str, str]:
    """Each feature's state, of a text such as `on: a b; off: c`."""
    parts = (part.partition(": ") for part in features.split("; "))
    return {name: state for state, _, names in parts for name in names.split()}
