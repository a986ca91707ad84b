"""Pairs of many hosts by topology. Pure: the same hosts and random numbers give the same pairs."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from netbench.model import Pair

ROUNDS = 4  # of a bisection, where nothing is said
Matching = list[tuple[str, str]]


def ring(hosts: Sequence[str]) -> Iterator[Pair]:
    """Each host to the next, the last to the first."""
    return (Pair(a, b) for a, b in zip(hosts, [*hosts[1:], hosts[0]], strict=True))


def star(hosts: Sequence[str], hub: str) -> Iterator[Pair]:
    """Each host to the hub, and the hub to each."""
    others = [host for host in hosts if host != hub]
    yield from (Pair(host, hub) for host in others)
    yield from (Pair(hub, host) for host in others)


def matchings(hosts: int) -> int:
    """How many matchings of so many hosts there are in which no two meet twice."""
    return hosts - 1 + hosts % 2


def bisection(hosts: Sequence[str], rounds: int, chance: random.Random) -> Iterator[Pair]:
    """Perfect matchings of the hosts at random, one after the other; of an odd number one host,
    each time another, has a round off. In two rounds (the first and second, third and fourth, ...)
    a host sends once and receives once. No pair comes twice; `rounds` is at most twice `matchings`,
    and those beyond it are the same pairs the other way round.

    Source: the circle method of round-robin tournaments (E. Lucas, Récréations mathématiques II,
    1883), on hosts in random order.
    """
    table: list[str | None] = [*chance.sample(hosts, len(hosts)), *([None] * (len(hosts) % 2))]
    turns = list(range(matchings(len(hosts))))
    chance.shuffle(turns)
    drawn = [_matching(table, turn) for turn in turns[:rounds]]
    there: list[Matching] = []
    for i in range(0, len(drawn), 2):
        there += _directed(drawn[i], drawn[i + 1] if i + 1 < len(drawn) else [], chance)
    back = [[(b, a) for a, b in matching] for matching in there]
    return (Pair(a, b) for matching in [*there, *back][:rounds] for a, b in matching)


def _matching(table: Sequence[str | None], turn: int) -> Matching:
    """Hosts that face each other when all but the first have moved on by so many places."""
    moved = [table[0], *table[turn + 1 :], *table[1 : turn + 1]]
    half = len(moved) // 2
    both = zip(moved[:half], reversed(moved[half:]), strict=True)
    return [(a, b) for a, b in both if a is not None and b is not None]


def _directed(first: Matching, second: Matching, chance: random.Random) -> list[Matching]:
    """Both, each pair in a direction, so that whoever sends in one receives in the other. Together
    they are circles and paths, along which that is so. Without a second, the first alone.
    """
    partners = [dict([*each, *((b, a) for a, b in each)]) for each in (first, second)]
    directed: list[Matching] = [[], []]
    left = dict.fromkeys(host for pair in [*first, *second] for host in pair)
    ends = [host for host in left if not all(host in each for each in partners)]
    for start in [*ends, *left]:
        if start not in left:
            continue
        host, turn = start, int(start not in partners[0])
        forward, path = chance.random() < 0.5, []
        while host in left:
            del left[host]
            if host in partners[turn]:
                path.append((turn, host, partners[turn][host]))
                host, turn = partners[turn][host], 1 - turn
        for turn, a, b in path:
            directed[turn].append((a, b) if forward else (b, a))
    return directed if second else directed[:1]
