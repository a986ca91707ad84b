"""From the raw counters of a record to its metrics: the formulas of METRICS, and nothing else.

A counter that a record lacks makes every metric that needs it absent: never 0, never a guess. The
formulas are those of one run, and of several at once (counters.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

import numpy as np

from netbench.base.units import LARGEST, printed_rate, times
from netbench.read.accounts import ACCOUNTS, SECONDS_OF, Account
from netbench.read.counters import (
    NO_COUNTERS,
    Number,
    delta,
    difference,
    edges_of,
    either,
    is_known,
    steady,
    where,
    window_seconds,
)
from netbench.read.metrics import BYTES, RATIOS, SOAK, WINDOW, Ratio
from netbench.read.soak import cpus_busy, slower
from netbench.result.record import SIDES, Record, SideCounters, ToolReading

KB = 1024
TRANSACTIONS = "transactions"
CPU_NAMES = ("sender_cpu", "receiver_cpu", "system_cpu")
INTERRUPTS = ("interrupts", "sender_interrupts", "receiver_interrupts")
LEAST_TICKS = 5
"""Of a window in which what a clock's tick counts says something of the CPU's time."""
BESIDE_SOAK = {"perf"}
"""Meters whose counters beside soak are mostly the soakers' own: nothing is derived from them."""


def demand(cpus: float, gigabits: Number) -> Number:
    """Service demand in µs/KB from CPUs busy and Gb/s.

    Netperf's definition (netperf manual, "CPU Utilization"; KB = 1024 bytes).
    """
    return cpus * 1e6 / (gigabits * 1e9 / 8 / KB)


class _Side(NamedTuple):
    """One side of a run, or of several: its counters, clock ticks a second, window in seconds and
    payload in bytes, at the receiver's goodput, as service demand has it.
    """

    counters: SideCounters
    ticks: float
    window: Number
    payload: Number

    def rate(self, meter: str, name: str, unit: float = 1.0) -> Number:
        """What a counter counted in a second."""
        return delta(self.counters, meter, name) * unit / self.window

    def counted(self, names: Iterable[str]) -> Number:
        """What counters METER.NAME counted together."""
        return sum((delta(self.counters, *name.split(".")) for name in names), 0.0)


def metrics_of(
    record: Record,
    ticks: Mapping[str, int],
    shared: bool,
    accounts: Mapping[str, Account] = ACCOUNTS,
    ratios: bool = True,
) -> dict[str, Number]:
    """All metrics of one record, or of the record of several runs, or all but ratios of counters,
    none of which can close a cell.

    `ticks`: clock ticks per second by host. `shared`: sender and receiver run on one kernel.
    `accounts`: the best first. Returns name -> value in METRICS' units; CPU metrics as NAME.METER,
    and those of the best meter that ran under their bare name too. A record without counters gives
    an empty dict.
    """
    both = record.sender or NO_COUNTERS, record.receiver or NO_COUNTERS
    throughput = throughput_of(both[1])
    windows = [window_seconds(side) for side in both]
    tool = both[1].tool
    moved = [throughput if tool is None else _moved(tool, window) for window in windows]
    payloads = [rate * 1e9 / 8 * window for rate, window in zip(moved, windows, strict=True)]
    of_hosts = [ticks.get(side.host, math.nan) for side in both]
    sender, receiver = map(_Side, both, of_hosts, windows, payloads)
    metrics = {"throughput": throughput, "sent": sender.rate("flow", "bytes", 8e-9)}
    if any(SOAK in side.meters for side in both):
        _put_cpu(metrics, SOAK, cpus_busy(both[0]), cpus_busy(both[1]), together=shared)
        slow = slower(both[0]), slower(both[1])
        metrics["slow_down"] = either((slow[0] + slow[1]) / 2, either(*slow))
    for meter, account in accounts.items():
        together = account.host_wide and shared
        _put_cpu(metrics, meter, _busy(sender, account), _busy(receiver, account), together)
    _put_demands(metrics, *moved)
    for who, side in zip(SIDES, (sender, receiver), strict=True):
        metrics[f"{who}_user_cpu"] = side.rate("rusage", "user_us", 1e-6)
        metrics[f"{who}_kernel_cpu"] = side.rate("rusage", "system_us", 1e-6)
    metrics["retransmits"] = delta(both[0], "tcp", "retransmits")
    if both[1].fsync_ns is not None:
        metrics["fsync_time"] = both[1].fsync_ns * 1e-6
    metrics.update(_ratios(sender, receiver, shared) if ratios else ())
    metrics = {name: value * 1.0 for name, value in metrics.items() if is_known(value)}
    for name, capture in record.captures.items():
        if capture.value is not None:
            metrics.setdefault(name, capture.value * 1.0)
    if TRANSACTIONS in metrics and "flow" in both[1].meters:  # a tool's are of a time of its own
        metrics |= dict(_of_requests(metrics))
    elif "throughput" not in metrics and "bytes" not in both[0].meters.get("flow", {}):
        steps = sender.rate("flow", "steps")
        metrics |= {"steps": steps} if is_known(steps) else {}
    return metrics


