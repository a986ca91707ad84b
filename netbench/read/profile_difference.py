"""Two profiles: which functions grew, and the ratio of their totals, with intervals from how far
the profile runs of each lie apart (Welch 1947, doi:10.1093/biomet/34.1-2.28).

Samples are counted, and few counts may be equal by chance: a function's interval is at least as
wide as counting alone makes it (Poisson: the variance of a count is its mean).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri, stdtrit

from netbench.read.profiles import CellProfile, common_names
from netbench.stats.intervals import NAN, Interval, welch_error


@dataclass(frozen=True)
class FunctionChange:
    """A function's mean cost before and after, and the change with its interval, per GiB."""

    name: str
    before: float
    after: float
    change: Interval


@dataclass(frozen=True)
class ProfileDifference:
    """`ratio`: the totals, after over before, with its interval; NaN where it is not known."""

    before: CellProfile
    after: CellProfile
    ratio: float
    low: float
    high: float
    functions: Sequence[FunctionChange]
    """By how much they changed, the largest change first."""


def difference(
    before: CellProfile, after: CellProfile, confidence: float = 0.95
) -> ProfileDifference:
    """What changed from one profile to the other. Both count the same unit."""
    ratio = welch(_logs(before), _logs(after), confidence)
    names = common_names([before, after])
    costs = [{names[n]: c for n, c in one.functions.items()} for one in (before, after)]
    none = {0: [0.0] * len(before.runs), 1: [0.0] * len(after.runs)}
    normal = float(ndtri((1 + confidence) / 2))
    changes = []
    for name in dict.fromkeys(names.values()):
        a, b = (one.get(name, none[side]) for side, one in enumerate(costs))
        least = normal * math.sqrt(_counting_variance(before, a) + _counting_variance(after, b))
        changes.append(
            FunctionChange(
                name,
                float(np.mean(a)),
                float(np.mean(b)),
                _at_least(welch(a, b, confidence), least),
            )
        )
    changes.sort(key=lambda one: (-abs(one.change.mean), one.name))
    return ProfileDifference(
        before, after, math.exp(ratio.mean), math.exp(ratio.low), math.exp(ratio.high), changes
    )


def geometric_mean(totals: Sequence[float]) -> float:
    """Of those above 0, as the ratio has them; NaN where there is none."""
    return math.exp(float(np.mean(np.log([t for t in totals if t > 0])))) if any(totals) else NAN


def _logs(profile: CellProfile) -> list[float]:
    return [math.log(total) for total in profile.totals if total > 0]


def _counting_variance(profile: CellProfile, costs: Sequence[float]) -> float:
    """Of the mean of a function's costs, which are counts times the scales of their runs."""
    parts = (cost * run.scale for cost, run in zip(costs, profile.runs, strict=True))
    return sum(parts) / len(profile.runs) ** 2


def _at_least(change: Interval, half: float) -> Interval:
    if not change.known or change.half_width >= half:
        return change
    return replace(change, low=change.mean - half, high=change.mean + half, half_width=half)


def welch(before: Sequence[float], after: Sequence[float], confidence: float) -> Interval:
    """The difference of two means with its interval; NaN bounds where either has one value, all
    NaN where either has none.
    """
    a, b = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    if not len(a) or not len(b):
        return Interval(0)
    mean = float(b.mean() - a.mean())
    if min(len(a), len(b)) < 2:
        return Interval(min(len(a), len(b)), mean)
    error, freedom = welch_error(a, b)
    if error == 0:
        return Interval(min(len(a), len(b)), mean, mean, mean, 0.0, 0.0)
    half = float(stdtrit(freedom, (1 + confidence) / 2)) * error
    return Interval(min(len(a), len(b)), mean, mean - half, mean + half, NAN, half)
