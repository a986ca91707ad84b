"""Hosts by the hundred: inventories, notations, and what is said of all."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from netbench.campaign import load
from netbench.errors import CampaignError
from netbench.model import Campaign, Host
from tests.support.hand_catalogue import catalogue

H = "netbench: 1\nname: x\n"
INI = """\
# racks
mail.example.com ansible_port=2222   # not in a group
[rack1]
node[01:03] ansible_user=root netbench_interface=eth1
gpu1 address=10.0.0.9 ansible_host='192.168.0.9' # by address
[rack2]
node[04-05,08] ansible_ssh_common_args='-o ProxyJump=j' secret='{{ vault }}'
[racks:children]
rack1
rack2
[racks:vars]
ansible_user = bench
interface = "eth0"
netbench_run_as=nobody
[rack2:vars]
interface=eth2
[all:vars]
ansible_user=everyone
here=1
"""
YAML = """\
all:
  vars: {ansible_user: everyone}
  hosts:
    mail.example.com: {ansible_port: 2222}
  children:
    racks:
      vars: {ansible_user: bench, interface: eth0, netbench_run_as: nobody}
      children:
        rack1:
          hosts:
            node[01:03]: {ansible_user: root, netbench_interface: eth1}
            gpu1: {address: 10.0.0.9, ansible_host: 192.168.0.9, secret: !vault "x", more: [1]}
        rack2:
rack2:
  hosts:
    node[04-05,08]:
  vars: {interface: eth2}
