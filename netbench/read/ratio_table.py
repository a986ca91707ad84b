"""The table of metrics that are counters over time, over bytes, or over other counters: both their
values and their formulas in words follow from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from netbench.result.record import SideName

WINDOW, BYTES = "window", "bytes"
"""What a ratio is over, in place of counters: seconds of the window, payload that moved in it."""
TIME_SHARE = "s/s"
"""The unit of shares of the time."""
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
        TIME_SHARE,
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
