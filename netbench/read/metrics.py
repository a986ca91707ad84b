"""The catalogue of metrics: what each number in a report means, with its unit, its formula and
where the formula comes from. `derive.py` computes them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from netbench.read.ratio_table import RATIOS, TIME_SHARE, Ratio
from netbench.result.record import SIDES

COUNTERS = "docs/records.md"
NO_UNITS: Mapping[str, str] = MappingProxyType({})
BETTER = {"µs": -1, "Gb/s": 1}
"""Of metrics that tools print: less time is better, and more of a rate."""
NETPERF = "netperf manual, section CPU Utilization (KB = 1024 bytes)"
RUSAGE = "getrusage(2)"
TCP = "tcp(7), TCP_INFO: tcpi_total_retrans"


@dataclass(frozen=True)
class Metric:
    """One number that is derived from a run's raw counters.

    `unit`; `about`, one line; `better`: 1 more is better, -1 less is better, 0 neither; `label` for
    tables and plots. `formula` in words, where a counter's name stands for its closing less its
    opening value and `window` for the measured time of that side; `source` of the formula.
    `lowest`, `highest`: what its mean cannot lie outside. `is_count`: it counts few, whole events
    of a run.
    """

    name: str
    unit: str
    about: str
    formula: str
    source: str
    better: int = 0
    label: str = ""
    lowest: float = 0.0
    highest: float = math.inf
    is_count: bool = False

    @property
    def title(self) -> str:
        return self.label or self.name


def _whole() -> Iterator[Metric]:
    """Throughput, and CPU and service demand of each side and of both."""
    yield Metric(
        "throughput",
        "Gb/s",
        "goodput: payload that the receiver took, in 10^9 bits per second",
        "receiver's flow.bytes × 8 / receiver's window / 10^9; what an external tool reports, where"
        " one moved the data",
        COUNTERS,
        1,
        "throughput",
    )
    yield Metric(
        "sent",
        "Gb/s",
        "payload that the sender sent in its own window, in 10^9 bits per second",
        "sender's flow.bytes × 8 / sender's window / 10^9",
        COUNTERS,
        1,
    )
    for who, whose in (
        ("sender", "of the sender"),
        ("receiver", "of the receiver"),
        ("system", "of both sides together"),
    ):
        busy = f"{who}'s CPU time by the best meter that ran / {who}'s window"
        yield Metric(
            f"{who}_cpu",
            "CPUs",
            f"CPUs busy {whose}; 1.0 is one whole CPU",
            "sender_cpu + receiver_cpu; where one kernel is both ends, what its meter counted"
            if who == "system"
            else busy,
            COUNTERS,
            -1,
            f"{who} CPU",
        )
        yield Metric(
            f"{who}_demand",
            "µs/KB",
            f"service demand {whose}: CPU time, all CPUs, for 1024 bytes of payload",
            f"{who}_cpu × 10^6 / (throughput × 10^9 / 8 / 1024)",
            NETPERF,
            -1,
            f"{who} demand",
        )


def _processes() -> Iterator[Metric]:
    """Where the two processes spent their CPU time."""
    for who in ("sender", "receiver"):
        for name, counter, where in (
            ("user", "user_us", f"in user space in the {who}'s process"),
            ("kernel", "system_us", f"in the kernel for the {who}'s process"),
        ):
            yield Metric(
                f"{who}_{name}_cpu",
                "CPUs",
                f"CPUs busy {where} (rusage)",
                f"{who}'s rusage.{counter} / 10^6 / {who}'s window",
                RUSAGE,
                -1,
                f"{who} {name}",
            )


def _counts() -> Iterator[Metric]:
    """What is counted rather than timed."""
    yield Metric(
        "slow_down",
        "ratio",
        "how much longer than on idle CPUs a soaker's quantum took: 0.1 is 10%",
        "soak.worked_ns / soak.quanta, over the same of the idle window before the block, less 1;"
        " the mean of both sides where each has its own kernel",
        COUNTERS,
        -1,
        "slow-down",
        lowest=-1.0,
    )
    yield Metric(
        "retransmits",
        "segments",
        "TCP segments that the sender sent again within the window",
        "sender's tcp.retransmits, over all streams",
        TCP,
        -1,
        is_count=True,
    )
    yield Metric(
        "fsync_time",
        "ms",
        "how long it took to force the sinks to their disk",
        "receiver's fsync_ns / 10^6",
        COUNTERS,
        -1,
        "fsync time",
    )
    yield Metric(
        "steps",
        "steps/s",
        "calls of the sender's method, for methods that move no data",
        "sender's flow.steps / sender's window",
        COUNTERS,
        1,
    )


def _who_paid() -> Iterator[Metric]:
    """Where the CPU time of both hosts was taken."""
    for name, whose, counted in (
        ("sender", "on the CPU that the sender's flows are pinned to", "soak.pinned_taken_ns"),
        (
            "receiver",
            "on the CPU that the receiver's flows are pinned to",
            "receiver's soak.pinned_taken_ns (on one kernel the sender's soak.peer_taken_ns)",
        ),
        ("others", "on all other CPUs", ""),
    ):
        yield Metric(
            f"{name}_paid",
            "ratio",
            f"share of the CPU time of both hosts {whose}, for whomever: its processes, interrupts"
            " and soft interrupts; only where each side has a CPU of its own (pin: apart)",
            f"{counted}, less what an idle CPU loses, / window / system_cpu.soak; by cpuidle and"
            " procstat likewise, of system_cpu.procstat pinned_cpus (peer_cpus) less their idle"
            " time / window"
            if counted
            else "1 - sender_paid - receiver_paid",
            COUNTERS,
            0,
            f"paid by {name}",
            highest=1.0,
        )


def _of_ratio(row: Ratio) -> Iterator[Metric]:
    """Both sides together, and each."""
    label = row.name.replace("_", " ")
    lowest = -math.inf if row.less_idle else 0.0
    highest = 1.0 if row.unit == TIME_SHARE else math.inf
    if row.side:
        formula = row.formula(row.side)
        yield Metric(
            row.name, row.unit, row.about, formula, row.source, row.better, label, lowest, highest
        )
        return
    summed = "the sum of both sides" if isinstance(row.over, str) else "counters of both sides"
    together = "one kernel is both ends" if row.whole else "both ends are in one network namespace"
    formula = f"as sender_{row.name}, {summed}; where {together}, of what was counted there"
    yield Metric(
        row.name, row.unit, row.about, formula, row.source, row.better, label, lowest, 2 * highest
    )
    for who in SIDES:
        yield Metric(
            f"{who}_{row.name}",
            row.unit,
            f"{row.about}, of the {who}",
            row.formula(who),
            row.source,
            row.better,
            f"{who} {label}",
            lowest,
            highest,
        )


METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        *_whole(),
        *_processes(),
        *_counts(),
        *_who_paid(),
        *(metric for row in RATIOS for metric in _of_ratio(row)),
    )
}
"""All metrics by name, in the order of tables."""


def _captured(name: str, unit: str) -> Metric:
    """A metric that a tool prints."""
    better = BETTER.get(unit, 1 if unit.endswith("/s") else 0)
    about = "what the pattern of `captures` finds in the output of a tool"
    return Metric(
        name, unit, about, "the number, in its base unit", COUNTERS, better, lowest=-math.inf
    )


def describe(name: str, units: Mapping[str, str] = NO_UNITS) -> Metric:
    """The Metric of a name, also of `NAME.METER`. `units`: of the metrics that tools print. Errors:
    KeyError for a name that no record can give.
    """
    bare, _, meter = name.partition(".")
    if name in units and bare not in METRICS:
        return _captured(name, units[name])
    metric = METRICS[bare]
    if not meter:
        return metric
    return replace(
        metric,
        name=name,
        about=f"{metric.about}, by {meter}",
        label=f"{metric.title} ({meter})",
    )
