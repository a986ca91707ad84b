"""From raw counters to metrics: the arithmetic of docs/records.md, and nothing else.

A counter that a record lacks makes every metric that needs it absent: never 0, never a guess. Units
are in METRICS.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from netbench.units import parse_rate

METER_ORDER = (
    "soak",
    "perf",
    "procstat",
    "rusage",
)  # the best first: a bare metric name is the first of these that ran
SIDES = ("sender", "receiver")
KB = 1024
_SECONDS = {"ns": 1e-9, "us": 1e-6}


@dataclass(frozen=True)
class Metric:
    """What a number means: `unit`, one line `about`, and `better`: 1 more is better, -1 less is
    better, 0 neither.
    """

    name: str
    unit: str
    about: str
    better: int = 0
    label: str = ""  # for tables and plots

    @property
    def title(self) -> str:
        return self.label or self.name


def _table() -> dict[str, Metric]:
    rows = [
        Metric(
            "throughput",
            "Gb/s",
            "goodput: payload that the receiver took, in 10^9 bits per second",
            1,
            "throughput",
        )
    ]
    for who, whose in (
        ("sender", "of the sender"),
        ("receiver", "of the receiver"),
        ("system", "of both sides together"),
    ):
        rows.append(
            Metric(
                f"{who}_cpu", "CPUs", f"CPUs busy {whose}; 1.0 is one whole CPU", -1, f"{who} CPU"
            )
        )
        about = f"service demand {whose}: CPU time, all CPUs, for 1024 bytes of payload"
        rows.append(Metric(f"{who}_demand", "µs/KB", about, -1, f"{who} demand"))
    for who in SIDES:
        rows.append(
            Metric(
                f"{who}_user_cpu",
                "CPUs",
                f"CPUs busy in user space in the {who}'s process (rusage)",
                -1,
                f"{who} user",
            )
        )
        rows.append(
            Metric(
                f"{who}_kernel_cpu",
                "CPUs",
                f"CPUs busy in the kernel for the {who}'s process (rusage)",
                -1,
                f"{who} kernel",
            )
        )
    rows.append(
        Metric(
            "retransmits",
            "segments",
            "TCP segments that the sender sent again within the window",
            -1,
        )
    )
    rows.append(
        Metric("steps", "steps/s", "calls of the sender's method, for methods that move no data", 1)
    )
    return {row.name: row for row in rows}


METRICS: Mapping[str, Metric] = _table()


def describe(name: str) -> Metric:
    """The Metric of a name, also of `NAME.METER`. Errors: KeyError for a name that no record can
    give.
    """
    bare, _, meter = name.partition(".")
    row = METRICS[bare]
    if not meter:
        return row
    return Metric(name, row.unit, f"{row.about}, by {meter}", row.better, f"{row.title} ({meter})")


@dataclass(frozen=True)
class Account:
    """How a meter accounts CPU time: the counters that add up to it, each with its unit (`ns`, `us`
    or `ticks`).

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
    """The accounts of a plan's descriptor rows.

    Meters whose counters carry `cpu_time`; ACCOUNTS for those that rows do not name.
    """
    table = [row for row in rows if row.get("kind") in ("meter", "counter")]
    wide = {
        str(row["name"])
        for row in table
        if row["kind"] == "meter" and "host_wide" in row.get("flags", ())
    }
    found: dict[str, list[tuple[str, str]]] = {}
    for row in table:
        unit = str(row.get("unit", ""))
        if (
            row["kind"] == "counter"
            and "cpu_time" in row.get("flags", ())
            and (unit in _SECONDS or unit == "ticks")
        ):
            found.setdefault(str(row.get("owner", "")), []).append((str(row["name"]), unit))
    accounts = dict(ACCOUNTS)
    for meter, counters in found.items():
        if meter not in ACCOUNTS:
            accounts[meter] = Account(meter, tuple(counters), meter in wide)
    return accounts


def demand(cpus: float, gigabits: float) -> float:
    """Service demand in µs/KB from CPUs busy and Gb/s.

    Netperf's definition (netperf manual, "CPU Utilization"; KB = 1024 bytes).
    """
    return cpus * 1e6 / (gigabits * 1e9 / 8 / KB)


def of_record(
    record: Mapping[str, Any],
    ticks: Mapping[str, int],
    shared: bool,
    accounts: Mapping[str, Account] = ACCOUNTS,
) -> dict[str, float]:
    """All metrics of one record.

    `ticks`: clock ticks per second by host. `shared`: sender and receiver run on one kernel.
    Returns name -> value in METRICS' units, CPU metrics under their bare name and as NAME.METER. A
    record without counters gives an empty dict.
    """
    sender, receiver = record.get("sender") or {}, record.get("receiver") or {}
    windows = seconds(sender), seconds(receiver)
    found: dict[str, float] = {}
    _put(found, "throughput", _throughput(receiver, windows[1]))
    for meter in _ordered(accounts, sender, receiver):
        account = accounts[meter]
        busy = (
            _busy(sender, account, ticks, windows[0]),
            _busy(receiver, account, ticks, windows[1]),
        )
        _cpu(found, meter, *busy, together=account.host_wide and shared)
    _demands(found)
    for who, side, window in zip(SIDES, (sender, receiver), windows, strict=True):
        for counter, name in (("user_us", "user"), ("system_us", "kernel")):
            _put(found, f"{who}_{name}_cpu", _rate(delta(side, "rusage", counter), window, 1e-6))
    _put(found, "retransmits", delta(sender, "tcp", "retransmits"))
    if "throughput" not in found and "bytes" not in sender.get("flow", {}):
        _put(found, "steps", _rate(delta(sender, "flow", "steps"), windows[0]))
    return found


