"""Whether hosts are quiet and steady enough to measure: what `check` warns of. Only reads."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

from netbench.base.errors import EngineError
from netbench.base.json_lines import now, to_line
from netbench.model import Campaign
from netbench.read.noise_labels import KINDS, in_words, signs
from netbench.result.files import HostEntry, parse_noise
from netbench.run.finding import Finding
from netbench.run.noise import NoiseMonitor
from netbench.run.worker_pool import WorkerPool

LOOK_SECONDS = 0.2
LOOKED_FOR = ("load", "steal", "memory", "clock", "link", "nic")  # the network has other users
OF_KERNEL = ("governor", "turbo", "irqbalance", "cpu_quota")  # facts
Entries = Mapping[str, HostEntry]
"""Entries of facts.json by host."""


def _doubt(fact: str, value: str) -> tuple[str, str] | None:
    """What is said of a fact, and what to do; None where it is well."""
    match fact, value:
        case "governor", other if other not in ("", "performance"):
            remedy = "set it to performance for steadier numbers"
            return f"the frequency governor is {other}", remedy
        case "turbo", "on":
            remedy = "turn it off for steadier numbers, or expect drift with temperature"
            return "turbo is on", remedy
        case "irqbalance", "running":
            what = "irqbalance is running and may move interrupts to other CPUs in mid-campaign"
            return what, "stop it, and set irq_affinity"
        case "cpu_quota", other if other not in ("", "none"):
            what = f"a cgroup lets netbench use {other} CPUs, which bounds what it moves"
            return what, "run it where there is no CPUQuota="
    return None


@contextmanager
def looking(
    campaign: Campaign, pool: WorkerPool, seconds: float
) -> Iterator[list[Mapping[str, Any]]]:
    """Read what disturbs hosts, as around a block, while movers alone work there, and so many
    seconds at least (0: do not). Errors: of losing a host.
    """
    blocks: list[Mapping[str, Any]] = []
    due = time.monotonic() + seconds
    with NoiseMonitor(campaign, pool, blocks.append).around(0) if seconds else nullcontext():
        yield blocks
        time.sleep(max(0.0, due - time.monotonic()))


def warnings(
    pool: WorkerPool, entries: Entries, blocks: Iterable[Mapping[str, Any]]
) -> Iterator[Finding]:
    """Everything noticed. Errors: of losing a host."""
    yield from _of_hosts(pool, entries)
    for one in blocks:
        noise = parse_noise(to_line({"time": now(), **one}), "noise")
        for sign in signs(noise, entries[noise.host].clock_ticks):
            if sign.kind in LOOKED_FOR:
                what, remedy = KINDS[sign.kind]
                seconds = (noise.ns[1] - noise.ns[0]) / 1e9
                what = f"{what} within {seconds:.2g} s: {in_words(sign)}"
                yield Finding("warning", noise.host, what, remedy)


def _of_hosts(pool: WorkerPool, entries: Entries) -> Iterator[Finding]:
    spoken: set[str] = set()
    for host, entry in entries.items():
        facts, first = entry.known, entry.boot_id not in spoken
        spoken.add(entry.boot_id)
        for fact in OF_KERNEL if first else ():
            if doubt := _doubt(fact, facts.get(fact, "")):
                yield Finding("warning", host, *doubt)
        if (state := _link_state(pool, host, facts)) != "up":
            what = f"{facts['interface']} is not up ({state}): no run will get through"
            remedy = "look at the cable and the other end, bring the link up, or name another"
            yield Finding("warning", host, what, f"{remedy} interface")


def _link_state(pool: WorkerPool, host: str, facts: Mapping[str, str]) -> str:
    """That of the data interface; `up` where it is not known."""
    with suppress(EngineError):
        if name := facts.get("interface"):
            return pool.host_worker(host).operate("link", (name, "state"))[0].strip()
    return "up"
