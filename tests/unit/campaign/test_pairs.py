"""Pairs by topology, groups and links."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations, permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netbench.base.errors import CampaignError
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


def problems(text: str) -> list[str]:
    with pytest.raises(CampaignError) as error:
        read(text)
    return str(error.value).replace("c.yaml:", "").split("\n")


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
        ("{ring: rack1}", "n1>n2 n2>n3 n3>n1"),
        ("{ring: [rack2, n1]}", "m1>m2 m2>n1 n1>m1"),
        ("{all: 'n[1-2]'}", "n1>n2 n2>n1"),
        ("{star: rack1, hub: n2}", "n1>n2 n3>n2 n2>n1 n2>n3"),
        ("{star: rack2}", "m2>m1 m1>m2"),
        ("{senders: rack1, receivers: rack2}", "n1>m1 n1>m2 n2>m1 n2>m2 n3>m1 n3>m2"),
        ("{senders: rack2, receivers: all}", "m1>n1 m1>n2 m1>n3 m1>m2 m2>n1 m2>n2 m2>n3 m2>m1"),
        ("[{sender: rack1, receiver: m1}]", "n1>m1 n2>m1 n3>m1"),
        ("[{sender: 'n[1-2]', receiver: m1}, {ring: rack2}]", "n1>m1 n2>m1 m1>m2 m2>m1"),
        ("[{sender: n1, receiver: n1}]", "n1>n1"),
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "pairs: rnig\n",
            "9: pairs: expected a list of pairs such as [{sender: snd, receiver: rcv}], or ring, all,"
            " bisection or star, got 'rnig' (did you mean 'ring'?)",
        ),
        ("pairs: {ring: n1}\n", "9: pairs.ring: expected 2 hosts or more, got 1"),
        (
            "pairs: {ring: rack3}\n",
            "9: pairs.ring: expected the name of a host (n1, n2, n3, m1 or m2) or of a group (rack1"
            " or rack2), got 'rack3' (did you mean 'rack2'?)",
        ),
        (
            "pairs: {all: 'n[2-5]'}\n",
            "9: pairs.all: expected the name of a host (n1, n2, n3, m1 or m2) or of a group (rack1"
            " or rack2), got n[4-5] of n[2-5]",
        ),
        (
            "pairs: {all: 'n[2-'}\n",
            "9: pairs.all: expected names such as node[01-64,70], got 'n[2-'",
        ),
        ("pairs: {ring: rack1, rounds: 2}\n", "9: pairs.rounds: unknown key, expected ring"),
        (
            "pairs: {bisection: rack1, rounds: 7}\n",
            "9: pairs.rounds: expected at most 6 rounds of 3 hosts, got 7",
        ),
        (
            "pairs: {star: rack1, hub: m1}\n",
            "9: pairs.hub: expected one of the star's hosts (n1, n2 or n3), got 'm1'",
        ),
        (
            "pairs: [{ring: rack1}, {ring: rack2}, {ring: 'm[1-2]'}]\n",
            "9: pairs[2]: expected each pair once, got m1>m2 again",
        ),
        (
            "  rack1b: [n1, n1b]\n",
            "9: groups.rack1b: expected the name of a host (n1, n2, n3, m1 or m2) or of a group (rack1, rack2 or rack1b), got 'n1b' (did you mean 'n1'?)",
        ),
        ("  n1: m1\n", "9: groups.n1: expected another name, since n1 is a host"),
        ("  all: m1\n", "9: groups.all: expected another name, since all stands for all hosts"),
        (
            "  a: [b, n1]\n  b: a\n",
            "9: groups.a: expected groups that do not contain themselves, got a > b > a",
        ),
        (
            "links: {up: rack9}\n",
            "9: links.up: expected the name of a host (n1, n2, n3, m1 or m2) or of a group (rack1 or rack2), got 'rack9' (did you mean 'rack2'?)",
        ),
        (
            "links: {up: {hosts: rack1, capacity: 0}}\n",
            "9: links.up.capacity: expected pairs, a whole number from 1 to 1000, got '0'",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, expected: str) -> None:
    assert problems(RACKS + text) == [expected]


def test_a_large_fleet_is_named_in_short_and_bounded() -> None:
    text = H + "hosts: {'n[001-400]': local}\n"
    assert problems(text + "pairs: {ring: [n001, n401]}\n") == [
        "4: pairs.ring: expected the name of a host (n[001-400]), got 'n401' (did you mean 'n400'?)"
    ]
    assert problems(text + "pairs: all\n") == ["4: pairs: expected at most 100000 pairs, got more"]


def test_a_pair_that_is_listed_twice_is_noticed_by_name(tmp_path: Path) -> None:
    text = RACKS + "pairs: [{senders: rack1, receivers: m1}, {sender: n2, receiver: m1}]\n"
    assert problems(text) == ["9: pairs[1]: expected each pair once, got n2>m1 again"]
