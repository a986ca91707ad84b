"""Hosts by the hundred: inventories, notations, and what is said of all."""

from __future__ import annotations

import json
import random
from itertools import combinations, permutations
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from netbench.base.errors import CampaignError
from netbench.campaign import load, parse, patterns
from netbench.model import Campaign, Host, Link, Pair
from tests.support.hand_catalogue import catalogue

H = "netbench: 1\nname: x\n"
LISTED = """\
{"_meta": {"hostvars": {
    "mail.example.com": {"ansible_port": 2222, "ansible_user": "everyone", "here": "{{ 1 }}"},
    "node01": {"ansible_user": "root", "netbench_interface": "eth1", "netbench_run_as": "nobody"},
    "gpu1": {"ansible_user": "bench", "ansible_host": "192.168.0.9", "ansible_port": null,
             "netbench_address": "10.0.0.9", "netbench_run_as": "nobody"}}},
 "all": {"children": ["racks", "ungrouped"]},
 "racks": {"children": ["rack1", "rack2"]},
 "rack1": {"hosts": ["node01", "gpu1"]},
 "rack2": {"hosts": ["node04"]},
 "empty": {},
 "ungrouped": {"hosts": ["mail.example.com"]}}
"""  # as ansible-inventory --list prints: each host has the variables of its groups


def read(
    folder: Path, hosts: str, more: str = "", inventory: str = "", name: str = "hosts"
) -> Campaign:
    """The campaign of a file beside its inventory."""
    (folder / name).write_text(inventory)
    file = folder / "c.yaml"
    file.write_text(f"{H}hosts: {hosts}\n{more}")
    return load(file, catalogue=catalogue())


def problems(
    folder: Path, hosts: str, more: str = "", inventory: str = "", name: str = "hosts"
) -> list[str]:
    with pytest.raises(CampaignError) as error:
        read(folder, hosts, more, inventory, name)
    return str(error.value).replace(f"{folder}/", "").split("\n")


def test_what_ansible_prints(tmp_path: Path) -> None:
    campaign = read(tmp_path, "{from: hosts}", inventory=LISTED)
    assert campaign.hosts == {
        "node01": Host("node01", "root@node01", None, "eth1", run_as="nobody"),
        "gpu1": Host("gpu1", "bench@192.168.0.9", "10.0.0.9", run_as="nobody"),
        "node04": Host("node04", "node04"),
        "mail.example.com": Host("mail.example.com", "ssh://everyone@mail.example.com:2222"),
    }
    rack1 = ("node01", "gpu1")
    assert campaign.groups == {"racks": (*rack1, "node04"), "rack1": rack1, "rack2": ("node04",)}


def printed(**hosts: object) -> str:
    """What Ansible prints of hosts without groups."""
    return json.dumps({"_meta": {"hostvars": hosts}, "all": {"hosts": list(hosts)}})


@pytest.mark.parametrize(
    "inventory",
    [
        "# all\nnode[01-02,04]\n\nhead  # the login\n",
        "node01\nnode02\nnode04,head\n",
        printed(node01={}, node02={}, node04={}, head={}),
    ],
)
def test_a_list_of_names(tmp_path: Path, inventory: str) -> None:
    campaign = read(tmp_path, "{from: hosts}", inventory=inventory)
    assert {name: host.ssh for name, host in campaign.hosts.items()} == {
        name: name for name in ("node01", "node02", "node04", "head")
    }
    assert not campaign.groups


def test_ports_and_hosts_that_are_this_machine(tmp_path: Path) -> None:
    inventory = printed(
        six={"ansible_host": "fd00::1", "ansible_port": "22", "ansible_user": "a"},
        own={"netbench_ssh": "x@y", "ansible_host": "z"},
        here={"ansible_connection": "local"},
    )
    hosts = read(tmp_path, "{from: hosts}", inventory=inventory).hosts
    found = {name: host.ssh for name, host in hosts.items()}
    assert found == {"six": "ssh://a@[fd00::1]:22", "own": "x@y", "here": None}


