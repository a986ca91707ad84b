"""What disturbed a campaign's blocks, from the readings around them (docs/records.md): which
counters moved, on which host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from netbench.base.units import listed
from netbench.result.files import NoiseEntry

BUSY = ("user", "nice", "system")  # what processes use; interrupts may be the transfer's own
LEAST_TICKS = 5  # of a process: below, rounding may be all of it
OTHERS = 0.1  # CPUs that something else may use before it is said
STOLEN = 0.01
SPREAD = 0.1  # of the frequency
PROTOCOLS = "Tcp TcpExt Ip IpExt Udp Icmp Ip6 Udp6 Icmp6".split()


@dataclass(frozen=True)
class Sign:
    """One thing that was seen: `kind` (load, steal, clock, link, nic, tcp, irqbalance), `name` of
    what moved, by how much.
    """

    kind: str
    name: str
    amount: float = 0.0
    words: str = ""


def signs(entry: NoiseEntry, ticks: int) -> Iterator[Sign]:
    """What an entry of noise.jsonl shows. ticks: of the host's clock, in a second."""
    yield from _cpu(entry, ticks)
    for name, (before, after) in entry.counters.items():
        if after > before:
            yield Sign(_kind(name), name, after - before)
    for name, (reading, later) in entry.gauges.items():
        if name == "mhz" and isinstance(reading, list) and isinstance(later, list):
            readings = [value for value in (*reading, *later) if value]
            if readings and max(readings) > min(readings) * (1 + SPREAD):
                words = f"{min(readings):.0f} to {max(readings):.0f} MHz"
                yield Sign("clock", "frequency", 0.0, words)
        elif name in ("governor", "irqbalance") and reading != later:
            words = f"{name} was {reading or 'not running'}, then {later or 'not running'}"
            yield Sign("clock" if name == "governor" else name, name, 0.0, words)


def _kind(name: str) -> str:
    if name.endswith(".carrier_changes"):
        return "link"
    if name.startswith("throttle."):
        return "clock"
    return "tcp" if name.partition(".")[0] in PROTOCOLS else "nic"


def _cpu(entry: NoiseEntry, ticks: int) -> Iterator[Sign]:
    """CPUs that were used by others than the workers and the controller, at least; and CPUs that
    the hypervisor took.
    """
    edges, own = entry.cpu, entry.own
    seconds = (entry.ns[1] - entry.ns[0]) / 1e9
    if not edges or seconds <= 0:
        return
    used = sum(edges[name][1] - edges[name][0] for name in BUSY if name in edges)
    if own is not None:
        others = used - (own[1] - own[0])
        if others >= LEAST_TICKS and others / ticks / seconds >= OTHERS:
            yield Sign("load", "others", others / ticks / seconds)
    stolen = edges["steal"][1] - edges["steal"][0] if "steal" in edges else 0
    if stolen >= 2 and stolen / ticks / seconds >= STOLEN:
        yield Sign("steal", "steal", stolen / ticks / seconds)


def foreign_loads(
    entries: Iterable[NoiseEntry], ticks: Callable[[str], int]
) -> dict[tuple[str, int], float]:
    """CPUs that others used on the kernel of a host in a block, where that is enough to be said."""
    return {
        (host, entry.block): sign.amount
        for entry in entries
        for sign in signs(entry, ticks(entry.host))
        if sign.kind == "load"
        for host in hosts_of(entry, sign)
    }


def hosts_of(entry: NoiseEntry, sign: Sign) -> Sequence[str]:
    """Whom a sign concerns: everybody on the kernel, or the host whose network it is."""
    of_kernel = sign.kind in ("load", "steal", "clock", "irqbalance")
    whole = of_kernel or sign.name.startswith("softnet.")
    return (whole and entry.kernel) or (entry.host,)


def labels(
    entries: Iterable[NoiseEntry], ticks: Mapping[str, int]
) -> dict[tuple[str, int], list[str]]:
    """What a block's runs are labelled with: (host, block) -> words."""
    words_of: dict[tuple[str, int], list[str]] = {}
    for entry in entries:
        for sign in signs(entry, ticks.get(entry.host, 100)):
            for host in hosts_of(entry, sign):
                words_of.setdefault((host, entry.block), []).append(f"{host}: {in_words(sign)}")
    return words_of


