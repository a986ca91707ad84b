"""Metrics that are counters over time, over bytes, or over other counters: RATIOS is their table,
from which both their values and their formulas in words follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from netbench.analysis.counters import Number, delta, either, where, window_seconds
from netbench.analysis.soak import SOAK
from netbench.record import SIDES, SideCounters, SideName

SOAKED = {"perf"}
"""Meters whose counters beside soak are mostly the soakers' own: nothing is derived from them."""
WINDOW, BYTES = "window", "bytes"
"""What a ratio is over, in place of counters: seconds of the window, payload that moved in it."""
ENERGY, ENERGY_COUNTED = "energy", "counted_uj"
PROC = "proc(5), and the kernel's Documentation/networking/snmp_counter.rst"
PERF = "perf_event_open(2)"
PSI = "the kernel's Documentation/accounting/psi.rst"
RAPL = "the kernel's Documentation/power/powercap/powercap.rst"
STAT = "proc(5), /proc/stat"
_PACKETS = ("softirq.link_rx_packets", "softirq.link_tx_packets")
_CYCLES = ("perf.kernel_cycles", "perf.user_cycles")
_INSTRUCTIONS = ("perf.kernel_instructions", "perf.user_instructions")
_SHARE = ("perf.cycles_enabled_ns", "perf.cycles_running_ns")
_MISSES = ("perf.misses_enabled_ns", "perf.misses_running_ns")


@dataclass(frozen=True)
class Ratio:
    """The sum of `counters` (METER.COUNTER) over WINDOW, BYTES or the sum of other counters, times
    `scale`.

    `whole`: the counters are of the whole kernel. `side`: the only side that it is about; "" for
    both, and both together. `share`: times for which events were enabled and really counted, by
    whose quotient counts are scaled. `ticks`: the counters are ticks of that host's clock.
    `less_idle`: what was counted in the idle window before the block is taken off, by its rate.
    """

    name: str
    unit: str
    about: str
    counters: tuple[str, ...]
    over: str | tuple[str, ...]
    source: str
    scale: float = 1.0
    whole: bool = False
    side: SideName | str = ""
    share: tuple[str, str] | None = None
    ticks: bool = False
    better: int = -1
    less_idle: bool = False

    def formula(self, who: str) -> str:
        """In words, of a side."""
        counted = _sum_in_words(self.counters)
        if self.less_idle:
            meter, _, name = self.counters[0].partition(".")
            counted = f"({counted} - {meter}.idle_{name} / idle window × {who}'s window)"
        if self.share:
            counted = f"{counted} × {self.share[0]} / {self.share[1]}"
        over = {WINDOW: f"{who}'s window", BYTES: f"(throughput × 10^9 / 8 × {who}'s window)"}
        below = over[self.over] if isinstance(self.over, str) else _sum_in_words(self.over)
        return (
            f"{who}'s {counted} / {'clock ticks a second / ' if self.ticks else ''}{below}"
            f"{_scale_in_words(self.scale)}"
        )


def _sum_in_words(counters: Iterable[str]) -> str:
    text = " + ".join(counters)
    return f"({text})" if "+" in text else text


def _scale_in_words(scale: float) -> str:
    known = {1.0: "", 1e-6: " / 10^6", 1024.0: " × 1024", 2**30 / 1e6: " × 2^30 / 10^6"}
    return known[scale]


def _pressure(what: str, who: str, about: str) -> Ratio:
    return Ratio(
        f"{what}_pressure",
        "s/s",
        f"share of the time in which {about}",
        (f"psi.{what}_{who}_us",),
        WINDOW,
        PSI,
        scale=1e-6,
        whole=True,
    )