A_AND_B = {
    "_meta": {"hostvars": {f"n{i}": {"netbench_interface": "eth1"} for i in range(1, 5)}},
    "all": {"children": ["a", "b"]},
    "a": {"hosts": ["n1", "n2", "n3", "n4"]},
    "b": {"hosts": ["n1"]},
}


def test_names_beside_an_inventory_override_it(tmp_path: Path) -> None:
    (tmp_path / "racks").mkdir()
    campaign = read(
        tmp_path,
        "\n  from: racks/hosts\n  n[1-2]: {interface: eth9}\n  n2: {address: 10.0.0.2}\n"
        "  n3: local\n  new: {ssh: root@new}\n",
        "groups: {b: [n3, new]}\npairs: {sender: a, receiver: b}\n",
        json.dumps(A_AND_B),
        "racks/hosts",
    )
    hosts = campaign.hosts
    assert {name: (host.ssh, host.address, host.interface) for name, host in hosts.items()} == {
        "n1": ("n1", None, "eth9"),
        "n2": ("n2", "10.0.0.2", "eth9"),
        "n3": (None, None, None),
        "n4": ("n4", None, "eth1"),
        "new": ("root@new", None, None),
    }
    assert campaign.groups == {"a": ("n1", "n2", "n3", "n4"), "b": ("n3", "new")}


def test_the_text_of_a_campaign_needs_no_inventory(tmp_path: Path) -> None:
    more = "pairs: {bisection: racks, rounds: 3}\nlinks: {up: rack1}\n"
    campaign = read(tmp_path, "{from: hosts}", more, LISTED)
    (tmp_path / "hosts").unlink()
    stored = tmp_path / "stored.yaml"
    stored.write_text(campaign.text)
    again = load(stored, catalogue=catalogue())
    for part in ("hosts", "groups", "links", "pairs", "cells"):
        assert getattr(again, part) == getattr(campaign, part)
    assert campaign.text.startswith("# effective campaign of: hosts of hosts written out\n")
    assert again.text == campaign.text
    assert yaml.safe_load(campaign.text)["hosts"]["node01"]["ssh"] == "root@node01"


def test_a_notation_gives_each_host_its_own(tmp_path: Path) -> None:
    campaign = read(
        tmp_path,
        "\n  node[08-10]: {ssh: 'root@{host}.example', address: '10.0.0.[8-10]'}\n"
        "  gpu[1-2]: {ssh: 'gpu[01-02]'}\n  gpu2: {interface: eth1}\n",
    )
    assert [(h.name, h.ssh, h.address, h.interface) for h in campaign.hosts.values()] == [
        ("node08", "root@node08.example", "10.0.0.8", None),
        ("node09", "root@node09.example", "10.0.0.9", None),
        ("node10", "root@node10.example", "10.0.0.10", None),
        ("gpu1", "gpu01", None, None),
        ("gpu2", "gpu02", None, "eth1"),
    ]


NOT_A_NAME = (
    "hosts:{}: expected a host's name, or several as in node[01-64,70], got {!r}; of an inventory"
    " of Ansible's write what it finds: `ansible-inventory -i FILE --list > hosts.json`"
)
NOT_ANSIBLES = (
    "hosts: expected what Ansible prints: `ansible-inventory -i FILE --list > hosts.json`"
)


@pytest.mark.parametrize(
    ("inventory", "expected"),
    [
        ("n1\n[rack1]\nnode1\n", [NOT_A_NAME.format(2, "[rack1]")]),
        (
            printed(
                n1={"netbench_interfaces": "e", "ansible_port": "x"},
                b={"netbench_address": "10.0.0.0/8"},
            ),
            [
                "hosts: b.netbench_address: expected an IP address such as 192.168.2.1 or fd00::1, got '10.0.0.0/8'",
                "hosts: n1.ansible_port: expected a port, a whole number from 1 to 65535, got 'x'",
                "hosts: n1.netbench_interfaces: netbench has no such variable (did you mean 'netbench_interface'?)",
            ],
        ),
        (
            printed(**{"fd00::1": {}}),
            ["hosts: expected a host's name, got 'fd00::1'; an address is its ansible_host"],
        ),
        ('{"all": {}}', [NOT_ANSIBLES]),
        ('{"_meta": {"hostvars": {}}, "all": {"children": ["all"]}}', [NOT_ANSIBLES]),
        ("# none\n", ["hosts: expected hosts, got none"]),
        ("a[0-9998]\nb\nc\nd\n", ["hosts:3: expected at most 10000 hosts, got more"]),
        (
            printed(**{f"n{n}": {} for n in range(10_001)}),
            ["hosts: expected at most 10000 hosts, got more"],
        ),
        ("a\x07\n", ["hosts:1: expected text, got the control character U+0007"]),
    ],
)
def test_a_malformed_inventory_is_told_with_file_and_line(
    tmp_path: Path, inventory: str, expected: list[str]
) -> None:
    assert problems(tmp_path, "{from: hosts}", inventory=inventory) == expected


