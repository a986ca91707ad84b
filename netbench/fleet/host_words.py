"""What is outlying in a fleet, in sentences with their evidence."""

from __future__ import annotations

import math
from collections.abc import Iterator

from netbench.fleet.causes import BY_FACTS, BY_OTHERS, HOST, Cause
from netbench.fleet.fit import LINK, PAIR, RECEIVER, SENDER, Shared, Shift
from netbench.fleet.host_effects import FALLBACK, Fleet
from netbench.read.result import Result
from netbench.read.shown_levels import shown
from netbench.report.numbers import count, number, share
from netbench.report.phrases import title
from netbench.report.source import Source
from netbench.stats.words import amount, bounds

FACTS_TOLD = 4
SENTENCES = 8
"""Of a metric, in the summary."""
VERBS = {SENDER: "sends", RECEIVER: "receives", PAIR: "moves", LINK: "moves"}


def place(fleet: Fleet, several: bool) -> str:
    """The cell that an analysis is of, where there are several."""
    levels = " ".join(f"{k}={shown(v)}" for k, v in fleet.factors.items()) or fleet.cell
    return f"{levels}: " if several else ""


def of_fleets(source: Source) -> Iterator[str]:
    """The outliers of all metrics and cells, and what the pairs moved; some of many."""
    for fleets in source.fleets.values():
        lines = list(sentences(source.result, fleets))
        yield from lines[:SENTENCES]
        if len(lines) > SENTENCES:
            yield f"{len(lines) - SENTENCES} more of this kind are below."
        for each in fleets[:SENTENCES]:
            o, unit = each.observed, source.result.describe(each.metric).unit
            low, high = int(o.mean.argmin()), int(o.mean.argmax())
            ends = " to ".join(f"{number(math.exp(o.mean[i]))} ({o.pairs[i]})" for i in (low, high))
            yield (
                f"{place(each, len(fleets) > 1)}{title(each.metric, source.result)}: median"
                f" {number(each.middle)} {unit} of {_size(each)}, from {ends}."
            )


def sentences(result: Result, fleets: list[Fleet]) -> Iterator[str]:
    """One for each thing outlying in the cells of a metric; where there is none, the lowest."""
    for fleet in fleets:
        where = place(fleet, len(fleets) > 1)
        links = [s for s in fleet.fit.shared if s.kind == LINK and s.worse]
        for shared in links:
            yield f"{where}{_link(result, fleet, shared)}."
        for cause in fleet.causes:
            yield f"{where}{cause_sentence(result, fleet, cause)}"
        if not (links or fleet.causes):
            yield f"{where}{_none(result, fleet)}"


def _size(fleet: Fleet) -> str:
    o = fleet.observed
    return f"{count(len({*o.sender, *o.receiver}), 'host')}, {count(len(o.pairs), 'pair')}"


def _none(result: Result, fleet: Fleet) -> str:
    """`No pair is outlying in throughput (30 hosts, 30 pairs). The lowest of a spread: a>b 6.1%
    less and c>d 4.3% less (outlying: 11.0% less).`
    """
    limits, size, what = fleet.fit.limits, _size(fleet), title(fleet.metric, result)
    if not limits:
        return (
            f"Nothing is named in {what} ({size}): with one run each, what is odd may be the run."
        )
    lows = [
        f"{' and '.join(f'{s.name} {amount(s.ratio)}' for s in fleet.lowest(kind)[:2])}"
        f" (outlying: {amount(limit)})"
        for kind, limit in limits.items()
    ]
    kinds = " or ".join(", ".join(limits).rsplit(", ", 1))
    return f"No {kinds} is outlying in {what} ({size}). The lowest of a spread: {'; '.join(lows)}."


def cause_sentence(result: Result, fleet: Fleet, cause: Cause) -> str:
    """What is outlying, by how much, and what is known of it."""
    what = _host(result, fleet, cause) if cause.kind == HOST else _pair(result, fleet, cause)
    facts = [
        odd.words if cause.kind == HOST else f"{host}: {odd.words}"
        for host, each in cause.facts.items()
        for odd in each
    ]
    more = len(facts) - FACTS_TOLD
    facts = facts[:FACTS_TOLD] + ([f"{more} more facts differ"] if more > 0 else [])
    return "; ".join([what, *facts]) + "."


def _host(result: Result, fleet: Fleet, cause: Cause) -> str:
    """A host with all that it is seen in."""
    parts: list[str] = []
    for shift, how in zip(cause.shifts, cause.how, strict=True):
        first = not parts
        if shift.kind != PAIR:
            shift_text = _shift(result, fleet, shift.kind, shift, first)
            parts.append(f"{shift_text} in {count(shift.pairs, 'pair')}")
            continue
        sender, _, receiver = shift.name.partition(">")
        kind, other = (SENDER, receiver) if sender == cause.name else (RECEIVER, sender)
        shift_text = _shift(result, fleet, kind, shift, first)
        shift_text += f" {'to' if kind == SENDER else 'from'} {other}"
        if how == BY_OTHERS:
            shift_text += ", whose other pairs are as those of the fleet"
        elif how == BY_FACTS:
            shift_text += (
                f", if it is the cause: no other pair tells it apart from {other}, but of the two"
                f" only {cause.name} differs in facts from nearly all hosts"
            )
        parts.append(shift_text)
    return f"{cause.name} {'; it '.join(parts)}"


def _pair(result: Result, fleet: Fleet, cause: Cause) -> str:
    what = f"{cause.name} {_shift(result, fleet, PAIR, cause.shifts[0])}"
    if not cause.candidates:
        return (
            f"{what}, though neither host is outlying in its other pairs: look at the way between"
            " them"
        )
    sender, receiver = cause.candidates
    return (
        f"{what}; whether {sender} sends or {receiver} receives less cannot be told, since no other"
        " pair has either in that direction"
    )


def _link(result: Result, fleet: Fleet, shared: Shared) -> str:
    what = _shift(result, fleet, LINK, shared)
    hosts = count(shared.hosts, "host")
    return f"link {shared.name}: each pair that crosses it {what}, as {hosts} behind it show"


def _shift(
    result: Result, fleet: Fleet, kind: str, shift: Shift | Shared, first: bool = True
) -> str:
    """`sends 8.1% less than the fleet's median (95% interval 6.0 to 10.2% less)`."""
    verb, what = VERBS[kind], ""
    if fleet.metric != FALLBACK:
        verb, what = "has", f" {title(fleet.metric, result)}"
    against = " than the others" if kind == LINK else " than the fleet's median" if first else ""
    text = f"{verb} {amount(shift.ratio)}{what}{against}"
    interval = f"{share(fleet.confidence)} interval " if first else ""
    if math.isnan(shift.low):
        return text
    return f"{text} ({interval}{bounds(shift.low, shift.high)})"
