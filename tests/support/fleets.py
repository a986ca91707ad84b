"""Made-up results of fleets: hosts that lie apart a little, and some that are slow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.support.synthetic import Record, Synth

APART = 0.01
"""How far hosts and pairs lie apart, a standard deviation of logarithms."""


def names(hosts: int) -> list[str]:
    return [f"n{i:03}" for i in range(1, hosts + 1)]


def ring(hosts: Sequence[str]) -> list[str]:
    """Each host sends to the next."""
    return [f"{a}>{b}" for a, b in zip(hosts, [*hosts[1:], hosts[0]], strict=True)]


def bisection(hosts: Sequence[str], rounds: int, seed: int = 3) -> list[str]:
    """Random perfect matchings, without a pair twice."""
    rng = np.random.default_rng(seed)
    found: dict[str, None] = {}
    for _ in range(rounds):
        order = [hosts[i] for i in rng.permutation(len(hosts))]
        found |= {f"{a}>{b}": None for a, b in zip(order[::2], order[1::2], strict=True)}
    return list(found)


def every(hosts: Sequence[str]) -> list[str]:
    """All ordered pairs."""
    return [f"{a}>{b}" for a in hosts for b in hosts if a != b]


@dataclass
class MadeFleet(Synth):
    """A fleet: `sends`, `receives`, `moves` are shifts; `lost` pairs fail; `beside`: at a time."""

    factors: Mapping[str, Sequence[str]] = field(default_factory=dict)
    runs: int = 5
    spread: float = 0.02
    apart: float = 0.0
    sends: Mapping[str, float] = field(default_factory=dict)
    receives: Mapping[str, float] = field(default_factory=dict)
    moves: Mapping[str, float] = field(default_factory=dict)
    lost: Sequence[str] = ()
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    links: Mapping[str, Sequence[str]] = field(default_factory=dict)
    beside: int = 0

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed + 10)
        hosts = self.hosts()
        s, r = (dict(zip(hosts, rng.normal(0, APART, len(hosts)), strict=True)) for _ in range(2))
        self._shift = {}
        for pair in self.pairs:
            a, _, b = pair.partition(">")
            apart = s[a] + r[b] + self.sends.get(a, 0) + self.receives.get(b, 0)
            self._shift[pair] = apart + self.moves.get(pair, 0) + rng.normal(0, APART)
        self.edit = self._edited
        self._round = {pair: at // (self.beside or 1) for at, pair in enumerate(self.pairs)}

    def _edited(self, record: Record) -> Record:
        pair = record["pair"]
        if pair in self.lost:
            gone = ("sender", "receiver", "proof", "settings")
            kept = {k: v for k, v in record.items() if k not in gone}
            return kept | {"status": "failed", "reason": "connection refused"}
        if self.beside:
            at = self._round[pair]
            others = self.pairs[at * self.beside : (at + 1) * self.beside]
            record["round"] = at + 1
            record["concurrent"] = [other for other in others if other != pair]
        factor = float(np.exp(self._shift[pair]))
        for side in ("sender", "receiver"):
            (first,), (last,) = record[side]["flow"]["bytes"]
            record[side]["flow"]["bytes"] = [[first], [first + round((last - first) * factor)]]
        return record

    def plan(self) -> Record:
        more: dict[str, Any] = {
            "groups": {name: list(hosts) for name, hosts in self.groups.items()},
            "links": {name: {"hosts": list(hosts)} for name, hosts in self.links.items()},
        }
        return super().plan() | {key: value for key, value in more.items() if value}
