"""Pairs by topology, groups and links."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netbench.campaign import parse, patterns
from netbench.model import Campaign, Link, Pair
from tests.support.hand_catalogue import catalogue

H = "netbench: 1\nname: x\n"
RACKS = (
    H + "hosts:\n  n[1-3]: local\n  m[1-2]: local\ngroups:\n  rack1: n[1-3]\n  rack2: [m1, m2]\n"
)
HOSTS = st.integers(2, 24).map(lambda n: [f"n{i}" for i in range(n)])


def read(text: str) -> Campaign:
    return parse(text, "c.yaml", catalogue=catalogue())


def names(text: str) -> list[str]:
    return [pair.name for pair in read(text).pairs]


@given(HOSTS)
def test_a_ring_has_each_host_once_each_way(hosts: list[str]) -> None:
    pairs = list(patterns.ring(hosts))
    assert len(pairs) == len(hosts)
    assert [pair.sender for pair in pairs] == hosts
    assert sorted(pair.receiver for pair in pairs) == sorted(hosts)
    after, seen = {pair.sender: pair.receiver for pair in pairs}, [hosts[0]]
    while (follower := after[seen[-1]]) != hosts[0]:
        seen.append(follower)
    assert seen == hosts


@given(HOSTS)
def test_all_are_every_two_hosts_both_ways(hosts: list[str]) -> None:
    assert {(p.sender, p.receiver) for p in patterns.everyone(hosts)} == {*permutations(hosts, 2)}


@given(HOSTS)
def test_a_star_has_its_hub_in_every_pair(hosts: list[str]) -> None:
    pairs = list(patterns.star(hosts, hosts[-1]))
    assert Counter(pairs) == Counter(
        pair for host in hosts[:-1] for pair in (Pair(host, hosts[-1]), Pair(hosts[-1], host))
    )


def matchings(hosts: list[str], rounds: int, seed: int) -> list[list[Pair]]:
    pairs = list(patterns.bisection(hosts, rounds, random.Random(seed)))
    half = len(hosts) // 2
    return [pairs[i : i + half] for i in range(0, len(pairs), half)]


@given(HOSTS, st.integers(0, 9), st.data())
def test_a_bisection_has_perfect_matchings_and_no_pair_twice(
    hosts: list[str], seed: int, data: st.DataObject
) -> None:
    rounds = data.draw(st.integers(1, 2 * patterns.matchings(len(hosts))))
    found = matchings(hosts, rounds, seed)
    assert len(found) == rounds
    every = [pair for matching in found for pair in matching]
    assert len(set(every)) == len(every)
    for matching in found:
        ends = [end for pair in matching for end in (pair.sender, pair.receiver)]
        assert len(set(ends)) == len(ends) == len(hosts) - len(hosts) % 2
    once = found[: patterns.matchings(len(hosts))]
    for first, second in zip(once[::2], once[1::2], strict=False):
        for side in ("sender", "receiver"):
            ends = [getattr(pair, side) for pair in [*first, *second]]
            assert len(set(ends)) == len(ends)


@given(st.integers(2, 12))
def test_all_rounds_of_a_bisection_are_all_pairs(count: int) -> None:
    hosts = [f"n{i}" for i in range(count)]
    most = patterns.matchings(count)
    met = [{p.sender, p.receiver} for m in matchings(hosts, most, 1) for p in m]
    assert len(met) == count * (count - 1) // 2
    assert all({a, b} in met for a, b in combinations(hosts, 2))
    assert {*matchings(hosts, 2 * most, 1)[0]} < {*patterns.everyone(hosts)} or count == 2


def test_a_bisections_pairs_are_of_the_campaigns_seed() -> None:
    text = RACKS + "pairs: bisection\norder: {seed: %d}\n"
    assert names(text % 1) == names(text % 1)
    assert len({tuple(names(text % seed)) for seed in range(8)}) > 4
    assert read(text % 1).pairs == parse(read(text % 1).text, "r", catalogue=catalogue()).pairs


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ("ring", "n1>n2 n2>n3 n3>m1 m1>m2 m2>n1"),
        ("{ring: [rack2, n1]}", "m1>m2 m2>n1 n1>m1"),
        ("{all: 'n[1-2]'}", "n1>n2 n2>n1"),
        ("{star: rack1, hub: n2}", "n1>n2 n3>n2 n2>n1 n2>n3"),
        ("{senders: rack1, receivers: rack2}", "n1>m1 n1>m2 n2>m1 n2>m2 n3>m1 n3>m2"),
        ("{senders: rack2, receivers: all}", "m1>n1 m1>n2 m1>n3 m1>m2 m2>n1 m2>n2 m2>n3 m2>m1"),
        ("[{sender: rack1, receiver: m1}]", "n1>m1 n2>m1 n3>m1"),
        ("[{sender: 'n[1-2]', receiver: m1}, {ring: rack2}]", "n1>m1 n2>m1 m1>m2 m2>m1"),
        ("[{sender: 'rack[1-2]', receiver: n1}]", "n2>n1 n3>n1 m1>n1 m2>n1"),
    ],
)
def test_pairs_are_of_hosts_groups_and_notations(pairs: str, expected: str) -> None:
    assert names(f"{RACKS}pairs: {pairs}\n") == expected.split()


def test_groups_and_links_are_in_the_campaign() -> None:
    campaign = read(
        RACKS + "  both: [rack1, rack2]\nlinks: {up: rack1, core: {hosts: [m1, n1], capacity: 2}}\n"
    )
    assert campaign.groups == {
        "rack1": ("n1", "n2", "n3"),
        "rack2": ("m1", "m2"),
        "both": ("n1", "n2", "n3", "m1", "m2"),
    }
    assert campaign.links == {"up": Link(("n1", "n2", "n3")), "core": Link(("m1", "n1"), 2)}
    crossing = {
        name: campaign.links["up"].used_by(Pair(*name.split(">")))
        for name in ("n1>m1", "m1>n1", "n1>n2", "m1>m2")
    }
    assert crossing == {"n1>m1": True, "m1>n1": True, "n1>n2": False, "m1>m2": False}
