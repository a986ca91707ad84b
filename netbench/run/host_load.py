"""Whether hosts are quiet and steady enough to measure: what `check` warns of before a campaign.
Only reads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from netbench.base.errors import EngineError
from netbench.base.json_lines import to_line
from netbench.model import Campaign
from netbench.read.noise_labels import KINDS, in_words, signs
from netbench.result.files import HostEntry, parse_noise
from netbench.run.finding import Finding
from netbench.run.noise import NoiseMonitor
from netbench.run.worker_pool import WorkerPool

LOOK_SECONDS = 0.2
BUSY_SHARE = 0.5  # of all CPUs, as the load average of the last minute
LOOKED_FOR = (
    "load",
    "steal",
    "clock",
    "link",
    "nic",
)  # signs of noise; the network has other users
# A fact, whether it is of a whole kernel, whether a value is bad, what is said, and what to do.
DOUBTS: tuple[tuple[str, bool, Callable[[str], bool], str, str], ...] = (
    (
        "governor",
        True,
        lambda governor: governor != "performance",
        "the frequency governor is {}",
        "set it to performance for steadier numbers",
    ),
    (
        "turbo",
        True,
        lambda turbo: turbo == "on",
        "turbo is {}",
        "turn it off for steadier numbers, or expect drift with temperature",
    ),
    (
        "irqbalance",
        True,
        lambda irqbalance: irqbalance == "running",
        "irqbalance is {} and may move interrupts to other CPUs in mid-campaign",
        "stop it, and set irq_affinity",
    ),
    (
        "duplex",
        False,
        lambda duplex: duplex == "half",
        "its link runs at {} duplex",
        "let both ends negotiate, or set full duplex at both",
    ),
)
Entries = Mapping[str, HostEntry]
"""Entries of facts.json by host."""
Doubts = Iterator[tuple[str, str, str]]
"""A host, what was noticed there, and what to do."""


def warnings(
    campaign: Campaign, pool: WorkerPool, entries: Entries, look: float = 0.0
) -> Iterator[Finding]:
    """Everything noticed. `look`: for how many seconds to watch for noise; 0: not at all. Errors:
    those of losing a host.
    """
    for doubts in (
        _of_hosts(pool, entries),
        _of_pairs(campaign, entries),
        _noise(campaign, pool, entries, look) if look else (),
    ):
        for host, what, remedy in doubts:
            yield Finding("warning", host, what, remedy)


def _noise(campaign: Campaign, pool: WorkerPool, entries: Entries, seconds: float) -> Doubts:
    """What disturbs hosts while nothing of the campaign runs there, as around a block."""
    kept: list[Mapping[str, Any]] = []
    with NoiseMonitor(campaign, pool, kept.append).around(0):
        time.sleep(seconds)
    for one in kept:
        noise = parse_noise(to_line({"time": "", **one}), "noise")
        for sign in signs(noise, entries[noise.host].clock_ticks):
            if sign.kind in LOOKED_FOR:
                what, remedy = KINDS[sign.kind]
                yield noise.host, f"{what} within {seconds:g} s: {in_words(sign)}", remedy


def _of_hosts(pool: WorkerPool, entries: Entries) -> Doubts:
    states = _link_states(pool, entries)
    spoken: set[str] = set()
    for host, entry in entries.items():
        facts, first = entry.known, entry.boot_id not in spoken
        spoken.add(entry.boot_id)
        load = facts.get("load", "").partition(" ")[0][:20]
        with suppress(ValueError):  # what a host has answered is no number
            if first and float(load or 0) > BUSY_SHARE * entry.cpus:
                remedy = "stop what else runs here, or expect wider intervals"
                yield host, f"the load average is {load}", remedy
        for fact, of_kernel, is_bad, what, remedy in DOUBTS:
            if fact in facts and is_bad(facts[fact]) and (first or not of_kernel):
                yield host, what.format(facts[fact]), remedy
        if (state := states.get(host, "up")) != "up":
            what = f"{facts['interface']} is not up ({state}): no run will get through"
            remedy = "look at the cable and the other end, bring the link up, or name another"
            yield host, what, f"{remedy} interface"


def _link_states(pool: WorkerPool, entries: Entries) -> dict[str, str]:
    """Of the data interfaces that are known and tell."""
    states: dict[str, str] = {}

    def ask(host: str) -> None:
        if name := entries[host].known.get("interface"):
            with suppress(EngineError):
                states[host] = pool.host_worker(host).operate("link", (name, "state"))[0].strip()

    pool.each(ask)
    return states


def _of_pairs(campaign: Campaign, entries: Entries) -> Doubts:
    """Two ends whose links differ."""
    remedy = "the slower end bounds throughput, and a queue on the way may drop"
    for pair in campaign.pairs:
        for fact, unit in (("speed", " Mb/s"), ("duplex", "")):
            ends = (entries[host].known.get(fact) for host in (pair.sender, pair.receiver))
            one, other = (end or "unknown" for end in ends)
            if "unknown" not in (one, other) and one != other:
                far = f"that of {pair.receiver} {other}{unit}"
                yield pair.sender, f"its link has {fact} {one}{unit}, {far}", remedy
