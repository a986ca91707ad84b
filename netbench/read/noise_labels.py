"""What disturbed a campaign's blocks, from the readings around them (docs/records.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from netbench.result.files import NoiseEntry

BUSY = ("user", "nice", "system")  # what processes use; interrupts may be the transfer's own
LEAST_TICKS = 5  # of a process: below, rounding may be all of it
OTHERS = 0.1  # CPUs that something else may use before it is said
STOLEN = 0.01
TCP_PAGES = "TCP.pages", "TCP.few"  # that it holds, and up to which all get what they ask for
OF_ALL = ".rx_bytes", ".tx_bytes", *TCP_PAGES  # kept whether they move or not: no signs
PROTOCOLS = "Tcp TcpExt Ip IpExt Udp Icmp Ip6 Udp6 Icmp6".split()
KINDS = {
    "load": (
        "Something else used CPUs",
        "stop what else runs there (`top`), and keep its timers and updates still",
    ),
    "steal": (
        "The hypervisor took CPU time",
        "a machine of its own, or one whose CPUs are not shared with other guests",
    ),
    "memory": (
        "TCP of the whole kernel, of all namespaces, held more pages than it gives out freely",
        "look for who holds them (`ss -tm` in each; `sysctl net.ipv4.tcp_mem` has the limits)",
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
}  # the gravest first


class Sign(NamedTuple):
    """One thing seen: `kind` (of KINDS), `name`, by how much."""

    kind: str
    name: str
    amount: float


def signs(entry: NoiseEntry, ticks: int) -> Iterator[Sign]:
    """What an entry of noise.jsonl shows. ticks: of the host's clock, in a second."""
    yield from _cpu(entry, ticks)
    for name, (before, after) in entry.counters.items():
        if after > before and not name.endswith(OF_ALL):
            yield Sign(_kind(name), name, after - before)
    held, few = (max(entry.counters.get(name, [0])) for name in TCP_PAGES)
    if held > few > 0:
        yield Sign("memory", "TCP's pages", held)


def _kind(name: str) -> str:
    if name.endswith(".carrier_changes"):
        return "link"
    if name.startswith("throttle."):
        return "clock"
    return "tcp" if name.partition(".")[0] in PROTOCOLS else "nic"


def _cpu(entry: NoiseEntry, ticks: int) -> Iterator[Sign]:
    """CPUs that others used, at least, and CPUs that the hypervisor took."""
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


def seen(
    entries: Iterable[NoiseEntry], ticks: Callable[[str], int]
) -> Iterator[tuple[Sequence[str], int, Sign]]:
    """Every sign of the entries: whom it concerns (everybody on the kernel, or the host whose
    network it is), and in which block.
    """
    for entry in entries:
        for sign in signs(entry, ticks(entry.host)):
            of_kernel = sign.kind in ("load", "steal", "memory", "clock")
            whole = of_kernel or sign.name.startswith("softnet.")
            yield (whole and entry.kernel) or (entry.host,), entry.block, sign


def foreign_loads(
    entries: Iterable[NoiseEntry], ticks: Callable[[str], int]
) -> dict[tuple[str, int], float]:
    """CPUs that others used on the kernel of a host in a block, where that is enough to be said."""
    return {
        (host, block): sign.amount
        for hosts, block, sign in seen(entries, ticks)
        if sign.kind == "load"
        for host in hosts
    }


def labels(
    entries: Iterable[NoiseEntry], ticks: Mapping[str, int]
) -> dict[tuple[str, int], list[str]]:
    """What a block's runs are labelled with: (host, block) -> words."""
    words_of: dict[tuple[str, int], list[str]] = {}
    for hosts, block, sign in seen(entries, lambda host: ticks.get(host, 100)):
        for host in hosts:
            words_of.setdefault((host, block), []).append(f"{host}: {in_words(sign)}")
    return words_of


def in_words(sign: Sign) -> str:
    """A sign in words: `TcpExt.TCPTimeouts 3`, `others 0.42 CPUs`."""
    if sign.kind in ("load", "steal"):
        return f"{sign.name} {sign.amount:.2f} CPUs"
    return f"{sign.name} {sign.amount:.0f}"
