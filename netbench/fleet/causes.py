"""From outlying pairs to the hosts behind them.

A pair that is slow has a sender and a receiver. An end whose other pairs in the same direction are
as those of the fleet is cleared. Where both ends are, it is the pair (the way between them, or the
two together). Where neither is, as in a ring, a host that is outlying in the other direction too
explains it; else the one end that differs in facts from nearly all hosts; else both may be it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from netbench.fleet.differing_facts import Odd
from netbench.fleet.fit import PAIR, RECEIVER, SENDER, Fit, Shift

HOST = "host"
BY_PAIRS, BY_BOTH, BY_OTHERS, BY_FACTS = "pairs", "both", "others", "facts"
"""How a host is known to be the cause: by its several pairs in a direction; by both directions; by
the other pairs of the other end; by its facts alone.
"""


@dataclass(frozen=True)
class Cause:
    """What is outlying: a host, or a pair (then `candidates`: ends that may each be the cause; none
    where both are cleared). `shifts`: what it is seen in; `how`: for a host, how it is known, by
    shift. `facts`: of the host, or of each candidate.
    """

    kind: str
    name: str
    shifts: tuple[Shift, ...]
    how: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    facts: Mapping[str, Sequence[Odd]] = field(default_factory=dict)


def causes(pairs: Sequence[str], fit: Fit, odd: Mapping[str, Sequence[Odd]]) -> list[Cause]:
    """Everything outlying, that which lies furthest first; a host once."""
    slow = {(shift.kind, shift.name): shift for shift in fit.outlying}
    by_end: dict[tuple[str, str], list[str]] = {}
    for pair in pairs:
        for end in _ends(pair):
            by_end.setdefault(end, []).append(pair)

    def is_open(end: tuple[str, str], pair: str) -> bool:
        """Whether no other pair of that end in that direction is as those of the fleet."""
        others = [each for each in by_end[end] if each != pair]
        return end in slow or all((PAIR, other) in slow for other in others)

    def is_slow_both_ways(end: tuple[str, str]) -> bool:
        back = RECEIVER if end[0] == SENDER else SENDER, end[1]
        return back in slow or any((PAIR, pair) in slow for pair in by_end.get(back, ()))

    def behind(pair: str) -> tuple[list[str], str]:
        """The hosts that explain an outlying pair, and how that is known ("": they may)."""
        ends = [end for end in _ends(pair) if is_open(end, pair)]
        for how, kept in (
            (BY_OTHERS, ends if len(ends) == 1 else []),
            (BY_BOTH, [end for end in ends if is_slow_both_ways(end)]),
            (BY_FACTS, [end for end in ends if odd.get(end[1])]),
        ):
            if kept and not (how == BY_FACTS and len(kept) > 1):
                return [host for _, host in kept], how
        return [host for _, host in ends], ""

    hosts: dict[str, list[tuple[Shift, str]]] = {}
    outlying = []
    for shift in slow.values():
        names, how = behind(shift.name) if shift.kind == PAIR else ([shift.name], BY_PAIRS)
        if how:
            for host in names:
                hosts.setdefault(host, []).append((shift, how))
        else:
            facts = {host: odd[host] for host in names if host in odd}
            outlying.append(Cause(PAIR, shift.name, (shift,), (), tuple(names), facts))
    for host, seen in hosts.items():
        shifts, how_each = zip(*seen, strict=True)
        outlying.append(Cause(HOST, host, shifts, how_each, (), {host: odd.get(host, ())}))
    return sorted(outlying, key=lambda cause: -max(abs(math.log(s.ratio)) for s in cause.shifts))


def _ends(pair: str) -> tuple[tuple[str, str], tuple[str, str]]:
    sender, _, receiver = pair.partition(">")
    return (SENDER, sender), (RECEIVER, receiver)