RATIOS: tuple[Ratio, ...] = (
    Ratio(
        "interrupts",
        "1/s",
        "interrupts on all CPUs, those of timers and other CPUs included",
        ("softirq.interrupts",),
        WINDOW,
        PROC,
        whole=True,
    ),
    Ratio(
        "softirqs",
        "1/s",
        "soft interrupts of all kinds on all CPUs",
        ("softirq.softirqs",),
        WINDOW,
        PROC,
        whole=True,
    ),
    Ratio(
        "softirq_time",
        "CPUs",
        "CPUs busy in soft interrupts (tick samples where the fact irq_time_accounting is off)",
        ("procstat.softirq",),
        WINDOW,
        STAT,
        whole=True,
        ticks=True,
    ),
    Ratio(
        "packets",
        "packets/s",
        "packets that the data interface sent and received, as its driver counts them",
        _PACKETS,
        WINDOW,
        PROC,
    ),
    Ratio(
        "link_interrupts",
        "1/s",
        "interrupts of the data interface's device",
        ("softirq.link_interrupts",),
        WINDOW,
        PROC,
    ),
    Ratio(
        "packets_per_interrupt",
        "packets",
        "packets of the data interface for each interrupt of its device",
        _PACKETS,
        ("softirq.link_interrupts",),
        PROC,
        better=1,
    ),
    Ratio(
        "bytes_per_packet",
        "bytes",
        "mean size of the data interface's packets, acknowledgements included",
        ("softirq.link_rx_bytes", "softirq.link_tx_bytes"),
        _PACKETS,
        PROC,
        better=1,
    ),
    Ratio(
        "gso_size",
        "bytes",
        "mean payload of what the sender's stack handed down at once (GSO, TSO)",
        ("flow.bytes",),
        ("softirq.ip_out_requests",),
        PROC,
        side="sender",
        better=1,
    ),
    Ratio(
        "gso_segments",
        "segments",
        "mean segments in what the sender's stack handed down at once",
        ("softirq.tcp_out_segments",),
        ("softirq.ip_out_requests",),
        PROC,
        side="sender",
        better=1,
    ),
    Ratio(
        "gro_size",
        "bytes",
        "mean payload of what the receiver's stack got at once (GRO, LRO)",
        ("flow.bytes",),
        ("softirq.ip_in_receives",),
        PROC,
        side="receiver",
        better=1,
    ),
    Ratio(
        "gro_segments",
        "segments",
        "mean segments in what the receiver's stack got at once",
        ("softirq.ip_in_no_ect", "softirq.ip_in_ect"),
        ("softirq.ip_in_receives",),
        PROC,
        side="receiver",
        better=1,
    ),
    Ratio(
        "cycles_per_byte",
        "cycles/byte",
        "cycles of all CPUs for a byte of payload",
        _CYCLES,
        BYTES,
        PERF,
        whole=True,
        share=_SHARE,
    ),
    Ratio(
        "kernel_cycles_per_byte",
        "cycles/byte",
        "cycles in the kernel for a byte of payload",
        _CYCLES[:1],
        BYTES,
        PERF,
        whole=True,
        share=_SHARE,
    ),
    Ratio(
        "instructions_per_byte",
        "1/byte",
        "instructions of all CPUs for a byte of payload",
        _INSTRUCTIONS,
        BYTES,
        PERF,
        whole=True,
        share=_SHARE,
    ),
    Ratio(
        "instructions_per_cycle",
        "1/cycle",
        "instructions for a cycle, all CPUs",
        _INSTRUCTIONS,
        _CYCLES,
        PERF,
        whole=True,
        better=1,
    ),
    Ratio(
        "cache_misses_per_kib",
        "1/KiB",
        "misses of the last cache for 1024 bytes of payload",
        ("perf.kernel_cache_misses", "perf.user_cache_misses"),
        BYTES,
        PERF,
        scale=1024.0,
        whole=True,
        share=_MISSES,
    ),
    Ratio(
        "branch_misses_per_kib",
        "1/KiB",
        "mispredicted branches for 1024 bytes of payload",
        ("perf.kernel_branch_misses", "perf.user_branch_misses"),
        BYTES,
        PERF,
        scale=1024.0,
        whole=True,
        share=_MISSES,
    ),
    Ratio(
        "context_switches",
        "1/s",
        "context switches on all CPUs",
        ("perf.context_switches",),
        WINDOW,
        PERF,
        whole=True,
    ),
    Ratio(
        "migrations",
        "1/s",
        "moves of a task to another CPU",
        ("perf.migrations",),
        WINDOW,
        PERF,
        whole=True,
    ),
    Ratio(
        "page_faults",
        "1/s",
        "page faults on all CPUs",
        ("perf.page_faults",),
        WINDOW,
        PERF,
        whole=True,
    ),
    Ratio(
        "energy",
        "J/GiB",
        "energy of the CPU packages and their memory for 2^30 bytes of payload, idle included",
        ("energy.counted_uj",),
        BYTES,
        RAPL,
        scale=2**30 / 1e6,
        whole=True,
    ),
    Ratio(
        "energy_less_idle",
        "J/GiB",
        "the same less what they use while the hosts are idle, as measured before each block",
        ("energy.counted_uj",),
        BYTES,
        RAPL,
        scale=2**30 / 1e6,
        whole=True,
        less_idle=True,
    ),
    Ratio(
        "power",
        "W",
        "power of the CPU packages and their memory, idle included",
        ("energy.counted_uj",),
        WINDOW,
        RAPL,
        scale=1e-6,
        whole=True,
    ),
    _pressure("cpu", "some", "some task waited for a CPU"),
    _pressure("irq", "full", "a task was held up by interrupts"),
    _pressure("memory", "some", "some task waited for memory"),
    _pressure("io", "some", "some task waited for I/O"),
)


