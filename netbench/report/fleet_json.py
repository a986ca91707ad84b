"""A fleet for programs."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from netbench.analysis.fleet import Fleet
from netbench.analysis.fleet_causes import Cause
from netbench.analysis.fleet_outliers import LINK, PAIR, RECEIVER, SENDER, Shift
from netbench.report.fleet_words import cause_sentence
from netbench.report.source import Source


def fleet(source: Source) -> dict[str, Any] | None:
    """`{analyses, facts}`: an analysis for each metric and cell; None where there are few pairs.

    In an analysis `outlying` has what is named, each with its sentence, `hosts pairs links groups`
    the shifts as ratios to the fleet's median (of groups, to the rest), with intervals that hold
    all at once. `spread`: standard deviations of logarithms without outliers; null: not told apart.
    """
    if not source.fleets:
        return None
    return {
        "analyses": [_analysis(source, each) for found in source.fleets.values() for each in found],
        "facts": [
            {
                "fact": each.fact,
                "values": [{"value": value, "hosts": list(who)} for value, who in each.values],
                "unread": list(each.unread),
            }
            for each in source.fleet_facts
        ],
    }


def _analysis(source: Source, each: Fleet) -> dict[str, Any]:
    apart = {SENDER: each.analysis.senders_apart, RECEIVER: each.analysis.receivers_apart}
    return {
        "metric": each.metric,
        "cell": each.cell,
        "confidence": each.confidence,
        "median": each.middle,
        "settled": each.analysis.settled,
        "spread": {
            PAIR: math.sqrt(each.spread.pair),
            **{k: math.sqrt(each.spread.of(k == SENDER)) if apart[k] else None for k in apart},
        },
        "outlying": [_cause(source, each, cause) for cause in each.causes],
        "hosts": [
            {"host": host, **{kind: _shift(each.shift_of(host, kind)) for kind in apart}}
            for host in each.observed.hosts
        ],
        "pairs": [_named(shift, "pair") for shift in each.of(PAIR).values()],
        "links": [_named(shift, "link") for shift in each.of(LINK).values()],
        "groups": [{k: _finite(v) for k, v in asdict(group).items()} for group in each.groups],
        "unmeasured": [asdict(one) for one in each.unmeasured],
    }


def _cause(source: Source, each: Fleet, cause: Cause) -> dict[str, Any]:
    return {
        "kind": cause.kind,
        "name": cause.name,
        "sentence": cause_sentence(source.result, each, cause),
        "shifts": [{"of": shift.kind, **_named(shift, "name")} for shift in cause.shifts],
        "known_by": list(cause.how),
        "candidates": list(cause.candidates),
        "facts": [
            {"host": host, "fact": odd.fact, "value": odd.value, "usual": odd.usual}
            for host, found in {cause.name: cause.facts, **cause.others}.items()
            for odd in found
        ],
    }


def _named(shift: Shift, key: str) -> dict[str, Any]:
    return {key: shift.name, **(_shift(shift) or {})}


def _shift(shift: Shift | None) -> dict[str, Any] | None:
    """A shift without its name; of a host that its pairs do not tell apart, that of its only
    pair.
    """
    if shift is None:
        return None
    names = ("pairs", "ratio", "low", "high", "shrunk", "p", "level", "outlying")
    return {"of": shift.kind} | {name: _finite(getattr(shift, name)) for name in names}


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