def _put(found: dict[str, float], name: str, value: float | None) -> None:
    if value is not None:
        found[name] = float(value)


def seconds(side: Mapping[str, Any]) -> float | None:
    """Length of the measured window of one side in seconds; None when its edges are not both there
    or not in order.
    """
    edges = side.get("time_ns")
    if edges is None or len(edges) != 2 or edges[1] <= edges[0]:
        return None
    return float(edges[1] - edges[0]) * 1e-9


def moved(opening: Any, closing: Any) -> float:
    """Difference of a counter's values at two edges.

    Lists hold one number a stream and are summed. Whole numbers are subtracted exactly.
    """
    if isinstance(opening, (list, tuple)):
        return sum(closing) - sum(opening)  # type: ignore[no-any-return]
    return closing - opening  # type: ignore[no-any-return]


def delta(side: Mapping[str, Any], group: str, name: str) -> float | None:
    """Closing less opening value of a counter, over all streams; None when it is absent, or went
    backwards (it was reset).
    """
    counters = side.get(group)
    edges = counters.get(name) if counters else None
    if edges is None:
        return None
    difference = moved(edges[0], edges[1])
    return difference if difference >= 0 else None


def _rate(difference: float | None, window: float | None, unit: float = 1.0) -> float | None:
    return None if difference is None or window is None else difference * unit / window


def _throughput(receiver: Mapping[str, Any], window: float | None) -> float | None:
    tool = receiver.get("tool")
    return _rate(delta(receiver, "flow", "bytes"), window, 8e-9) if tool is None else _tool(tool)


def _tool(tool: Mapping[str, Any]) -> float | None:
    """Gb/s in an external tool's words; None when they can't be read."""
    try:
        if "rate" in tool:
            return parse_rate(str(tool["rate"])) / 1e9
        return float(tool["bytes"]) * 8 / float(tool["seconds"]) / 1e9
    except (KeyError, ValueError, ZeroDivisionError):
        return None


def _ordered(
    accounts: Mapping[str, Account], sender: Mapping[str, Any], receiver: Mapping[str, Any]
) -> list[str]:
    ran = [meter for meter in accounts if meter in sender or meter in receiver]
    return sorted(ran, key=lambda m: METER_ORDER.index(m) if m in METER_ORDER else len(METER_ORDER))


def _busy(
    side: Mapping[str, Any], account: Account, ticks: Mapping[str, int], window: float | None
) -> float | None:
    """CPUs busy on one side by one meter; None unless every counter, the window and the unit's
    length are known.
    """
    if window is None or account.meter not in side:
        return None
    spent, tick = 0.0, 1 / (ticks.get(str(side.get("host"))) or math.nan)
    for name, unit in account.counters:
        difference = delta(side, account.meter, name)
        if difference is None:
            return None
        spent += difference * (tick if unit == "ticks" else _SECONDS[unit])
    return None if math.isnan(spent) else spent / window


def _cpu(
    found: dict[str, float], meter: str, out: float | None, into: float | None, together: bool
) -> None:
    """Put NAME.METER of one meter, and the bare names that no better meter has put yet.

    `together`: it can't tell the sides apart.
    """
    if together:
        _named(found, "system_cpu", meter, into if out is None else out)
        return
    _named(found, "sender_cpu", meter, out)
    _named(found, "receiver_cpu", meter, into)
    _named(found, "system_cpu", meter, None if out is None or into is None else out + into)


def _named(found: dict[str, float], name: str, meter: str, value: float | None) -> None:
    if value is not None:
        found[f"{name}.{meter}"] = value
        found.setdefault(name, value)


def _demands(found: dict[str, float]) -> None:
    gigabits = found.get("throughput", 0.0)
    if gigabits <= 0:
        return
    scale = demand(1.0, gigabits)
    for name, cpus in list(found.items()):
        if name in _DEMAND or _is_cpu(name):
            found[_DEMAND[name]] = cpus * scale


_DEMAND: dict[str, str] = {}  # CPU metric -> its demand metric


def _is_cpu(name: str) -> bool:
    bare, dot, meter = name.partition(".")
    if bare.endswith("_cpu"):
        _DEMAND[name] = f"{bare[:-4]}_demand{dot}{meter}"
    return name in _DEMAND
