"""Whether hosts are quiet and steady enough to measure: what `check` warns of before a campaign.
Only reads.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from netbench.base.errors import EngineError
from netbench.model import Campaign
from netbench.result.files import HostEntry
from netbench.run.host_facts import own_boot_id
from netbench.run.noise_counters import cpu_states, interface
from netbench.run.noise_reading import Question
from netbench.run.worker_pool import WorkerPool

LOOK_SECONDS = 0.2
BUSY_SHARE = 0.5  # of all CPUs, as the load average of the last minute
BUSY_CPUS = 0.25  # that something uses while nothing is measured
STOLEN_CPUS = 0.02
FREQUENCY_SPREAD = 0.1
STAT: Question = ("file", ("/proc/stat",))
Entries = Mapping[str, HostEntry]
"""Entries of facts.json by host."""


@dataclass(frozen=True)
class HostWarning:
    """What makes numbers noisy on a host, and what to do."""

    host: str
    what: str
    remedy: str


@dataclass
class _Look:
    """What was seen of one host: texts by question, and CPU states before and after."""

    texts: dict[Question, str] = field(default_factory=dict)
    cpu: list[dict[str, int]] = field(default_factory=list)
    at: list[float] = field(default_factory=list)
    own: list[float] = field(
        default_factory=list
    )  # seconds that this process used, where it is on that kernel


def warnings(
    campaign: Campaign, pool: WorkerPool, entries: Entries, look: float = 0.0
) -> Iterator[HostWarning]:
    """Everything noticed. `look`: for how many seconds to watch the CPUs; 0: not at all. Errors:
    those of losing a host.
    """
    looks = _looks(campaign, pool, entries, look)
    spoken: set[str] = set()
    for host, entry in entries.items():
        if entry.boot_id not in spoken:  # once a kernel
            spoken.add(entry.boot_id)
            yield from _facts(host, entry)
            yield from _cpu(host, entry, looks[host])
        yield from _network(host, entry.known, looks[host])
    for pair in campaign.pairs:
        yield from _ends(pair.sender, pair.receiver, entries)


def _looks(
    campaign: Campaign, pool: WorkerPool, entries: Entries, seconds: float
) -> dict[str, _Look]:
    """Looks at all hosts at the same time."""
    looks = {host: _Look() for host in entries}
    here = own_boot_id()

    def read(host: str, questions: list[Question]) -> None:
        answers = dict(zip(questions, pool.host_worker(host).ask(questions), strict=True))
        seen = looks[host]
        if (
            STAT in answers
            and isinstance(text := answers.pop(STAT), str)
            and text.startswith("cpu ")
        ):  # hidden in a container
            seen.cpu.append(cpu_states(text))
            seen.at.append(time.monotonic())
            seen.own.append(sum(os.times()[:4]) if entries[host].boot_id == here else 0.0)
        seen.texts |= {
            question: answer
            for question, answer in answers.items()
            if not isinstance(answer, EngineError)
        }

    def first(host: str) -> None:
        name = entries[host].known.get("interface")
        questions: list[Question] = [("file", ("/proc/cpuinfo",))]
        questions += [("file", ("/proc/net/dev",)), ("link", (name, "state"))] if name else []
        read(host, [*questions, STAT] if seconds else questions)

    pool.each(first)
    if seconds:
        time.sleep(seconds)
        pool.each(lambda host: read(host, [STAT]))
    return looks


def _facts(host: str, entry: HostEntry) -> Iterator[HostWarning]:
    facts = entry.facts
    load = str(facts.get("load") or "").partition(" ")[0][:20]
    if _number(load) > BUSY_SHARE * entry.cpus:
        yield HostWarning(
            host,
            f"the load average is {load}",
            "stop what else runs here, or expect wider intervals",
        )
    governor = facts.get("governor")
    if governor and governor != "performance":
        yield HostWarning(
            host,
            f"the frequency governor is {governor}",
            "set it to performance for steadier numbers",
        )
    if facts.get("turbo") == "on":
        yield HostWarning(
            host,
            "turbo is on",
            "turn it off for steadier numbers, or expect drift with temperature",
        )
    if facts.get("irqbalance") == "running":
        what = "irqbalance is running and may move interrupts to other CPUs in mid-campaign"
        yield HostWarning(host, what, "stop it, and set irq_affinity")


def _number(text: str) -> float:
    """A number that a host has answered; 0 where it is none."""
    try:
        return float(text)
    except ValueError:
        return 0.0


def _cpu(host: str, entry: HostEntry, look: _Look) -> Iterator[HostWarning]:
    clocks = [
        _number(value)
        for line in look.texts.get(("file", ("/proc/cpuinfo",)), "").splitlines()
        for key, _, value in [line.partition(":")]
        if key.strip() == "cpu MHz"
    ]
    if clocks and max(clocks) > min(clocks) * (1 + FREQUENCY_SPREAD):
        what = f"its CPUs run at {min(clocks):.0f} to {max(clocks):.0f} MHz now"
        yield HostWarning(
            host, what, "set governor to performance, or warm up longer than clocks take to rise"
        )
    if len(look.cpu) < 2:
        return
    seconds = look.at[1] - look.at[0]
    per_second = entry.clock_ticks * seconds
    moved = {name: value - look.cpu[0].get(name, 0) for name, value in look.cpu[1].items()}
    used = sum(
        moved[name] for name in ("user", "nice", "system", "irq", "softirq") if name in moved
    )
    others = used / per_second - (look.own[1] - look.own[0]) / seconds
    if others >= BUSY_CPUS:
        what = f"{others:.1f} CPUs are busy with something else"
        yield HostWarning(host, what, "stop what else runs here (`top`), or expect wider intervals")
    stolen = moved.get("steal", 0) / per_second
    if stolen >= STOLEN_CPUS:
        yield HostWarning(
            host,
            f"the hypervisor takes {stolen:.2f} CPUs away",
            "use a machine whose CPUs are not shared",
        )


def _network(host: str, facts: Mapping[str, str], look: _Look) -> Iterator[HostWarning]:
    name = facts.get("interface")
    if not name:
        return
    state = look.texts.get(("link", (name, "state")), "up").strip()
    if state != "up":
        what = f"{name} is not up ({state}): no run will get through"
        yield HostWarning(
            host,
            what,
            "look at the cable and the other end, bring the link up, or name another interface",
        )
    try:
        counted = interface(look.texts.get(("file", ("/proc/net/dev",)), ""), name)
    except ValueError:
        counted = {}
    bad = [f"{key.partition('.')[2]} {value}" for key, value in counted.items() if value]
    if bad:
        what = f"{name} has counted {', '.join(bad)} since it was created"
        yield HostWarning(
            host,
            what,
            "check whether they grow (`ethtool -S`); the report shows what changes during each"
            " block",
        )
    if facts.get("duplex") == "half":
        yield HostWarning(
            host,
            f"{name} runs at half duplex",
            "let both ends negotiate, or set full duplex at both",
        )


def _ends(sender: str, receiver: str, entries: Entries) -> Iterator[HostWarning]:
    """Two ends whose links differ."""
    for fact, unit in (("speed", " Mb/s"), ("duplex", "")):
        one, other = (str(entries[end].facts.get(fact) or "unknown") for end in (sender, receiver))
        if "unknown" not in (one, other) and one != other:
            what = f"its link has {fact} {one}{unit}, that of {receiver} {other}{unit}"
            yield HostWarning(
                sender, what, "the slower end bounds throughput, and a queue on the way may drop"
            )
