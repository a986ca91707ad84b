"""The table of metrics that are counters over time, over bytes, or over other counters
(ratio_table.txt): both their values and their formulas in words follow from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from netbench.result.record import SideName

WINDOW, BYTES = "window", "bytes"
"""What a ratio is over, in place of counters: seconds of the window, payload that moved in it."""
TIME_SHARE = "s/s"
"""The unit of shares of the time."""
ENERGY, ENERGY_COUNTED = "energy", "counted_uj"
_SOURCES = {
    "softirq": "proc(5), and the kernel's Documentation/networking/snmp_counter.rst",
    "flow": "proc(5), and the kernel's Documentation/networking/snmp_counter.rst",
    "procstat": "proc(5), /proc/stat",
    "perf": "perf_event_open(2)",
    "energy": "the kernel's Documentation/power/powercap/powercap.rst",
    "psi": "the kernel's Documentation/accounting/psi.rst",
}
"""By meter."""
_OF_WHOLE = ("procstat", "perf", "energy", "psi")  # meters that count whole kernels alone
_SCALES = {
    "1/KiB": (1024.0, " × 1024"),
    "J/GiB": (2**30 / 1e6, " × 2^30 / 10^6"),
    "W": (1e-6, " / 10^6"),
    TIME_SHARE: (1e-6, " / 10^6"),
}
"""By unit, of counters in microseconds and microjoules: the factor, and its words."""


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
        _, scale = _SCALES.get(self.unit, (1.0, ""))
        return (
            f"{who}'s {counted} / {'clock ticks a second / ' if self.ticks else ''}{below}{scale}"
        )


def _sum_in_words(counters: Iterable[str]) -> str:
    text = " + ".join(counters)
    return f"({text})" if "+" in text else text


def _rows(table: str) -> Iterator[Ratio]:
    """The rows of the table. Events of perf over bytes are scaled: the kernel counts them in turns
    where there are more than the CPU has counters for.
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


RATIOS = tuple(_rows((Path(__file__).parent / "ratio_table.txt").read_text(encoding="utf-8")))
