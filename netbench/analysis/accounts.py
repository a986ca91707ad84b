"""CPU accounts: how each meter accounts CPU time, from the descriptors in a plan's rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from netbench.result_files import EngineRow

METER_ORDER = ("soak", "perf", "procstat", "rusage")
"""The best meter first: a bare metric name is that of the first of these that ran."""
SECONDS_OF = {"ns": 1e-9, "us": 1e-6}
"""Seconds in a unit of CPU time; a tick's length is the host's own."""
_BUSY = ("user", "nice", "system", "irq", "softirq")
# not steal (another guest's), not guest (already within user), not iowait (idle)


@dataclass(frozen=True)
class Account:
    """The counters of a meter that add up to CPU time, each with its unit (`ns`, `us` or `ticks`).

    `host_wide`: the meter counts the whole kernel, so it cannot tell the two sides apart where they
    share one.
    """

    meter: str
    counters: tuple[tuple[str, str], ...]
    host_wide: bool


ACCOUNTS: Mapping[str, Account] = {
    "procstat": Account("procstat", tuple((name, "ticks") for name in _BUSY), True),
    "rusage": Account("rusage", (("cpu_ns", "ns"),), False),
}


def accounts_of(rows: Iterable[EngineRow]) -> dict[str, Account]:
    """The accounts of a plan's descriptor rows: those of meters whose counters carry `cpu_time`,
    and ACCOUNTS, the best first.
    """
    declared = [row for row in rows if row.kind in ("meter", "counter")]
    host_wide = {row.name for row in declared if row.kind == "meter" and "host_wide" in row.flags}
    counters: dict[str, list[tuple[str, str]]] = {}
    for row in declared:
        unit = row.unit
        timed = row.kind == "counter" and "cpu_time" in row.flags
        if timed and (unit in SECONDS_OF or unit == "ticks"):
            counters.setdefault(row.owner, []).append((row.name, unit))
    accounts = {
        meter: Account(meter, tuple(of_meter), meter in host_wide)
        for meter, of_meter in counters.items()
    } | dict(ACCOUNTS)
    return dict(sorted(accounts.items(), key=lambda each: (*METER_ORDER, each[0]).index(each[0])))
