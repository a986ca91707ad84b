"""A fleet for programs."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from netbench.fleet.causes import Cause
from netbench.fleet.effects import Fleet
from netbench.fleet.fit import Shared, Shift
from netbench.fleet.words import cause_sentence
from netbench.report.source import Source


def fleet(source: Source) -> dict[str, Any] | None:
    """`{analyses, facts}`: an analysis for each metric and cell; None where there are few pairs.

    In an analysis `outlying` has what is named, each with its sentence; `shifts` the hosts by kind
    (sender, receiver) and the pairs, `shared` links and groups, as ratios with intervals; `limits`,
    by kind, the ratio beyond which one is outlying. `facts`: those that differ, by host.
    """
    if not source.fleets:
        return None
    every = [each for found in source.fleets.values() for each in found]
    return {
        "analyses": [_analysis(source, each) for each in every],
        "facts": source.fleet_facts,
    }


def _analysis(source: Source, each: Fleet) -> dict[str, Any]:
    return {
        "metric": each.metric,
        "cell": each.cell,
        "confidence": each.confidence,
        "median": each.middle,
        "limits": each.fit.limits,
        "outlying": [
            {"sentence": cause_sentence(source.result, each, cause), **_plain(cause)}
            for cause in each.causes
        ],
        "shifts": [_plain(shift) for shift in each.fit.shifts],
        "shared": [_plain(shared) for shared in each.fit.shared],
        "unmeasured": each.unmeasured,
    }


def _plain(row: Cause | Shift | Shared) -> dict[str, Any]:
    """A row without NaN, which JSON has not."""

    def without(items: list[tuple[str, Any]]) -> dict[str, Any]:
        return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in items}

    return asdict(row, dict_factory=without)