def _moved(tool: ToolReading, window: Number) -> Number:
    """Gb/s that a tool moved within a window: all its bytes, where its own time lies in it (the
    window is its life); where the window lies in that time, what it moved a second. NaN where it
    told a rate alone: nothing says for how long.
    """
    if tool.bytes is None or tool.seconds is None:
        return math.nan
    inside = where(window < tool.seconds, tool.seconds)
    return tool.bytes * 8e-9 / either(inside, window)


def _of_requests(metrics: Mapping[str, Number]) -> Iterator[tuple[str, Number]]:
    """CPU of each request in µs, by side and meter; and the interrupts for each."""
    rate = where(metrics[TRANSACTIONS] > 1 / LARGEST, metrics[TRANSACTIONS])
    for name, value in metrics.items() if is_known(rate) else ():
        if name.partition(".")[0] in CPU_NAMES:
            yield name.replace("_cpu", "_request_demand"), value * 1e6 / rate
        elif name in INTERRUPTS:
            yield f"{name}_per_request", value / rate


def in_one_unit(record: Record, metrics: dict[str, Number], units: dict[str, str]) -> Iterator[str]:
    """Bring what tools have printed to the unit of the first record, which `units` keeps; the names
    of what is no multiple of it, and left out.
    """
    for name, each in record.captures.items():
        if each.value is None or name not in metrics:
            continue
        factor = times(each.unit, units.setdefault(name, each.unit))
        if factor is None:
            del metrics[name]
            yield name
        elif factor != 1:
            metrics[name] = metrics[name] * factor


def throughput_of(receiver: SideCounters) -> Number:
    """Gb/s that a receiver got, as its tool says where one moved the data; NaN where that is not
    known, or the tool's output cannot be read.
    """
    tool = receiver.tool
    if tool is None:
        return delta(receiver, "flow", "bytes") * 8e-9 / window_seconds(receiver)
    if tool.rate is not None:
        try:
            return printed_rate(tool.rate) / 1e9
        except ValueError:
            return math.nan
    if tool.bytes is None or tool.seconds is None:
        return math.nan
    return tool.bytes * 8 / where(tool.seconds != 0, tool.seconds) / 1e9


def _busy(side: _Side, account: Account) -> Number:
    """CPUs busy on one side by one meter, but for soakers; NaN unless every counter, the window and
    the unit's length are known.
    """
    counters = side.counters.meters.get(account.meter, {})
    by_idle = bool(account.idle) and "cpus" in counters
    counted = account.idle if by_idle else account.counters
    if not counted or not counters.keys() >= {name for name, _ in counted}:
        return math.nan
    seconds_of = SECONDS_OF | {"ticks": 1 / side.ticks}
    spent = 0.0
    for name, unit in counted:
        moved = difference(side.counters, account.meter, name)
        spent = spent + moved * seconds_of[unit]  # of a u64, no array's type
    busy = where(spent >= 0, spent / side.window)  # of several, iowait may go back (proc(5))
    if any(unit == "ticks" for _, unit in counted):
        busy = _by_ticks(busy, side)
    if by_idle:  # around 0 it may be below
        busy = steady(side.counters, account.meter, "cpus") - busy
    if not account.host_wide or SOAK not in side.counters.meters:
        return busy
    return either(busy - delta(side.counters, SOAK, "used_ns") * 1e-9 / side.window, busy)


