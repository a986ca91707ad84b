"""Rings of lab hosts: one has a link of a lower rate, one no TSO, behind the campaign's back."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import yaml

from netbench import lab as labs
from netbench.lab import Lab, LabHost
from netbench.lab.command import Tools, find
from netbench.lab.lab import LabSpec
from netbench.lab.lifecycle import own_name
from netbench.lab.netns import shape
from netbench.lab.state import SWITCH, namespace_name

RATE = 10**9
"""Bits a second of the slow link: veth moves many times as much."""


@dataclass(frozen=True)
class Faults:
    """The host whose link has a lower rate each way, and the one that segments in software."""

    capped: str
    without_tso: str


def chosen(lab: Lab, seed: int) -> Faults:
    """Two hosts that are no neighbours, whose pair would have two faults: one hides the other."""
    names = list(lab.hosts)
    rng = random.Random(seed)
    capped = rng.randrange(len(names))
    other = (capped + rng.randrange(2, len(names) - 1)) % len(names)
    return Faults(names[capped], names[other])


@contextmanager
def lab_of(hosts: int) -> Iterator[Lab]:
    """A lab in the name of this process: were it killed, the next campaign's lab would remove it."""
    lab = labs.up("netns", hosts, name=own_name())
    try:
        yield lab
    finally:
        labs.down(lab.name)


@contextmanager
def faulty(lab: Lab, faults: Faults) -> Iterator[None]:
    """The lab with its faults."""
    tools = find(("ip", "tc", "ethtool"))
    capped, without_tso = lab.host(faults.capped), lab.host(faults.without_tso)
    switch = namespace_name(lab.name, SWITCH)
    port = f"data{list(lab.hosts).index(faults.capped) + 1}"
    words = shape(LabSpec("netns", lab.name, (), RATE, None)).split()
    ends = [(capped.namespace, capped.interface), (switch, port)]
    for namespace, interface in ends:
        tools.run(("tc", "-n", namespace, "qdisc", "add", "dev", interface, "root", *words))
    _tso(tools, without_tso, "off")
    try:
        yield
    finally:
        _tso(tools, without_tso, "on")
        for namespace, interface in ends:
            tools.run(("tc", "-n", namespace, "qdisc", "del", "dev", interface, "root"))


def _tso(tools: Tools, host: LabHost, state: str) -> None:
    inside = ("ip", "netns", "exec", host.namespace)
    tools.run((*inside, "ethtool", "-K", host.interface, "tso", state))


def campaign_of(lab: Lab, blocks: int, seed: int) -> str:
    """Each host sends to the next: runs of 50 ms."""
    hosts = list(lab.hosts)
    pairs = zip(hosts, [*hosts[1:], hosts[0]], strict=True)
    text = {
        **{"netbench": 1, "name": "ring", **lab.block(), "verify": "off"},
        "pairs": [{"sender": a, "receiver": b} for a, b in pairs],
        "transfer": {"duration": "50ms", "warmup": "10ms", "congestion": "cubic"},
        "repeat": {"min": blocks, "max": blocks},
        **{"meters": ["rusage"], "order": {"seed": seed}},
    }
    return yaml.safe_dump(text, sort_keys=False)
