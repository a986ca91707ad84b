"""From the raw counters of a record to its metrics: the formulas of METRICS, and nothing else.

A counter that a record lacks makes every metric that needs it absent: never 0, never a guess. The
formulas are those of one run, and of several at once (analysis/counters.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from netbench.base.units import printed_rate
from netbench.read.accounts import ACCOUNTS, SECONDS_OF, Account
from netbench.read.counters import (
    NO_COUNTERS,
    Number,
    delta,
    difference,
    either,
    where,
    window_seconds,
)
from netbench.read.ratios import RatioSide, ratios
from netbench.read.soak import SOAK, cpus_busy, slower
from netbench.read.who_paid import who_paid
from netbench.result.record import SIDES, Record, SideCounters, ToolReading

KB = 1024


def demand(cpus: float, gigabits: Number) -> Number:
    """Service demand in µs/KB from CPUs busy and Gb/s.

    Netperf's definition (netperf manual, "CPU Utilization"; KB = 1024 bytes).
    """
    return cpus * 1e6 / (gigabits * 1e9 / 8 / KB)


def metrics_of(
    record: Record,
    ticks: Mapping[str, int],
    shared: bool,
    accounts: Mapping[str, Account] = ACCOUNTS,
) -> dict[str, Number]:
    """All metrics of one record, or of the record of several runs.

    `ticks`: clock ticks per second by host. `shared`: sender and receiver run on one kernel.
    `accounts`: the best first. Returns name -> value in METRICS' units; CPU metrics as NAME.METER,
    and those of the best meter that ran under their bare name too. A record without counters gives
    an empty dict.
    """
    sender, receiver = record.sender or NO_COUNTERS, record.receiver or NO_COUNTERS
    windows = window_seconds(sender), window_seconds(receiver)
    metrics: dict[str, Number] = {}
    _put(metrics, "throughput", _throughput(receiver, windows[1]))
    _put(metrics, "sent", _rate(delta(sender, "flow", "bytes"), windows[0], 8e-9))
    _put_cpu(metrics, SOAK, cpus_busy(sender), cpus_busy(receiver), together=shared)
    one, other = slower(sender), slower(receiver)
    mean = None if one is None or other is None else (one + other) / 2
    _put(metrics, "slow_down", either(mean, either(one, other)))
    for meter, account in accounts.items():
        busy = (
            _busy(sender, account, ticks, windows[0]),
            _busy(receiver, account, ticks, windows[1]),
        )
        _put_cpu(metrics, meter, *busy, together=account.host_wide and shared)
    _put_demands(metrics)
    for who, side, window in zip(SIDES, (sender, receiver), windows, strict=True):
        for counter, name in (("user_us", "user"), ("system_us", "kernel")):
            _put(metrics, f"{who}_{name}_cpu", _rate(delta(side, "rusage", counter), window, 1e-6))
    _put(metrics, "retransmits", delta(sender, "tcp", "retransmits"))
    _put(metrics, "fsync_time", None if receiver.fsync_ns is None else receiver.fsync_ns * 1e-6)
    sides = {
        who: RatioSide(side, ticks.get(side.host), _payload(window, metrics))
        for who, side, window in zip(SIDES, (sender, receiver), windows, strict=True)
    }
    metrics.update(ratios(sides, shared))
    for name, share in who_paid({"sender": sender, "receiver": receiver}, ticks, shared, metrics):
        _put(metrics, name, share)
    for name, capture in record.captures.items():
        _put(metrics, name, None if name in metrics else capture.value)
    if "throughput" not in metrics and "bytes" not in sender.meters.get("flow", {}):
        _put(metrics, "steps", _rate(delta(sender, "flow", "steps"), windows[0]))
    return metrics


def _payload(window: Number | None, metrics: Mapping[str, Number]) -> Number | None:
    """Bytes of payload in a side's window, at the receiver's goodput, as service demand has it."""
    if window is None or "throughput" not in metrics:
        return None
    return metrics["throughput"] * 1e9 / 8 * window


def _put(metrics: dict[str, Number], name: str, value: Number | None) -> None:
    if value is not None:
        metrics[name] = value * 1.0


def _rate(change: Number | None, window: Number | None, unit: float = 1.0) -> Number | None:
    return None if change is None or window is None else change * unit / window


def _throughput(receiver: SideCounters, window: Number | None) -> Number | None:
    if receiver.tool is None:
        return _rate(delta(receiver, "flow", "bytes"), window, 8e-9)
    return _reported_throughput(receiver.tool)


def _reported_throughput(tool: ToolReading) -> Number | None:
    """Gb/s as an external tool reports it; None when its output cannot be read."""
    if tool.rate is not None:
        try:
            return printed_rate(tool.rate) / 1e9
        except ValueError:
            return None
    if tool.bytes is None or tool.seconds is None:
        return None
    seconds = where(tool.seconds != 0, tool.seconds)
    return None if seconds is None else tool.bytes * 8 / seconds / 1e9


def _busy(
    side: SideCounters, account: Account, ticks: Mapping[str, int], window: Number | None
) -> Number | None:
    """CPUs busy on one side by one meter, but for soakers; None unless every counter, the window
    and the unit's length are known.
    """
    counters = side.meters.get(account.meter, {})
    cpus = counters.get("cpus") if account.idle else None
    counted = account.counters if cpus is None else account.idle
    if window is None or not counted:
        return None
    spent, seconds_of = 0.0, _seconds_of(ticks.get(side.host))
    for name, unit in counted:
        if name not in counters or unit not in seconds_of:
            return None
        spent = spent + difference(*counters[name]) * seconds_of[unit]  # of a u64, no array's type
    busy = where(spent >= 0, spent / window)  # of several, iowait may go back (proc(5))
    if cpus is not None and busy is not None:
        busy = where(cpus[0] == cpus[1], cpus[0] - busy)  # around 0 it may be below
    own = delta(side, SOAK, "used_ns") if account.host_wide else None
    return busy if busy is None or own is None else either(busy - own * 1e-9 / window, busy)


@cache
def _seconds_of(ticks: int | None) -> Mapping[str, float]:
    """Seconds in each unit of CPU time, on a host whose clock has so many ticks in a second."""
    return SECONDS_OF | {"ticks": 1 / ticks} if ticks else SECONDS_OF


def _put_cpu(
    metrics: dict[str, Number],
    meter: str,
    sender: Number | None,
    receiver: Number | None,
    together: bool,
) -> None:
    """Put NAME.METER of one meter, and the bare names that no better meter has put yet.

    `together`: the meter cannot tell the sides apart.
    """
    if together:
        _put_by_meter(metrics, "system_cpu", meter, either(sender, receiver))
        return
    _put_by_meter(metrics, "sender_cpu", meter, sender)
    _put_by_meter(metrics, "receiver_cpu", meter, receiver)
    both = None if sender is None or receiver is None else sender + receiver
    _put_by_meter(metrics, "system_cpu", meter, both)


def _put_by_meter(metrics: dict[str, Number], name: str, meter: str, value: Number | None) -> None:
    if value is not None:
        metrics[f"{name}.{meter}"] = value
        metrics[name] = either(metrics.get(name), value)


def _put_demands(metrics: dict[str, Number]) -> None:
    gigabits = metrics.get("throughput", 0.0)
    positive = where(gigabits > 0, gigabits)
    if positive is None:
        return
    scale = demand(1.0, positive)
    for name, cpus in list(metrics.items()):
        if demand_name := _demand_of(name):
            metrics[demand_name] = cpus * scale


@cache
def _demand_of(name: str) -> str:
    """The service demand that goes with a CPU metric; "" for any other metric."""
    bare, dot, meter = name.partition(".")
    return f"{bare[:-4]}_demand{dot}{meter}" if bare.endswith("_cpu") else ""