def _put_cpu(
    metrics: dict[str, Number], meter: str, sender: Number, receiver: Number, together: bool
) -> None:
    """Put NAME.METER of one meter, and the bare names that no better meter has put yet.

    `together`: the meter cannot tell the sides apart.
    """
    if together:
        values = {"system_cpu": either(sender, receiver)}
    else:
        both = sender + receiver
        values = {"sender_cpu": sender, "receiver_cpu": receiver, "system_cpu": both}
    for name, value in values.items():
        if is_known(value):
            metrics[f"{name}.{meter}"] = value
            metrics[name] = either(metrics.get(name, math.nan), value)


def _put_demands(metrics: dict[str, Number], sent: Number, received: Number) -> None:
    """Of every CPU metric. sent, received: Gb/s within the window of each side."""
    by = {"sender": sent, "receiver": received, "system": either(sent, received)}
    scales = {who: demand(1.0, where(rate > 0, rate)) for who, rate in by.items()}
    for name, cpus in list(metrics.items()):
        if demand_name := _demand_of(name):
            metrics[demand_name] = cpus * scales[name.partition("_")[0]]


@cache
def _demand_of(name: str) -> str:
    """The service demand that goes with a CPU metric; "" for any other metric."""
    bare, dot, meter = name.partition(".")
    return f"{bare[:-4]}_demand{dot}{meter}" if bare.endswith("_cpu") else ""


@cache
def _rows_of(meters: frozenset[str]) -> tuple[Ratio, ...]:
    """The ratios whose counters are of these meters."""
    return tuple(
        row for row in RATIOS if {name.partition(".")[0] for name in row.counters} <= meters
    )


def _ratios(sender: _Side, receiver: _Side, shared: bool) -> Iterator[tuple[str, Number]]:
    """Name and value of every ratio that counters of runs give; `shared`: on one kernel."""
    meters = frozenset((*sender.counters.meters, *receiver.counters.meters))
    if SOAK in meters:
        meters -= BESIDE_SOAK
    namespaces = [edges_of(side.counters, "softirq", "namespace") for side in (sender, receiver)]
    one_namespace = shared and np.array_equal(namespaces[0], namespaces[1])
    for row in _rows_of(meters):
        tops, belows = zip(*(_parts(row, side) for side in (sender, receiver)), strict=True)
        values = [top / below for top, below in zip(tops, belows, strict=True)]
        if shared if row.whole else one_namespace:  # the counters of a side speak of both
            if not row.side:
                yield row.name, either(*values)
        elif row.side:
            yield row.name, values[SIDES.index(row.side)]
        else:
            yield from zip((f"{who}_{row.name}" for who in SIDES), values, strict=True)
            each = isinstance(row.over, str)
            yield row.name, sum(values) if each else sum(tops) / sum(belows)


def _parts(row: Ratio, side: _Side) -> tuple[Number, Number]:
    """What is counted, and what it is over, of one side; NaN where it is not known, or over 0."""
    counted = side.counted(row.counters)
    if row.less_idle:
        counted = counted - _idle(row.counters, side)
    if row.share:
        enabled, running = (_not_0(side.counted((name,))) for name in row.share)
        counted = counted * (enabled / running)
    if row.ticks:
        counted = _by_ticks(counted / side.ticks, side)
    over: Mapping[str, Callable[[], Number]] = {
        WINDOW: lambda: side.window,
        BYTES: lambda: side.payload,
    }
    below = over[row.over]() if isinstance(row.over, str) else side.counted(row.over)
    return counted * row.scale, _not_0(below)


def _by_ticks(counted: Number, side: _Side) -> Number:
    """What ticks have counted; NaN in a window of so few that it is chance alone."""
    return where(side.window * side.ticks >= LEAST_TICKS, counted)


def _idle(counters: Iterable[str], side: _Side) -> Number:
    """What these counters of one meter would have counted in the window if the host were idle, by
    the idle window before the block.
    """
    meters, names = zip(*(name.split(".") for name in counters), strict=True)
    counted = _not_0(side.counted(f"{meters[0]}.idle_{name}" for name in names))
    return counted / (_not_0(delta(side.counters, meters[0], "idle_time_ns")) * 1e-9) * side.window


def _not_0(value: Number) -> Number:
    return where(value != 0, value)
