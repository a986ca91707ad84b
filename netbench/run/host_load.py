"""Whether hosts are quiet and steady enough to measure: what `check` warns of before a campaign.
Only reads.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
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
_warning = partial(Finding, "warning")
Entries = Mapping[str, HostEntry]
"""Entries of facts.json by host."""


def warnings(
    campaign: Campaign, pool: WorkerPool, entries: Entries, look: float = 0.0
) -> Iterator[Finding]:
    """Everything noticed. `look`: for how many seconds to watch for noise; 0: not at all. Errors:
    those of losing a host.
    """
    states = _link_states(pool, entries)
    spoken: set[str] = set()
    for host, entry in entries.items():
        if entry.boot_id not in spoken:  # once a kernel
            spoken.add(entry.boot_id)
            yield from _facts(host, entry)
        yield from _network(host, entry.known, states.get(host, "up"))
    for pair in campaign.pairs:
        yield from _ends(pair.sender, pair.receiver, entries)
    if look:
        yield from _noise(campaign, pool, entries, look)


def _noise(
    campaign: Campaign, pool: WorkerPool, entries: Entries, seconds: float
) -> Iterator[Finding]:
    """What disturbs hosts while nothing of the campaign runs there, as around a block."""
    kept: list[Mapping[str, Any]] = []
    with NoiseMonitor(campaign, pool, kept.append).around(0):
        time.sleep(seconds)
    for one in kept:
        noise = parse_noise(to_line({"time": "", **one}), "noise")
        for sign in signs(noise, entries[noise.host].clock_ticks):
            if sign.kind in LOOKED_FOR:
                what, remedy = KINDS[sign.kind]
                yield _warning(noise.host, f"{what} within {seconds:g} s: {in_words(sign)}", remedy)


def _link_states(pool: WorkerPool, entries: Entries) -> dict[str, str]:
    """Of the data interfaces that are known and tell."""
    states: dict[str, str] = {}

    def ask(host: str) -> None:
        if name := entries[host].known.get("interface"):
            with suppress(EngineError):
                states[host] = pool.host_worker(host).operate("link", (name, "state"))[0].strip()

    pool.each(ask)
    return states


def _facts(host: str, entry: HostEntry) -> Iterator[Finding]:
    facts = entry.facts
    load = str(facts.get("load") or "").partition(" ")[0][:20]
    if _number(load) > BUSY_SHARE * entry.cpus:
        yield _warning(
            host,
            f"the load average is {load}",
            "stop what else runs here, or expect wider intervals",
        )
    governor = facts.get("governor")
    if governor and governor != "performance":
        yield _warning(
            host,
            f"the frequency governor is {governor}",
            "set it to performance for steadier numbers",
        )
    if facts.get("turbo") == "on":
        yield _warning(
            host,
            "turbo is on",
            "turn it off for steadier numbers, or expect drift with temperature",
        )
    if facts.get("irqbalance") == "running":
        what = "irqbalance is running and may move interrupts to other CPUs in mid-campaign"
        yield _warning(host, what, "stop it, and set irq_affinity")


def _number(text: str) -> float:
    """A number that a host has answered; 0 where it is none."""
    try:
        return float(text)
    except ValueError:
        return 0.0


def _network(host: str, facts: Mapping[str, str], state: str) -> Iterator[Finding]:
    name = facts.get("interface")
    if not name:
        return
    if state != "up":
        yield _warning(
            host,
            f"{name} is not up ({state}): no run will get through",
            "look at the cable and the other end, bring the link up, or name another interface",
        )
    if facts.get("duplex") == "half":
        yield _warning(
            host,
            f"{name} runs at half duplex",
            "let both ends negotiate, or set full duplex at both",
        )


def _ends(sender: str, receiver: str, entries: Entries) -> Iterator[Finding]:
    """Two ends whose links differ."""
    for fact, unit in (("speed", " Mb/s"), ("duplex", "")):
        one, other = (str(entries[end].facts.get(fact) or "unknown") for end in (sender, receiver))
        if "unknown" not in (one, other) and one != other:
            what = f"its link has {fact} {one}{unit}, that of {receiver} {other}{unit}"
            yield _warning(
                sender, what, "the slower end bounds throughput, and a queue on the way may drop"
            )
