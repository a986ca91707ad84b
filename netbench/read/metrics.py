"""The catalogue of metrics: what each number in a report means, with its unit, its formula and
where the formula comes from. `derive.py` computes them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from netbench.result.record import SIDES, SideName

COUNTERS = "docs/records.md"
NO_UNITS: Mapping[str, str] = MappingProxyType({})
BETTER = {"µs": -1, "Gb/s": 1}
"""Of metrics that tools print: less time is better, and more of a rate."""
WINDOW, BYTES = "window", "bytes"
"""What a ratio is over, in place of counters: seconds of the window, payload that moved in it."""
TIME_SHARE = "s/s"
"""The unit of shares of the time."""
ENERGY, ENERGY_COUNTED, SOAK = "energy", "counted_uj", "soak"
SOAK_COUNTERS = "taken_ns switched_ns stalled_ns quanta worked_ns stolen_ns cpus".split()
_SOURCES = {
    "softirq": "proc(5), and the kernel's Documentation/networking/snmp_counter.rst",
    "flow": "proc(5), and the kernel's Documentation/networking/snmp_counter.rst",
    "procstat": "proc(5), /proc/stat",
    "perf": "perf_event_open(2)",
    "energy": "the kernel's Documentation/power/powercap/powercap.rst",
}
"""By meter."""
_OF_WHOLE = ("procstat", "perf", "energy")  # meters that count whole kernels alone
_SCALES = {
    "1/KiB": (1024.0, " × 1024"),
    "J/GiB": (2**30 / 1e6, " × 2^30 / 10^6"),
    "W": (1e-6, " / 10^6"),
    TIME_SHARE: (1e-6, " / 10^6"),
}
"""By unit, of counters in microseconds and microjoules: the factor, and its words."""


class Ratio(NamedTuple):
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
        _, scale = _SCALES.get(self.unit, (1.0, ""))
        return (
            f"{who}'s {counted} / {'clock ticks a second / ' if self.ticks else ''}{below}{scale}"
        )


def _sum_in_words(counters: Iterable[str]) -> str:
    text = " + ".join(counters)
    return f"({text})" if "+" in text else text


def _ratios(table: str) -> Iterator[Ratio]:
    """The rows of ratio_table.txt. Events of perf over bytes are scaled: the kernel counts them in
    turns where there are more than the CPU has counters for.
    """
    lines = [line for line in table.splitlines() if line and not line.startswith("#")]
    for row, about in zip(lines[::2], lines[1::2], strict=True):
        formula, *words = row.split(", ")
        counted, _, over = formula.partition(" / ")
        name, unit, sum_ = counted.split(" ", 2)
        meter, events = sum_.partition(".")[0], "misses" if "misses" in sum_ else "cycles"
        is_share = meter == "perf" and over == BYTES
        yield Ratio(
            name,
            unit,
            about.strip(),
            tuple(sum_.split(" + ")),
            over if over in (WINDOW, BYTES) else tuple(over.split(" + ")),
            _SOURCES[meter],
            scale=_SCALES.get(unit, (1.0, ""))[0],
            whole=meter in _OF_WHOLE or "whole" in words,
            side=next((word for word in words if word in ("sender", "receiver")), ""),
            share=(f"perf.{events}_enabled_ns", f"perf.{events}_running_ns") if is_share else None,
            ticks=meter == "procstat",
            better=1 if "more" in words else -1,
            less_idle="less_idle" in words,
        )


RATIOS = tuple(_ratios((Path(__file__).parent / "ratio_table.txt").read_text(encoding="utf-8")))
"""Metrics that are counters over time, over bytes, or over other counters: their values and their
formulas in words follow from the table.
"""


class Metric(NamedTuple):
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


def _rows(table: str) -> Iterator[Metric]:
    """The rows of metric_table.txt."""
    lines = [line.strip() for line in table.splitlines() if line and not line.startswith("#")]
    for head, about, formula in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        name, unit, more, label, source, *words = head.split(" | ")
        ends = {word: float(end) for word, _, end in (each.partition("=") for each in words) if end}
        better = {"better": 1, "worse": -1, "either": 0}[more]
        is_count = "count" in words
        yield Metric(name, unit, about, formula, source, better, label, is_count=is_count, **ends)


def _of_ratio(row: Ratio) -> Iterator[Metric]:
    """Both sides together, and each."""
    label = row.name.replace("_", " ")
    lowest = -math.inf if row.less_idle else 0.0
    highest = 1.0 if row.unit == TIME_SHARE else math.inf

    def made(who: str, formula: str, most: float = highest) -> Metric:
        """Of a side; of both together, or of the only one that it is about, with who: ""."""
        name, title = (f"{who}_{row.name}", f"{who} {label}") if who else (row.name, label)
        about = f"{row.about}, of the {who}" if who else row.about
        return Metric(name, row.unit, about, formula, row.source, row.better, title, lowest, most)

    if row.side:
        yield made("", row.formula(row.side))
        return
    summed = "the sum of both sides" if isinstance(row.over, str) else "counters of both sides"
    together = "one kernel is both ends" if row.whole else "both ends are in one network namespace"
    formula = f"as sender_{row.name}, {summed}; where {together}, of what was counted there"
    yield made("", formula, 2 * highest)
    for who in SIDES:
        yield made(who, row.formula(who))


METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        *_rows((Path(__file__).parent / "metric_table.txt").read_text(encoding="utf-8")),
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
    if name in units and (name not in METRICS or METRICS[name].unit != units[name]):
        return _captured(name, units[name])
    if name in METRICS:
        return METRICS[name]
    metric = METRICS[bare]
    if not meter:
        return metric
    return metric._replace(
        name=name, about=f"{metric.about}, by {meter}", label=f"{metric.title} ({meter})"
    )
