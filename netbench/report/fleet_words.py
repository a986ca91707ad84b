"""What is outlying in a fleet, in sentences with their evidence."""

from __future__ import annotations

import math
from collections.abc import Iterator

from netbench.analysis.fleet import FALLBACK, Fleet
from netbench.analysis.fleet_causes import (
    BY_BOTH,
    BY_FACTS,
    BY_OTHERS,
    HOST,
    Cause,
)
from netbench.analysis.fleet_outliers import LINK, PAIR, RECEIVER, SENDER, Shift
from netbench.analysis.result import Result
from netbench.analysis.shown_levels import shown
from netbench.analysis.words import bounds, change, times
from netbench.report.numbers import count, number, share
from netbench.report.source import Source
from netbench.report.titles import title

FACTS_TOLD = 4
SENTENCES = 8
"""Of a metric, in the summary."""
MEDIAN = "the fleet's median"
VERBS = {SENDER: "sends", RECEIVER: "receives", PAIR: "moves"}


def place(fleet: Fleet, several: bool) -> str:
    """The cell that an analysis is of, where there are several."""
    levels = " ".join(f"{k}={shown(v)}" for k, v in fleet.factors.items()) or fleet.cell
    return f"{levels}: " if several else ""


def sentences(result: Result, fleet: Fleet, several: bool) -> Iterator[str]:
    """One for each cause, the slowest first; one that there is none."""
    where = place(fleet, several)
    for cause in fleet.causes:
        yield f"{where}{cause_sentence(result, fleet, cause)}"
    if not fleet.causes:
        yield (
            f"{where}No host, pair or link is outlying in {title(fleet.metric, result)} at"
            f" {share(fleet.confidence)} confidence ({_size(fleet)})."
        )


def of_fleets(source: Source) -> Iterator[str]:
    """The outliers of all metrics and cells, and what the pairs moved; some of many."""
    for found in source.fleets.values():
        several = len(found) > 1
        lines = [line for each in found for line in sentences(source.result, each, several)]
        yield from lines[:SENTENCES]
        if len(lines) > SENTENCES:
            yield f"{len(lines) - SENTENCES} more of this kind are below."
        for each in found[:SENTENCES]:
            yield f"{place(each, several)}{_range(source.result, each)}."


def _range(result: Result, fleet: Fleet) -> str:
    """`throughput: median 17.9 Gb/s of 100 pairs, from 7.97 (a>b) to 18.7 (c>d)`."""
    o = fleet.observed
    unit = result.describe(fleet.metric).unit
    low, high = int(o.mean.argmin()), int(o.mean.argmax())
    ends = " to ".join(f"{number(math.exp(o.mean[i]))} ({o.pairs[i]})" for i in (low, high))
    median = f"{number(fleet.middle)} {unit}".strip()
    return f"{title(fleet.metric, result)}: median {median} of {_size(fleet)}, from {ends}"


def _size(fleet: Fleet) -> str:
    o = fleet.observed
    used = {*o.sender.tolist(), *o.receiver.tolist()}
    return f"{count(len(used), 'host')}, {count(len(o.pairs), 'pair')}"


def cause_sentence(result: Result, fleet: Fleet, cause: Cause) -> str:
    """What is outlying, by how much, and what is known of it."""
    if cause.kind == HOST:
        told = _host(result, fleet, cause)
    elif cause.kind == LINK:
        told = _link(result, fleet, cause)
    else:
        told = _pair(result, fleet, cause)
    facts = [odd.words for odd in cause.facts[:FACTS_TOLD]]
    more = len(cause.facts) - len(facts)
    return "; ".join([told, *facts, *([f"{more} more facts differ"] if more else [])]) + "."


def _host(result: Result, fleet: Fleet, cause: Cause) -> str:
    """A host with all that it is seen in."""
    name = cause.name
    if set(cause.how) == {BY_BOTH}:
        pairs = " and ".join(
            f"{s.name} {_shift(result, fleet, s, first=not i)}" for i, s in enumerate(cause.shifts)
        )
        return (
            f"{name} is slow in both directions: {pairs}" if cause.least < 1 else f"{name}: {pairs}"
        )
    parts = []
    for i, (shift, how) in enumerate(zip(cause.shifts, cause.how, strict=True)):
        sender, _, receiver = shift.name.partition(">")
        if shift.kind != PAIR:
            parts.append(
                f"{_shift(result, fleet, shift, first=not i)} in {count(shift.pairs, 'pair')}"
            )
            continue
        kind, other = (SENDER, receiver) if sender == name else (RECEIVER, sender)
        one = Shift(kind, name, 1, shift.ratio, shift.low, shift.high)
        told = _shift(result, fleet, one, first=not i)
        to = f"to {other}" if kind == SENDER else f"from {other}"
        if how == BY_OTHERS:
            told += f" {to}, whose other pairs are as those of the fleet"
        elif how == BY_FACTS:
            told += (
                f" {to}, if it is the cause: no other pair tells it apart from {other}, but of the"
                f" two only {name} differs in facts from nearly all hosts"
            )
        else:
            told += f" {to}"
        parts.append(told)
    return f"{name} {'; it '.join(parts)}"


def _pair(result: Result, fleet: Fleet, cause: Cause) -> str:
    (shift,) = cause.shifts
    told = f"{cause.name} {_shift(result, fleet, shift)}"
    if not cause.candidates:
        return (
            f"{told}, though neither host is outlying in its other pairs: look at the way between"
            " them"
        )
    if len(cause.candidates) == 1:
        return told
    sender, receiver = cause.candidates
    told += (
        f"; whether {sender} sends or {receiver} receives less cannot be told, since no other pair"
        " has either in that direction"
    )
    facts = [f"{host}: {odd[0].words}" for host, odd in cause.others.items()]
    return f"{told} ({'; '.join(facts)})" if facts else told


def _link(result: Result, fleet: Fleet, cause: Cause) -> str:
    (shift,) = cause.shifts
    crossing = count(shift.pairs, "pair")
    told = _shift(result, fleet, shift, against="the others")
    return f"link {cause.name}: {crossing} that cross it, each {told}"


def _shift(
    result: Result, fleet: Fleet, shift: Shift, first: bool = True, against: str = MEDIAN
) -> str:
    """`sends 8.1% less than the fleet's median (95% interval 6.0 to 10.2% less)`."""
    verb = VERBS.get(shift.kind, "moves") if fleet.metric == FALLBACK else "has"
    what = "" if fleet.metric == FALLBACK else f" {title(fleet.metric, result)}"
    amount = f"{change(shift.ratio)}{times(shift.ratio)}"
    told = f"{verb} {amount}{what}" + (f" than {against}" if first else "")
    if math.isnan(shift.low):
        return told
    interval = f"{share(fleet.confidence)} interval " if first else ""
    return f"{told} ({interval}{bounds(shift.low, shift.high)})"
