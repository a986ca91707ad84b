"""Builds as a level above boots: how far builds of one kernel lie apart, beside boots of one build
and runs within a boot, and what more of each would buy.

A kernel of the same source is another one to caches and branch predictors once its code lies
elsewhere, so a difference of two kernels that were built once holds the luck of two layouts. With k
builds of b boots of r runs the mean's variance is (builds + (boots + runs / r) / b) / k.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from netbench.stats.boots import half_width
from netbench.stats.intervals import NAN, Numbers
from netbench.stats.pairs import Builds, Places

LINK_SECONDS = 12.0  # of another layout of a kernel that is compiled: a guess for a small one


@dataclass(frozen=True)
class NestedSplit:
    """Where the variance of a cell's runs comes from: standard deviations `between` builds, of
    `boots` within a build (NaN where each build has one boot, and `between` holds both), and
    `within` a boot, in the values' unit. Of `builds` builds with `each` boots of `runs` runs, means
    where they differ.
    """

    builds: int
    each: float
    runs: float
    mean: float
    between: float
    boots: float
    within: float

    def half_width(self, builds: int, boots: float, runs: float, confidence: float) -> float:
        """Half-width of the mean's interval with so many builds of so many boots of so many runs,
        were all deviations as estimated.
        """
        own = 0.0 if math.isnan(self.boots) else self.boots**2
        variance = self.between**2 + (own + self.within**2 / runs) / boots
        return half_width(builds, confidence) * math.sqrt(variance)


def nested(values: Numbers, boots: Places, builds: Builds) -> NestedSplit | None:
    """Split the variance of one cell's runs; None where a boot has no build, with fewer than 2
    builds, or no boot with 2 runs.

    Two-fold nested random effects by analysis of variance, with the coefficients of unequal numbers
    (Searle, Casella and McCulloch, Variance Components, 1992, section 5.6; Sahai and Ojeda,
    Analysis of Variance for Random Models II, 2005, chapter 15); no variance is below 0.
    """
    known, at, counts = np.unique(boots, return_inverse=True, return_counts=True)
    numbers = [builds.get(boot, 0) for boot in known.tolist()]
    groups, of = np.unique(numbers, return_inverse=True)
    a, b, total = len(groups), len(known), len(values)
    if 0 in numbers or a < 2 or total == b:
        return None
    means = np.bincount(at, values) / counts
    sizes = np.bincount(of, counts)
    centres = np.bincount(of, counts * means) / sizes
    middle = float(values.mean())
    within = float(((values - means[at]) ** 2).sum()) / (total - b)
    among = float((sizes * (centres - middle) ** 2).sum()) / (a - 1)
    squares = counts**2
    shares = float((np.bincount(of, squares) / sizes).sum())
    boots_in_build = (shares - float(squares.sum()) / total) / (a - 1)
    runs_in_build = (total - float((sizes**2).sum()) / total) / (a - 1)
    own = NAN
    if b > a:
        inner = float((counts * (means - centres[of]) ** 2).sum()) / (b - a)
        own = max(0.0, (inner - within) / ((total - shares) / (b - a)))
        among -= boots_in_build * own
    between = max(0.0, (among - within) / runs_in_build)
    mean = float((np.bincount(of, means) / np.bincount(of)).mean())
    return NestedSplit(
        a, b / a, total / b, mean, math.sqrt(between), math.sqrt(own), math.sqrt(within)
    )


def pooled_nested(splits: Sequence[NestedSplit]) -> NestedSplit | None:
    """The mean split of several cells, relative to their means: `mean` is 1, deviations are
    fractions. None without any. Variances are averaged, not deviations.
    """
    known = [s for s in splits if s.mean]
    if not known:
        return None

    def deviation(name: str) -> float:
        return math.sqrt(float(np.mean([(getattr(s, name) / s.mean) ** 2 for s in known])))

    each, runs = (float(np.mean([getattr(s, name) for s in known])) for name in ("each", "runs"))
    builds = round(float(np.mean([s.builds for s in known])))
    parts = (deviation(name) for name in ("between", "boots", "within"))
    return NestedSplit(builds, each, runs, 1.0, *parts)


def several(builds: Mapping[str, int]) -> int:
    """How many builds the kernels of a campaign have that have several; 1 where none has. builds:
    by kernel.
    """
    return max(builds.values(), default=1)