"""


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


def racks(campaign: Campaign) -> None:
    """Both files above say the same."""
    assert campaign.hosts == {
        "mail.example.com": Host("mail.example.com", "ssh://everyone@mail.example.com:2222"),
        **{
            f"node0{n}": Host(f"node0{n}", f"root@node0{n}", None, "eth1", run_as="nobody")
            for n in (1, 2, 3)
        },
        "gpu1": Host("gpu1", "bench@192.168.0.9", "10.0.0.9", "eth0", run_as="nobody"),
        **{
            f"node0{n}": Host(f"node0{n}", f"bench@node0{n}", None, "eth2", run_as="nobody")
            for n in (4, 5, 8)
        },
    }
    rack1, rack2 = ("node01", "node02", "node03", "gpu1"), ("node04", "node05", "node08")
    assert campaign.groups == {"racks": rack1 + rack2, "rack1": rack1, "rack2": rack2}


@pytest.mark.parametrize("name", ["hosts", "hosts.ini"])
def test_an_ini_inventory(tmp_path: Path, name: str) -> None:
    racks(read(tmp_path, f"{{from: {name}}}", inventory=INI, name=name))


def test_null_is_nothing_in_an_inventory(tmp_path: Path) -> None:
    text = '{"all": {"hosts": {"a": null, "b": {"ansible_host": null, "ansible_port": 22}}}}'
    campaign = read(tmp_path, "{from: hosts.json}", inventory=text, name="hosts.json")
    assert [host.ssh for host in campaign.hosts.values()] == ["a", "ssh://b:22"]


@pytest.mark.parametrize("name", ["hosts", "hosts.yml"])
def test_a_yaml_inventory(tmp_path: Path, name: str) -> None:
    racks(read(tmp_path, f"{{from: {name}}}", inventory=YAML, name=name))


@pytest.mark.parametrize(
    "inventory",
    [
        "# all\nnode[01-02,04]\n\nhead  # the login\n",
        "node01\nnode02\nnode04,head\n",
        "- node[01-02,04]\n- head\n",
        "node[01:02]\nnode04\nhead\n",
    ],
)
def test_a_list_of_names(tmp_path: Path, inventory: str) -> None:
    campaign = read(tmp_path, "{from: hosts}", inventory=inventory)
    assert {name: host.ssh for name, host in campaign.hosts.items()} == {
        name: name for name in ("node01", "node02", "node04", "head")
    }
    assert not campaign.groups


def test_ports_and_hosts_that_are_this_machine(tmp_path: Path) -> None:
    inventory = (
        "n[1:2]:2022\nsix ansible_host=fd00::1 ansible_port=22 ansible_user=a\n"
        "here ansible_connection=local\nthere ansible_connection=local address=10.0.0.1\n"
    )
    campaign = read(tmp_path, "{from: hosts}", inventory=inventory)
    assert {name: host.ssh for name, host in campaign.hosts.items()} == {
        "n1": "ssh://n1:2022",
        "n2": "ssh://n2:2022",
        "six": "ssh://a@[fd00::1]:22",
        "here": None,
        "there": None,
    }
    more = read(tmp_path, "{from: hosts}", "defaults: {ssh: 'x@{host}', run_as: b}\n", inventory)
    assert {(host.ssh, host.run_as) for host in more.hosts.values() if host.local} == {(None, "b")}


def test_groups_of_a_group_give_way_to_its_own_and_to_priority(tmp_path: Path) -> None:
    inventory = (
        "[a]\nn1\n[b]\nn1\n[c:children]\na\n[a:vars]\ninterface=a0\n[b:vars]\ninterface=b0\n"
        "[c:vars]\ninterface=c0\n"
    )
    before = read(tmp_path, "{from: hosts}", inventory=inventory)
    assert before.hosts["n1"].interface == "a0"  # deeper than b
    even = inventory.replace("[c:children]\na\n", "[c]\nn1\n")
    assert read(tmp_path, "{from: hosts}", inventory=even).hosts["n1"].interface == "c0"
    first = even.replace("interface=a0", "interface=a0\nansible_group_priority=9")
    assert read(tmp_path, "{from: hosts}", inventory=first).hosts["n1"].interface == "a0"


def test_names_beside_an_inventory_override_it(tmp_path: Path) -> None:
    campaign = read(
        tmp_path,
        "\n  from: racks/hosts\n  n[1-2]: {interface: eth9}\n  n2: {address: 10.0.0.2}\n"
        "  n3: local\n  new: {ssh: root@new}\n",
        "defaults: {interface: eth0, run_as: bench}\ngroups: {b: [n3, new]}\npairs: {senders: a, receivers: b}\n",
        *_below(tmp_path, "[a]\nn[1:4] interface=eth1\n[b]\nn1\n"),
    )
    hosts = campaign.hosts
    assert {name: (host.ssh, host.address, host.interface) for name, host in hosts.items()} == {
        "n1": ("n1", None, "eth9"),
        "n2": ("n2", "10.0.0.2", "eth9"),
        "n3": (None, None, "eth0"),
        "n4": ("n4", None, "eth1"),
        "new": ("root@new", None, "eth0"),
    }
    assert {host.run_as for host in hosts.values()} == {"bench"}
    assert campaign.groups == {"a": ("n1", "n2", "n3", "n4"), "b": ("n3", "new")}


def _below(folder: Path, inventory: str) -> tuple[str, str]:
    (folder / "racks").mkdir()
    return inventory, "racks/hosts"


def test_the_text_of_a_campaign_needs_no_inventory(tmp_path: Path) -> None:
    more = "pairs: {bisection: racks, rounds: 3}\nlinks: {up: rack1}\n"
    campaign = read(tmp_path, "{from: hosts}", more, INI)
    (tmp_path / "hosts").unlink()
    stored = tmp_path / "stored.yaml"
    stored.write_text(campaign.text)
    again = load(stored, catalogue=catalogue())
    for part in ("hosts", "groups", "links", "pairs", "cells"):
        assert getattr(again, part) == getattr(campaign, part)
    assert campaign.text.startswith("# effective campaign of: hosts of hosts written out\n")
    assert again.text == campaign.text
    assert yaml.safe_load(campaign.text)["hosts"]["node02"]["ssh"] == "root@node02"


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


def test_an_option_changes_one_host_of_many(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(H + "hosts:\n  n[1-3]: {interface: eth0}\nlab: netns\n")
    campaign = load(file, ["hosts.n2.interface=eth7"], catalogue())
    assert [host.interface for host in campaign.hosts.values()] == ["eth0", "eth7", "eth0"]


@pytest.mark.parametrize(
    ("inventory", "expected"),
    [
        (
            "[rack1\nnode1\n[r:childs]\n[b:vars]\nx\n",
            [
                "hosts:1: expected a section such as [rack1], [racks:children] or [rack1:vars], got '[rack1'",
                "hosts:3: expected a section such as [rack1], [racks:children] or [rack1:vars], got '[r:childs]' (did you mean 'children'?)",
                "hosts:4: expected a group that has a section, got [b:vars]",
                "hosts:5: expected NAME=VALUE, got 'x'",
            ],
        ),
        (
            "a b\nn[3:1]\nc d='x\n-x\nfd00::1\n",
            [
                "hosts:1: expected NAME=VALUE after the host, got 'b'",
                "hosts:2: expected a range that goes up, got [3:1] in 'n[3:1]'",
                "hosts:3: expected a host and its variables: no closing quotation",
                "hosts:4: expected a host's name of letters, digits, dots, dashes and underscores, got '-x'; an address is its variable ansible_host",
                "hosts:5: expected a host's name of letters, digits, dots, dashes and underscores, got 'fd00::1'; an address is its variable ansible_host",
            ],
        ),
        (
            "n[1:9] netbench_interfaces=e ansible_port=x\nb address=10.0.0.0/8 interface='{{ data }}'\n",
            [
                "hosts:1: netbench has no variable netbench_interfaces (did you mean 'netbench_interface'?)",
                "hosts:1: ansible_port: expected a port, a whole number from 1 to 65535, got 'x'",
                "hosts:2: address: expected an IP address such as 192.168.2.1 or fd00::1, got '10.0.0.0/8'",
                "hosts:2: interface: expected a value, got the template '{{ data }}'",
            ],
        ),
        (
            "[a:children]\nb\n[b:children]\na\n",
            [
                "hosts:2: expected groups that do not contain themselves, got b",
                "hosts:4: expected groups that do not contain themselves, got a",
            ],
        ),
        (
            "all:\n  hosts: [a]\n  hots:\n  children:\n    r:\n      hosts:\n        n1: {interface: a/b}\n        n2: 5\n",
            [
                "hosts:2: all.hosts: expected a mapping of hosts, got a list",
                "hosts:3: all.hots: unknown key, expected hosts, children or vars (did you mean 'hosts'?)",
                "hosts:7: all.children.r.hosts.n1.interface: expected an interface's name such as eth1, got 'a/b'",
                "hosts:8: all.children.r.hosts.n2: expected a mapping of variables, got '5'",
            ],
        ),
        (
            "all:\n  hosts: {a\n",
            [
                "hosts:3: this is not YAML: did not find expected ',' or '}' while parsing a flow mapping, which began on line 2"
            ],
        ),
        (
            '{"_meta": {"hostvars": {}}, "all": {}}\n',
            [
                "hosts:1: _meta: expected an inventory with its hosts; write what Ansible finds: `ansible-inventory -i FILE --list --yaml > hosts.yaml`"
            ],
        ),
        (
            "#!/bin/sh\necho\n",
            [
                "hosts:1: this is a program; write what it finds: `ansible-inventory -i FILE --list --yaml > hosts.yaml`"
            ],
        ),
        ("# none\n", ["hosts: expected hosts, got none"]),
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
        "hosts:1: expected NAME=VALUE after the host, got 'b'",
    ]


@pytest.mark.parametrize(
    ("hosts", "more", "expected"),
    [
        (
            "{from: gone}",
            "",
            "gone: cannot be read: No such file or directory; give the path of an inventory",
        ),
        (
            "{from: {ssh: x}}",
            "",
            "c.yaml:3: hosts.from: expected the path of an inventory, got a mapping",
        ),
        ("{from: [a]}", "", "c.yaml:3: hosts.from: expected the path of an inventory, got a list"),
        (
            "\n  n[1-3]: {sshh: a}",
            "",
            "c.yaml:4: hosts.n[1-3].sshh: unknown key, expected ssh, address, interface, boot or run_as (did you mean 'ssh'?)",
        ),
        (
            "\n  n[1-3]: {}",
            "",
            "c.yaml:4: hosts.n[1-3]: expected local or a mapping with ssh, address and interface, got an empty mapping",
        ),
        (
            "\n  n[1-3]: {interface: a/b}\n  n2: {run_as: x}",
            "",
            "c.yaml:4: hosts.n[1-3].interface: expected an interface's name such as eth1, got 'a/b'",
        ),
        (
            "\n  n[1-3]: local\n  n[3-4]: local",
            "",
            "c.yaml:5: hosts.n[3-4]: expected each host once, got n3 again, as in n[1-3]",
        ),
        ("\n  n1,n1: local", "", "c.yaml:4: hosts.n1,n1: expected each host once, got n1 again"),
        (
            "\n  n[1: local",
            "",
            "c.yaml:4: hosts.n[1: expected names such as node[01-64,70] or node[01:64], got 'n[1'",
        ),
        (
            "\n  n[1-3]: {ssh: a, address: '10.0.0.[1-2]'}",
            "",
            "c.yaml:4: hosts.n[1-3].address: expected a value for each of 3 hosts, got 2",
        ),
        (
            "{a: {}}",
            "defaults: {interface: a/b, sh: b}\nlab: netns\n",
            "c.yaml:4: defaults.interface: expected an interface's name such as eth1, got 'a/b'",
        ),
    ],
)
def test_what_is_wrong_with_hosts_is_told_once(
    tmp_path: Path, hosts: str, more: str, expected: str
) -> None:
    assert problems(tmp_path, hosts, more)[0] == expected
    assert len(problems(tmp_path, hosts, more)) == (2 if "sh: b" in more else 1)