def test_problems_of_both_files_are_told_at_once(tmp_path: Path) -> None:
    found = problems(tmp_path, "{from: hosts, b: {x: 1}}", "pairs: {ring: q}\nverify: x\n", "a b\n")
    assert found == [
        "c.yaml:3: hosts.b.x: unknown key, expected ssh, address, interface, boot or run_as",
        "c.yaml:5: verify: expected on or off, got 'x'",
        NOT_A_NAME.format(1, "a b"),
    ]


# Pairs by topology, groups and links


RACKS = (
    H + "hosts:\n  n[1-3]: local\n  m[1-2]: local\ngroups:\n  rack1: n[1-3]\n  rack2: [m1, m2]\n"
)
HOSTS = st.integers(2, 24).map(lambda n: [f"n{i}" for i in range(n)])


def read_of_pairs(text: str) -> Campaign:
    return parse(text, "c.yaml", catalogue=catalogue())


def names(text: str) -> list[str]:
    return [pair.name for pair in read_of_pairs(text).pairs]


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
    hosts, most = [f"n{i}" for i in range(count)], patterns.matchings(count)
    met = [{p.sender, p.receiver} for m in matchings(hosts, most, 1) for p in m]
    assert len(met) == count * (count - 1) // 2
    assert all({a, b} in met for a, b in combinations(hosts, 2))
    every = {Pair(a, b) for a, b in permutations(hosts, 2)}
    assert {*matchings(hosts, 2 * most, 1)[0]} < every or count == 2


def test_a_bisections_pairs_are_of_the_campaigns_seed() -> None:
    text = RACKS + "pairs: bisection\norder: {seed: %d}\n"
    assert names(text % 1) == names(text % 1)
    assert len({tuple(names(text % seed)) for seed in range(8)}) > 4
    assert (
        read_of_pairs(text % 1).pairs
        == parse(read_of_pairs(text % 1).text, "r", catalogue=catalogue()).pairs
    )


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ("ring", "n1>n2 n2>n3 n3>m1 m1>m2 m2>n1"),
        ("{ring: [rack2, n1]}", "m1>m2 m2>n1 n1>m1"),
        ("{all: 'n[1-2]'}", "n1>n2 n2>n1"),
        ("{star: rack1, hub: n2}", "n1>n2 n3>n2 n2>n1 n2>n3"),
        ("{sender: rack1, receiver: rack2}", "n1>m1 n1>m2 n2>m1 n2>m2 n3>m1 n3>m2"),
        ("{sender: rack2, receiver: all}", "m1>n1 m1>n2 m1>n3 m1>m2 m2>n1 m2>n2 m2>n3 m2>m1"),
        ("[{sender: rack1, receiver: m1}]", "n1>m1 n2>m1 n3>m1"),
        ("[{sender: 'n[1-2]', receiver: m1}, {ring: rack2}]", "n1>m1 n2>m1 m1>m2 m2>m1"),
        ("[{sender: 'rack[1-2]', receiver: n1}]", "n2>n1 n3>n1 m1>n1 m2>n1"),
    ],
)
def test_pairs_are_of_hosts_groups_and_notations(pairs: str, expected: str) -> None:
    assert names(f"{RACKS}pairs: {pairs}\n") == expected.split()


def test_groups_and_links_are_in_the_campaign() -> None:
    campaign = read_of_pairs(
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
