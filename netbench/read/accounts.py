"""CPU accounts: how each meter accounts CPU time, from the descriptors in a plan's rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from netbench.result.files import EngineRow

METER_ORDER = ("cpuidle", "soak", "procstat", "rusage")
"""The best meter first, by its error on known loads (`make bench PARTS=meters`): a bare metric name
is that of the first of these that ran. rusage is exact, but of processes alone.
"""
SECONDS_OF = {"ns": 1e-9, "us": 1e-6}
"""Seconds in a unit of CPU time; a tick's length is the host's own."""
_BUSY = ("user", "nice", "system", "irq", "softirq")  # not guest, which is within user
_IDLE = ("idle", "iowait", "steal")  # of which steal is another guest's


class Account(NamedTuple):
    """The counters of a meter that add up to CPU time, each with its unit (`ns`, `us` or `ticks`).

    `host_wide`: the meter counts the whole kernel, so it cannot tell the two sides apart where they
    share one. `idle`: the counters of what its `cpus` were not busy. Where a record has that number
    of CPUs, their CPU time is what `idle` leaves of the window, and `counters` are not used.
    """

    meter: str
    counters: tuple[tuple[str, str], ...]
    host_wide: bool
    idle: tuple[tuple[str, str], ...] = ()


ACCOUNTS: Mapping[str, Account] = {
    "procstat": Account(
        "procstat", tuple((n, "ticks") for n in _BUSY), True, tuple((n, "ticks") for n in _IDLE)
    ),
    "rusage": Account("rusage", (("cpu_ns", "ns"),), False),
}


def accounts_of(rows: Iterable[EngineRow]) -> dict[str, Account]:
    """The accounts of a plan's descriptor rows: those of meters whose counters carry `cpu_time`
    or `idle_time`, and ACCOUNTS, the best first.
    """
    declared = [row for row in rows if row.kind in ("meter", "counter")]
    host_wide = {row.name for row in declared if row.kind == "meter" and "host_wide" in row.flags}
    owners = dict.fromkeys(
        row.owner for row in declared if {*row.flags} & {"cpu_time", "idle_time"}
    )

    def counters(meter: str, flag: str) -> tuple[tuple[str, str], ...]:
        rows = (row for row in declared if row.owner == meter and flag in row.flags)
        return tuple((row.name, row.unit) for row in rows if row.unit in (*SECONDS_OF, "ticks"))

    accounts = {
        meter: Account(
            meter, counters(meter, "cpu_time"), meter in host_wide, counters(meter, "idle_time")
        )
        for meter in owners
    } | dict(ACCOUNTS)
    return dict(sorted(accounts.items(), key=lambda each: (*METER_ORDER, each[0]).index(each[0])))
