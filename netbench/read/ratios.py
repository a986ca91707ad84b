"""Values of the metrics in RATIOS."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from netbench.read.counters import Number, delta, either, where, window_seconds
from netbench.read.ratio_table import BYTES, RATIOS, WINDOW, Ratio
from netbench.read.soak import SOAK
from netbench.result.record import SIDES, SideCounters, SideName

SOAKED = {"perf"}
"""Meters whose counters beside soak are mostly the soakers' own: nothing is derived from them."""


@cache
def _rows_of(meters: frozenset[str]) -> tuple[Ratio, ...]:
    """The rows whose counters are of these meters."""
    return tuple(
        row for row in RATIOS if {name.partition(".")[0] for name in row.counters} <= meters
    )


@dataclass(frozen=True)
class RatioSide:
    """One side of a run, or of several: its counters, clock ticks a second, and payload (None: not
    known).
    """

    counters: SideCounters
    ticks: int | None
    payload: Number | None


def ratios(sides: Mapping[SideName, RatioSide], shared: bool) -> Iterator[tuple[str, Number]]:
    """Name and value of every ratio that the counters of a run, or of several, give. `shared`:
    both sides run on one kernel.
    """
    meters = frozenset(name for one in sides.values() for name in one.counters.meters)
    if SOAK in meters:
        meters -= SOAKED
    one_namespace = shared and _share_namespace(sides)
    for row in _rows_of(meters):
        parts = {who: _parts(row, sides[who]) for who in SIDES}
        yield from _values(row, parts, shared if row.whole else one_namespace)


def _share_namespace(sides: Mapping[SideName, RatioSide]) -> bool:
    edges: list[Any] = [
        one.counters.meters.get("softirq", {}).get("namespace") for one in sides.values()
    ]
    return edges[0] is not None and np.array_equal(edges[0], edges[1])


_Parts = tuple[Number, Number] | None
"""What is counted, and what it is over, of one side; None where one of both is missing or 0."""


def _values(
    row: Ratio, parts: Mapping[SideName, _Parts], together: bool
) -> Iterator[tuple[str, Number]]:
    """`together`: the counters of a side speak of both."""
    sender, receiver = parts["sender"], parts["receiver"]
    if together:
        both = either(*(mine and mine[0] / mine[1] for mine in (sender, receiver)))
        if both is not None and not row.side:
            yield row.name, both
        return
    if row.side:
        mine = sender if row.side == "sender" else receiver
        if mine:
            yield row.name, mine[0] / mine[1]
        return
    for who, mine in parts.items():
        if mine:
            yield f"{who}_{row.name}", mine[0] / mine[1]
    if sender and receiver:
        if isinstance(row.over, str):
            yield row.name, sender[0] / sender[1] + receiver[0] / receiver[1]
        else:
            yield row.name, (sender[0] + receiver[0]) / (sender[1] + receiver[1])


def _parts(row: Ratio, side: RatioSide) -> _Parts:
    counted, below = _total(row.counters, side.counters), _not_0(_below(row, side))
    if counted is None or below is None:
        return None
    if row.less_idle:
        idle = _idle(row.counters, side.counters)
        if idle is None:
            return None
        counted = counted - idle
    if row.share:
        enabled, running = (_not_0(_total((name,), side.counters)) for name in row.share)
        if enabled is None or running is None:
            return None
        counted *= enabled / running
    if row.ticks:
        if not side.ticks:
            return None
        counted /= side.ticks
    return counted * row.scale, below


def _idle(counters: Iterable[str], side: SideCounters) -> Number | None:
    """What these counters of one meter would have counted in the window if the host were idle, by
    the idle window before the block; None without one.
    """
    meters, names = zip(*(name.split(".") for name in counters), strict=True)
    edges = side.meters.get(meters[0], {}).get("idle_time_ns")
    window = window_seconds(side)
    counted = _not_0(_total((f"{meters[0]}.idle_{name}" for name in names), side))
    if edges is None or window is None or counted is None:
        return None
    length = where(edges[1] > edges[0], (edges[1] - edges[0]) * 1e-9)
    return None if length is None else counted / length * window


def _not_0(value: Number | None) -> Number | None:
    return None if value is None else where(value != 0, value)


def _below(row: Ratio, side: RatioSide) -> Number | None:
    special: Mapping[str, Callable[[], Number | None]] = {
        WINDOW: lambda: window_seconds(side.counters),
        BYTES: lambda: side.payload,
    }
    if isinstance(row.over, str):
        return special[row.over]()
    return _total(row.over, side.counters)


def _total(names: Iterable[str], side: SideCounters) -> Number | None:
    total: Number = 0.0
    for name in names:
        change = delta(side, *name.split("."))
        if change is None:
            return None
        total = total + change
    return total