@dataclass(frozen=True)
class Disturbance:
    """One kind of sign over a campaign: on which hosts, in which blocks, in words."""

    hosts: frozenset[str]
    blocks: tuple[int, ...]
    what: str
    evidence: str
    remedy: str


KINDS = {
    "load": (
        "Something else used CPUs",
        "stop what else runs there (`top`), and keep its timers and updates still",
    ),
    "steal": (
        "The hypervisor took CPU time",
        "a machine of its own, or one whose CPUs are not shared with other guests",
    ),
    "clock": (
        "CPU clocks changed or were throttled",
        "set governor to performance and turbo to off; look at the cooling",
    ),
    "link": (
        "The link went down or came up",
        "look at cable, transceiver and switch port; some settings reset the link too",
    ),
    "nic": (
        "Packets were dropped, paused or damaged",
        "look at rings, flow control and cabling (`ethtool -S`)",
    ),
    "tcp": (
        "Segments or packets were lost, late or refused",
        "look for drops on the way (`nstat`), other traffic, short queues",
    ),
    "irqbalance": ("irqbalance started or stopped", "keep it off during a campaign"),
}  # the gravest first
COUNTERS_SAID = 6  # of a kind; the rest are counted
BLOCKS_SAID = 8


def disturbances(
    entries: Iterable[NoiseEntry], ticks: Callable[[str], int]
) -> Iterator[Disturbance]:
    """Everything that the entries show, a kind and place at a time, the gravest kinds first."""
    by_place: dict[tuple[str, tuple[str, ...]], dict[str, dict[int, Sign]]] = {}
    for entry in entries:
        for sign in signs(entry, ticks(entry.host)):
            place = sign.kind, tuple(hosts_of(entry, sign))
            by_place.setdefault(place, {}).setdefault(sign.name, {})[entry.block] = sign
    for (kind, hosts), by_name in sorted(
        by_place.items(), key=lambda item: list(KINDS).index(item[0][0])
    ):
        blocks = tuple(sorted({block for of_name in by_name.values() for block in of_name}))
        what, remedy = KINDS[kind]
        ranked = sorted(
            by_name.items(), key=lambda item: -max(sign.amount for sign in item[1].values())
        )
        evidence = listed([_moved(name, of_name) for name, of_name in ranked], COUNTERS_SAID)
        told = f"{what} on {' and '.join(hosts)} in {_blocks(blocks)}"
        yield Disturbance(frozenset(hosts), blocks, told, evidence, remedy)


def _blocks(blocks: Sequence[int]) -> str:
    if len(blocks) == 1:
        return f"block {blocks[0]}"
    first = ", ".join(map(str, blocks[:BLOCKS_SAID]))
    return f"{len(blocks)} blocks ({first}{', ...' if len(blocks) > BLOCKS_SAID else ''})"


def _moved(name: str, by_block: Mapping[int, Sign]) -> str:
    """A counter over its blocks: `rx_dropped 120, most in block 4 (80)`."""
    worst = max(by_block, key=lambda block: by_block[block].amount)
    sign = by_block[worst]
    if sign.words:
        return f"{name}: {sign.words} (block {worst})"
    if sign.kind in ("load", "steal"):
        return f"{in_words(sign)} in block {worst}" + (", the most" if len(by_block) > 1 else "")
    total = sum(one.amount for one in by_block.values())
    most = f", most in block {worst} ({sign.amount:.0f})" if len(by_block) > 1 else ""
    return f"{name} {total:.0f}{most}"


def in_words(sign: Sign) -> str:
    """A sign in words: `TcpExt.TCPTimeouts 3`, `others 0.42 CPUs`."""
    if sign.kind in ("load", "steal"):
        return f"{sign.name} {sign.amount:.2f} CPUs"
    return sign.words or f"{sign.name} {sign.amount:.0f}"
