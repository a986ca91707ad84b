"""From raw counters to metrics: the arithmetic of docs/records.md, and nothing else.

A counter that a record lacks makes every metric that needs it absent: never 0, never a guess. Units are in METRICS.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netbench.units import parse_rate

METER_ORDER = ("soak", "perf", "procstat", "rusage")  # the best first: a bare metric name is the first of these that ran
SIDES = ("sender", "receiver")
KB = 1024
_SECONDS = {"ns": 1e-9, "us": 1e-6}


@dataclass(frozen=True)
class Metric:
    """What a number means: `unit`, one line `about`, and `better`: 1 more is better, -1 less is better, 0 neither."""

    name: str
    unit: str
    about: str
    better: int = 0
    label: str = ""  # for tables and plots

    @property
    def title(self) -> str:
        return self.label or self.name


def _table() -> dict[str, Metric]:
    rows = [Metric("throughput", "Gb/s", "goodput: payload that the receiver took, in 10^9 bits per second", 1, "throughput")]
    for who, whose in (("sender", "of the sender"), ("receiver", "of the receiver"), ("system", "of both sides together")):
        rows.append(Metric(f"{who}_cpu", "CPUs", f"CPUs busy {whose}; 1.0 is one whole CPU", -1, f"{who} CPU"))
        about = f"service demand {whose}: CPU time, all CPUs, for 1024 bytes of payload"
        rows.append(Metric(f"{who}_demand", "µs/KB", about, -1, f"{who} demand"))
    for who in SIDES:
        rows.append(
            Metric(f"{who}_user_cpu", "CPUs", f"CPUs busy in user space in the {who}'s process (rusage)", -1, f"{who} user")
        )
        rows.append(
            Metric(f"{who}_kernel_cpu", "CPUs", f"CPUs busy in the kernel for the {who}'s process (rusage)", -1, f"{who} kernel")
        )
    rows.append(Metric("retransmits", "segments", "TCP segments that the sender sent again within the window", -1))
    rows.append(Metric("steps", "steps/s", "calls of the sender's method, for methods that move no data", 1))
    return {row.name: row for row in rows}


METRICS: Mapping[str, Metric] = _table()


def describe(name: str) -> Metric:
    """The Metric of a name, also of `NAME.METER`. Errors: KeyError for a name that no record can give."""
    bare, _, meter = name.partition(".")
    row = METRICS[bare]
    if not meter:
        return row
    return Metric(name, row.unit, f"{row.about}, by {meter}", row.better, f"{row.title} ({meter})")


@dataclass(frozen=True)
class Account:
    """How a meter accounts CPU time: the counters that add up to it, each with its unit (`ns`, `us` or `ticks`).

    `host_wide`: it counts the whole kernel, so it can't tell the sides apart where they share one.
    """

    meter: str
    counters: tuple[tuple[str, str], ...]
    host_wide: bool


_BUSY = (
    "user",
    "nice",
    "system",
    "irq",
    "softirq",
)  # not steal (another guest's), not guest (already within user), not iowait (idle)
ACCOUNTS: Mapping[str, Account] = {
    "rusage": Account("rusage", (("cpu_ns", "ns"),), False),
    "procstat": Account("procstat", tuple((name, "ticks") for name in _BUSY), True),
}


def accounts_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, Account]:
    """The accounts of a plan's descriptor rows: meters whose counters carry `cpu_time`; ACCOUNTS for those that rows do not name."""
    table = [row for row in rows if row.get("kind") in ("meter", "counter")]
    wide = {str(row["name"]) for row in table if row["kind"] == "meter" and "host_wide" in row.get("flags", ())}
    found: dict[str, list[tuple[str, str]]] = {}
    for row in table:
        unit = str(row.get("unit", ""))
        if row["kind"] == "counter" and "cpu_time" in row.get("flags", ()) and (unit in _SECONDS or unit == "ticks"):
            found.setdefault(str(row.get("owner", "")), []).append((str(row["name"]), unit))
    accounts = dict(ACCOUNTS)
    for meter, counters in found.items():
        if meter not in ACCOUNTS:
            accounts[meter] = Account(meter, tuple(counters), meter in wide)
    return accounts


def demand(cpus: float, gigabits: float) -> float:
    """Service demand in µs/KB from CPUs busy and Gb/s: netperf's definition (netperf manual, "CPU Utilization"; KB = 1024 bytes)."""
    return cpus * 1e6 / (gigabits * 1e9 / 8 / KB)


