"""Shares of variance: how much of what a metric varies by is the doing of a factor, of two
together, or of chance from run to run.

A table has a logarithm for each unit (block, boot) and crossed cell. Its mean over units splits
into orthogonal parts: a component for each set of factors, whose mean square over the cells is that
set's variance (Searle, Casella and McCulloch, Variance Components, 1992, section 4.2). Noise adds
to each mean square what its own spread over units says, which is taken off, whatever the units have
in common: this is omega squared of a design in complete blocks (Hays 1963). A share is that
variance over the sum of all, runs included, so that all shares add to 1.

Its interval joins two: the jackknife by unit on the arcsine of the root, right where a share is
large, and what the component's own error leaves open (a t interval of its length), right where it
is small. Simulated with 2x2 and 3x2 levels, 4 to 20 units and shares of 0 to 90%, a 95% interval
holds the share in 94 to 99% of campaigns; tests/unit/analysis/test_shares.py does it again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import fdtri, stdtrit

from netbench.analysis.dependence import INDEPENDENT, Dependence
from netbench.analysis.intervals import NAN, Numbers

Term = tuple[int, ...]
"""Which factors, by their places."""


@dataclass(frozen=True)
class Share:
    """A share of variance, a fraction, with its interval; NaN: not known."""

    value: float = NAN
    low: float = NAN
    high: float = NAN


@dataclass(frozen=True)
class Shares:
    """The share of each factor and each two together; what three and more do together, and what
    runs differ by, have no interval.
    """

    terms: dict[Term, Share]
    higher: float
    runs: float


def component(table: Numbers, term: Term) -> Numbers:
    """The part of a table (its first axis are units) that a set of factors makes alone, in the
    shape that it varies in.
    """
    part = table
    for at in range(table.ndim - 1):
        mean = part.mean(axis=at + 1, keepdims=True)
        part = part - mean if at in term else mean
    return part


def terms_of(factors: int) -> Iterator[Term]:
    """Each factor, then each two."""
    for size in (1, 2):
        yield from itertools.combinations(range(factors), size)


def shares(table: Numbers, confidence: float, dependence: Dependence = INDEPENDENT) -> Shares:
    """The shares of a table of logarithms: units, then the levels of each factor. Two units or
    more; intervals need three. Without any variance nothing is known (NaN).
    """
    n, terms = len(table), list(terms_of(table.ndim - 1))
    cells = _Squares.of(table)
    among = _Squares.of(table - table.mean(axis=tuple(range(1, table.ndim)), keepdims=True))
    parts = [_Squares.of(component(table, term)) for term in terms]
    whole = cells.spread() + among.variance()
    if not whole > 0:
        return Shares(dict.fromkeys(terms, Share()), NAN, NAN)
    without = cells.spreads_without() + among.variances_without()
    inflation, freedom = dependence.inflation(n), dependence.freedom(n)
    t = float(stdtrit(freedom, (1 + confidence) / 2)) * inflation
    found = {}
    for term, part in zip(terms, parts, strict=True):
        value = _fraction(part.variance() / whole)
        left_out = part.variances_without() / without if n > 2 else np.full(n, NAN)
        reach = _reach(part, table, term, confidence) * inflation
        rest = max(float(whole - part.variance()), 0.0)
        near, far = (max(part.length + sign * reach, 0.0) ** 2 for sign in (-1, 1))
        low, high = _jackknife(value, left_out, t)
        bounds = [near / (near + rest) if near else 0.0, far / (far + rest) if far else 0.0]
        found[term] = Share(value, float(min(low, bounds[0])), float(max(high, bounds[1])))
    runs = _fraction(cells.spread() / whole)
    higher = (among.variance() - sum(part.variance() for part in parts)) / whole
    return Shares(found, _fraction(higher), runs)


@dataclass(frozen=True)
class _Squares:
    """Sums of squares of a component: of its mean over units (`mean`, a mean square over the
    cells), of each unit's (`each`), and of its mean without each unit (`others`).
    """

    mean: float
    each: Numbers
    others: Numbers

    @classmethod
    def of(cls, part: Numbers) -> _Squares:
        flat = part.reshape(len(part), -1)
        n, means = len(flat), flat.mean(axis=0)
        without = (n * means - flat) / max(n - 1, 1)
        return cls(
            float(np.square(means).mean()),
            np.square(flat).mean(axis=1),
            np.square(without).mean(axis=1),
        )

    @property
    def length(self) -> float:
        return math.sqrt(self.mean)

    def spread(self) -> float:
        """The variance over units, a mean over the cells."""
        n = len(self.each)
        return max(float(self.each.sum()) - n * self.mean, 0.0) / (n - 1)

    def variance(self) -> float:
        """The component's variance, free of what its spread over units adds; may be below 0."""
        return self.mean - self.spread() / len(self.each)

    def spreads_without(self) -> Numbers:
        """As spread, without each unit in turn; NaN for two units."""
        n = len(self.each) - 1
        if n < 2:
            return np.full(n + 1, NAN)
        spreads: Numbers = np.maximum(self.each.sum() - self.each - n * self.others, 0.0) / (n - 1)
        return spreads

    def variances_without(self) -> Numbers:
        """As variance, without each unit in turn."""
        return self.others - self.spreads_without() / (len(self.each) - 1)


def _reach(part: _Squares, table: Numbers, term: Term, confidence: float) -> float:
    """How far the true component may lie from the mean one, as a length: exact for two levels
    (Student's t), for more as of equal errors in all directions (F).
    """
    n, directions = len(table), math.prod(table.shape[at + 1] - 1 for at in term)
    quantile = float(fdtri(directions, directions * (n - 1), confidence))
    return math.sqrt(quantile * part.spread() / n)


def _jackknife(value: float, left_out: Numbers, t: float) -> tuple[float, float]:
    """The interval of a share from what it is without each unit; NaN where that is not known."""
    n = len(left_out)
    angles = np.arcsin(np.sqrt(np.clip(left_out, 0.0, 1.0)))
    error = math.sqrt((n - 1) / n * float(np.square(angles - angles.mean()).sum()))
    centre = math.asin(math.sqrt(value))
    ends = (min(max(centre + sign * t * error, 0.0), math.pi / 2) for sign in (-1, 1))
    low, high = (math.sin(end) ** 2 for end in ends)
    return (low, high) if not math.isnan(error) else (NAN, NAN)


def _fraction(share: float) -> float:
    return min(max(float(share), 0.0), 1.0)