@cache
def _rows_of(meters: frozenset[str]) -> tuple[Ratio, ...]:
    """The rows whose counters are of these meters."""
    return tuple(
        row for row in RATIOS if {name.partition(".")[0] for name in row.counters} <= meters
    )


@dataclass(frozen=True)
class RatioSide:
    """One side of a run, or of several: its counters, clock ticks a second, and payload (None: not
    known).
    """

    counters: SideCounters
    ticks: int | None
    payload: Number | None


def ratios(sides: Mapping[SideName, RatioSide], shared: bool) -> Iterator[tuple[str, Number]]:
    """Name and value of every ratio that the counters of a run, or of several, give. `shared`:
    both sides run on one kernel.
    """
    meters = frozenset(name for one in sides.values() for name in one.counters.meters)
    if SOAK in meters:
        meters -= SOAKED
    one_namespace = shared and _share_namespace(sides)
    for row in _rows_of(meters):
        parts = {who: _parts(row, sides[who]) for who in SIDES}
        yield from _values(row, parts, shared if row.whole else one_namespace)


def _share_namespace(sides: Mapping[SideName, RatioSide]) -> bool:
    edges: list[Any] = [
        one.counters.meters.get("softirq", {}).get("namespace") for one in sides.values()
    ]
    return edges[0] is not None and np.array_equal(edges[0], edges[1])


_Parts = tuple[Number, Number] | None
"""What is counted, and what it is over, of one side; None where one of both is missing or 0."""


def _values(
    row: Ratio, parts: Mapping[SideName, _Parts], together: bool
) -> Iterator[tuple[str, Number]]:
    """`together`: the counters of a side speak of both."""
    sender, receiver = parts["sender"], parts["receiver"]
    if together:
        both = either(*(mine and mine[0] / mine[1] for mine in (sender, receiver)))
        if both is not None and not row.side:
            yield row.name, both
        return
    if row.side:
        mine = sender if row.side == "sender" else receiver
        if mine:
            yield row.name, mine[0] / mine[1]
        return
    for who, mine in parts.items():
        if mine:
            yield f"{who}_{row.name}", mine[0] / mine[1]
    if sender and receiver:
        if isinstance(row.over, str):
            yield row.name, sender[0] / sender[1] + receiver[0] / receiver[1]
        else:
            yield row.name, (sender[0] + receiver[0]) / (sender[1] + receiver[1])


def _parts(row: Ratio, side: RatioSide) -> _Parts:
    counted, below = _total(row.counters, side.counters), _not_0(_below(row, side))
    if counted is None or below is None:
        return None
    if row.less_idle:
        idle = _idle(row.counters, side.counters)
        if idle is None:
            return None
        counted = counted - idle
    if row.share:
        enabled, running = (_not_0(_total((name,), side.counters)) for name in row.share)
        if enabled is None or running is None:
            return None
        counted *= enabled / running
    if row.ticks:
        if not side.ticks:
            return None
        counted /= side.ticks
    return counted * row.scale, below


def _idle(counters: Iterable[str], side: SideCounters) -> Number | None:
    """What these counters of one meter would have counted in the window if the host were idle, by
    the idle window before the block; None without one.
    """
    meters, names = zip(*(name.split(".") for name in counters), strict=True)
    edges = side.meters.get(meters[0], {}).get("idle_time_ns")
    window = window_seconds(side)
    counted = _not_0(_total((f"{meters[0]}.idle_{name}" for name in names), side))
    if edges is None or window is None or counted is None:
        return None
    length = where(edges[1] > edges[0], (edges[1] - edges[0]) * 1e-9)
    return None if length is None else counted / length * window


def _not_0(value: Number | None) -> Number | None:
    return None if value is None else where(value != 0, value)


def _below(row: Ratio, side: RatioSide) -> Number | None:
    special: Mapping[str, Callable[[], Number | None]] = {
        WINDOW: lambda: window_seconds(side.counters),
        BYTES: lambda: side.payload,
    }
    if isinstance(row.over, str):
        return special[row.over]()
    return _total(row.over, side.counters)


def _total(names: Iterable[str], side: SideCounters) -> Number | None:
    total: Number = 0.0
    for name in names:
        change = delta(side, *name.split("."))
        if change is None:
            return None
        total = total + change
    return total
