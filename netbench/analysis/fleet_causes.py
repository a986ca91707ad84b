"""From outlying pairs to the hosts behind them.

A pair that is slow has a sender and a receiver. An end whose other pairs in the same direction are
as those of the fleet is cleared. Where both ends are, it is the pair (the way between them, or the
two together). Where neither is, as in a ring, a host whose two pairs are both outlying explains
them; else the two ends cannot be told apart by what was measured, and only what is known of them
can: one of them may be the only one whose facts differ from those of nearly all hosts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from netbench.analysis.fleet_facts import Odd
from netbench.analysis.fleet_model import Observed
from netbench.analysis.fleet_outliers import LINK, PAIR, RECEIVER, SENDER, Analysis, Shift

HOST = "host"
BY_PAIRS, BY_BOTH, BY_OTHERS, BY_FACTS = "pairs", "both", "others", "facts"
"""How a host is known to be the cause: by its several pairs in a direction; both its pairs, one in
each direction; the other pairs of the other end; its facts alone.
"""


@dataclass(frozen=True)
class Cause:
    """What is outlying. `kind`: host, link, or pair (then `candidates`: ends that may each be the
    cause; none where both are cleared). `shifts`: what it is seen in. `how`: for a host, how it is
    known, by shift.
    """

    kind: str
    name: str
    shifts: tuple[Shift, ...]
    how: tuple[str, ...] = ()
    facts: tuple[Odd, ...] = ()
    candidates: tuple[str, ...] = ()
    others: Mapping[str, tuple[Odd, ...]] = field(default_factory=dict)

    @property
    def least(self) -> float:
        """The smallest of its ratios."""
        return min(shift.ratio for shift in self.shifts)


def causes(o: Observed, analysis: Analysis, odd: Mapping[str, Sequence[Odd]]) -> list[Cause]:
    """Everything outlying, the slowest first; a host once."""
    found = _Found(o, analysis, odd)
    hosts: dict[str, list[tuple[Shift, str]]] = {}
    rest: list[Cause] = []
    for shift in found.outlying:
        if shift.kind in (SENDER, RECEIVER):
            hosts.setdefault(shift.name, []).append((shift, BY_PAIRS))
        elif shift.kind == LINK:
            rest.append(Cause(LINK, shift.name, (shift,)))
    for pair in (shift for shift in found.outlying if shift.kind == PAIR):
        named = list(found.ends_behind(pair))
        for host, how in named:
            hosts.setdefault(host, []).append((pair, how))
        if not named:
            rest.append(found.unexplained(pair))
    rest += [
        Cause(HOST, host, tuple(s for s, _ in seen), tuple(h for _, h in seen), found.odd(host))
        for host, seen in hosts.items()
    ]
    return sorted(rest, key=lambda cause: cause.least)


class _Found:
    def __init__(self, o: Observed, analysis: Analysis, odd: Mapping[str, Sequence[Odd]]) -> None:
        self.outlying = [shift for shift in analysis.shifts if shift.outlying]
        self._odd = odd
        self._slow_pairs = {s.name: s for s in self.outlying if s.kind == PAIR}
        self._slow_ends = {
            (s.kind, s.name): s for s in self.outlying if s.kind in (SENDER, RECEIVER)
        }
        self._pairs: dict[tuple[str, str], list[str]] = {}
        for pair in o.pairs:
            for kind, host in self._ends(pair):
                self._pairs.setdefault((kind, host), []).append(pair)

    def odd(self, host: str) -> tuple[Odd, ...]:
        return tuple(self._odd.get(host, ()))

    @staticmethod
    def _ends(pair: str) -> tuple[tuple[str, str], tuple[str, str]]:
        sender, _, receiver = pair.partition(">")
        return (SENDER, sender), (RECEIVER, receiver)

    def _cleared(self, end: tuple[str, str], pair: str) -> bool:
        """Whether the end has another pair in the same direction, and it is as those of the
        fleet.
        """
        others = [each for each in self._pairs[end] if each != pair]
        return end not in self._slow_ends and any(o not in self._slow_pairs for o in others)

    def _slow_otherwise(self, end: tuple[str, str], pair: Shift) -> bool:
        """Whether the host is outlying, to the same side, in the other direction too."""
        kind, host = end
        back = (RECEIVER if kind == SENDER else SENDER), host
        there = [self._slow_pairs[p] for p in self._pairs.get(back, ()) if p in self._slow_pairs]
        there += [self._slow_ends[back]] if back in self._slow_ends else []
        return any((s.ratio < 1) == (pair.ratio < 1) for s in there if s.name != pair.name)

    def ends_behind(self, pair: Shift) -> Iterator[tuple[str, str]]:
        """The hosts that explain an outlying pair, and how that is known."""
        open_ends = [end for end in self._ends(pair.name) if not self._cleared(end, pair.name)]
        if len(open_ends) == 1:
            yield open_ends[0][1], BY_OTHERS
            return
        both = [end for end in open_ends if self._slow_otherwise(end, pair)]
        if both:
            for _, host in both:
                yield host, BY_BOTH
            return
        with_facts = [host for _, host in open_ends if self.odd(host)]
        if len(with_facts) == 1:
            yield with_facts[0], BY_FACTS

    def unexplained(self, pair: Shift) -> Cause:
        """A pair of which no end can be named."""
        ends = [end for end in self._ends(pair.name) if not self._cleared(end, pair.name)]
        hosts = tuple(dict.fromkeys(host for _, host in ends))
        return Cause(
            PAIR,
            pair.name,
            (pair,),
            candidates=hosts,
            others={host: self.odd(host) for host in hosts if self.odd(host)},
        )