def of_record(
    record: Mapping[str, Any], ticks: Mapping[str, int], shared: bool, accounts: Mapping[str, Account] = ACCOUNTS
) -> dict[str, float]:
    """All metrics of one record.

    `ticks`: clock ticks per second by host. `shared`: sender and receiver run on one kernel. Returns name -> value in METRICS' units,
    CPU metrics under their bare name and as NAME.METER. A record without counters gives an empty dict.
    """
    sender, receiver = record.get("sender") or {}, record.get("receiver") or {}
    found: dict[str, float] = {}
    _put(found, "throughput", _throughput(receiver))
    for meter in _ordered(accounts, sender, receiver):
        _cpu(found, accounts[meter], sender, receiver, ticks, shared)
    _demands(found)
    _times(found, sender, receiver)
    _put(found, "retransmits", delta(sender, "tcp", "retransmits"))
    if "throughput" not in found and "bytes" not in sender.get("flow", {}):
        _put(found, "steps", _per_second(sender, "flow", "steps"))
    return found


def _put(found: dict[str, float], name: str, value: float | None) -> None:
    if value is not None:
        found[name] = value


def seconds(side: Mapping[str, Any]) -> float | None:
    """Length of the measured window of one side in seconds; None when its edges are not both there or not in order."""
    edges = side.get("time_ns")
    if not isinstance(edges, Sequence) or len(edges) != 2 or edges[1] <= edges[0]:
        return None
    return float(edges[1] - edges[0]) * 1e-9


def total(value: Any) -> float:
    """One number of a counter at an edge: a list holds one a stream and is summed."""
    return float(sum(value)) if isinstance(value, list) else float(value)


def delta(side: Mapping[str, Any], group: str, name: str) -> float | None:
    """Closing less opening value of a counter, over all streams; None when it is absent, or went backwards (it was reset)."""
    edges = side.get(group, {}).get(name)
    if not isinstance(edges, Sequence) or isinstance(edges, str) or len(edges) < 2:
        return None
    moved = total(edges[1]) - total(edges[0])
    return moved if moved >= 0 else None


def _per_second(side: Mapping[str, Any], group: str, name: str) -> float | None:
    moved, t = delta(side, group, name), seconds(side)
    return None if moved is None or t is None else moved / t


def _throughput(receiver: Mapping[str, Any]) -> float | None:
    tool = receiver.get("tool")
    if tool is not None:
        return _tool(tool)
    rate = _per_second(receiver, "flow", "bytes")
    return None if rate is None else rate * 8 / 1e9


def _tool(tool: Mapping[str, Any]) -> float | None:
    """Gb/s in an external tool's words; None when they can't be read."""
    try:
        if "rate" in tool:
            return parse_rate(str(tool["rate"])) / 1e9
        return float(tool["bytes"]) * 8 / float(tool["seconds"]) / 1e9
    except (KeyError, ValueError, ZeroDivisionError):
        return None


def _ordered(accounts: Mapping[str, Account], sender: Mapping[str, Any], receiver: Mapping[str, Any]) -> list[str]:
    ran = [meter for meter in accounts if meter in sender or meter in receiver]
    return sorted(ran, key=lambda m: METER_ORDER.index(m) if m in METER_ORDER else len(METER_ORDER))


def _busy(side: Mapping[str, Any], account: Account, ticks: Mapping[str, int]) -> float | None:
    """CPUs busy on one side by one meter; None unless every counter, the window and the unit's length are known."""
    t = seconds(side)
    spent = 0.0
    for name, unit in account.counters:
        moved = delta(side, account.meter, name)
        rate = ticks.get(str(side.get("host")))
        if moved is None or (unit == "ticks" and not rate):
            return None
        spent += moved / rate if unit == "ticks" and rate else moved * _SECONDS[unit]
    return None if t is None else spent / t


def _cpu(
    found: dict[str, float],
    account: Account,
    sender: Mapping[str, Any],
    receiver: Mapping[str, Any],
    ticks: Mapping[str, int],
    shared: bool,
) -> None:
    """Put NAME.METER of one meter, and the bare names that no better meter has put yet."""
    out, into = _busy(sender, account, ticks), _busy(receiver, account, ticks)
    if account.host_wide and shared:
        values = {"system_cpu": out if out is not None else into}
    else:
        both = None if out is None or into is None else out + into
        values = {"sender_cpu": out, "receiver_cpu": into, "system_cpu": both}
    for name, value in values.items():
        if value is not None:
            found[f"{name}.{account.meter}"] = value
            found.setdefault(name, value)


def _demands(found: dict[str, float]) -> None:
    gigabits = found.get("throughput", 0.0)
    if gigabits <= 0:
        return
    for name, cpus in list(found.items()):
        bare, dot, meter = name.partition(".")
        if bare.endswith("_cpu"):
            found[f"{bare[:-4]}_demand{dot}{meter}"] = demand(cpus, gigabits)


def _times(found: dict[str, float], *sides: Mapping[str, Any]) -> None:
    for who, side in zip(SIDES, sides, strict=True):
        for counter, name in (("user_us", "user"), ("system_us", "kernel")):
            rate = _per_second(side, "rusage", counter)
            _put(found, f"{who}_{name}_cpu", None if rate is None else rate * 1e-6)
