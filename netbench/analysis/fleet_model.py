"""A linear mixed model of a fleet: the logarithm of what a pair moves is the fleet's mean, an
effect of its sender, one of its receiver, a residue of the pair, and the noise of its runs.

Effects of senders, receivers and pairs are random. Their variances come from restricted maximum
likelihood, as iterated MINQUE (Searle, Casella, McCulloch, Variance Components, 1992, chapter 11),
beginning with robust scales, so that an outlier does not hide in the variance that it makes. A
host's effect is a contrast between its pairs and those of others. Where few hosts have two pairs as
senders (a ring) that variance is not known apart from the pairs': then it is part of it.

Everything else follows from P, the matrix that takes the fixed effects out and weighs by what is
left (Searle, section 6.6): for a column x of pairs (those of a sender, a single pair, those that
cross a link), x'Py / x'Px is its shift against what all others predict of it, and 1 / x'Px the
variance of that, with how far such things lie apart by themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.linalg import lsqr

from netbench.analysis.intervals import Numbers

Places = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
FEWEST = 3
"""Hosts that must have two pairs in a direction, so that the direction has a variance."""
CONSISTENT = 1.4826  # of the median deviation with the standard deviation of normal values
EFFICIENCY = 0.37  # of a median deviation as an estimate of a standard deviation, likewise
TINY = 1e-9  # relative: two values that agree to this are the same
CHUNK = 4096
STEPS = 6  # of the estimation of variances
CLOSE = 0.01  # relative: variances that do not change more have converged
KNOWN = 1e-7  # of a column's weight that must be left for it to be known apart


@dataclass(frozen=True)
class Observed:
    """The pairs of one cell: `sender` and `receiver` are places in `hosts`; `mean` is that of the
    logarithms of its `n` runs, `error` that mean's variance, with `freedom` (0: not known).
    """

    hosts: tuple[str, ...]
    pairs: tuple[str, ...]
    sender: Places
    receiver: Places
    mean: Numbers
    n: Places
    error: Numbers
    freedom: Numbers

    def ends(self, sending: bool) -> Places:
        """The sender of each pair, or its receiver."""
        return self.sender if sending else self.receiver

    def degree(self, sending: bool, kept: Flags | None = None) -> Places:
        """Of how many pairs each host is that end."""
        ends = self.ends(sending)
        return np.bincount(ends if kept is None else ends[kept], minlength=len(self.hosts))

    @cached_property
    def hubs(self) -> list[Numbers]:
        """Columns of the few hosts that alone have several pairs in a direction: the centre of a
        star. Their effect is fixed.
        """
        columns: list[Numbers] = []
        for sending in (True, False):
            several = np.flatnonzero(self.degree(sending) > 1)
            if len(several) < FEWEST:
                columns += [(self.ends(sending) == host).astype(float) for host in several]
        return columns

    @cached_property
    def fixed(self) -> Numbers:
        """The columns of fixed effects that can be told apart, the mean first."""
        kept = [np.ones(len(self.pairs))]
        for column in self.hubs:
            if np.linalg.matrix_rank(np.column_stack([*kept, column])) > len(kept):
                kept.append(column)
        return np.column_stack(kept)


@dataclass(frozen=True)
class Spread:
    """Variances of the logarithms of what senders, receivers and pairs do; `freedom` of the pairs'.
    0 for a direction that cannot be told from the pairs.
    """

    sender: float
    receiver: float
    pair: float
    freedom: float

    def of(self, sending: bool) -> float:
        return self.sender if sending else self.receiver


def told_apart(o: Observed, kept: Flags | None = None) -> tuple[bool, bool]:
    """Whether effects of senders, and of receivers, can be told from those of pairs."""
    senders, receivers = (int((o.degree(s, kept) > 1).sum()) >= FEWEST for s in (True, False))
    return senders, receivers


def robust_spread(o: Observed) -> Spread:
    """Variances from median deviations: of all pairs, and of what pairs with one sender, or one
    receiver, differ by.
    """
    y = _without(o.fixed, o.mean, np.ones(len(o.pairs), bool))
    total = _scale(y - np.median(y)) ** 2
    within = [
        min(_scale(differences(o.ends(sending), y)) ** 2 / 2, total) if there else total
        for sending, there in zip((True, False), told_apart(o), strict=True)
    ]
    sender, receiver = (total - each for each in within)
    rest = max(total - sender - receiver, _residue(o, y) ** 2)
    freedom = max(EFFICIENCY * _freedom(o, len(y)), 1.0)
    return Spread(sender, receiver, max(rest - float(np.median(o.error)), 0.0), freedom)


def _residue(o: Observed, y: Numbers) -> float:
    """The robust standard deviation of what is left of pairs beside the means of their ends."""
    ends = [o.ends(s) for s, there in zip((True, False), told_apart(o), strict=True) if there]
    if not ends:
        return 0.0
    design = sparse.hstack([_indicator(each, len(o.hosts)) for each in ends]).tocsr()
    rest = y - design @ lsqr(design, y)[0]
    return _scale(rest) * math.sqrt(len(y) / _freedom(o, len(y)))


def differences(ends: Places, y: Numbers) -> Numbers:
    """What the pairs of each host differ by: every other one from the one before, around."""
    order = np.argsort(ends, kind="stable")
    first = np.searchsorted(ends[order], ends[order])
    last = np.searchsorted(ends[order], ends[order], side="right") - 1
    at = np.arange(len(y))
    following = np.where(at == last, first, at + 1)
    several = last > first
    return np.asarray(y[order][several] - y[order[following]][several])


def _scale(y: Numbers) -> float:
    """The standard deviation of most of the values, which lie around 0."""
    return CONSISTENT * float(np.median(np.abs(y)))


def _without(columns: Numbers, y: Numbers, kept: Flags) -> Numbers:
    """What is left of y after a fit of columns to the pairs that are kept."""
    fit, *_ = np.linalg.lstsq(columns[kept], y[kept], rcond=None)
    return np.asarray(y - columns @ fit)


def _freedom(o: Observed, pairs: int) -> float:
    """Degrees of freedom of what pairs lie apart by, at least: the pairs without one for each
    effect of a host that is known apart, of which random effects leave a part.
    """
    used = sum(
        int((o.degree(s) > 0).sum()) - 1
        for s, k in zip((True, False), told_apart(o), strict=True)
        if k
    )
    columns = o.fixed.shape[1]
    return float(max(pairs - columns - used, (pairs - columns) / 4, 1))


def variances(o: Observed, kept: Flags, begin: Spread) -> Spread:
    """Variances over the pairs that are kept, by restricted maximum likelihood: iterated MINQUE,
    from the ones given. `freedom` is how well the pairs' is known beside the noise of runs.
    """
    known = [s for s, there in zip((True, False), told_apart(o, kept), strict=True) if there]
    found = begin
    for _ in range(STEPS):
        before = np.array([found.sender, found.receiver, found.pair])
        found = _step(o, kept, known, found)
        now = np.array([found.sender, found.receiver, found.pair])
        if (np.abs(now - before) <= CLOSE * (now.sum() + TINY**2)).all():
            break
    return found


def _step(o: Observed, kept: Flags, known: Sequence[bool], spread: Spread) -> Spread:
    """One step of variances: MINQUE with weights by the variances given."""
    p = _Projection(o, kept, spread)
    error = o.error[kept]
    indicators = [_indicator(o.ends(s)[kept], len(o.hosts)) for s in known]
    parts = [p.of(part.toarray()) for part in indicators]
    y = p.of(o.mean[kept])
    squares, own = p.squares(), [(part**2).sum(axis=1) for part in parts]
    size = len(known) + 1
    forms = np.array([((part.T @ y) ** 2).sum() for part in indicators] + [y @ y])
    forms -= [error @ each for each in (*own, squares)]
    traces = np.empty((size, size))
    for i, one in enumerate(indicators):
        traces[i, :-1] = [((one.T @ other) ** 2).sum() for other in parts]
        traces[i, -1] = traces[-1, i] = own[i].sum()
    traces[-1, -1] = squares.sum()
    left = list(range(size))
    while True:
        inverse = np.linalg.pinv(traces[np.ix_(left, left)])
        solved = inverse @ forms[left]
        below = [i for i, value in zip(left, solved, strict=True) if i < size - 1 and value < 0]
        if not below:
            break
        left.remove(below[0])
    found = np.zeros(size)
    found[left] = np.maximum(solved, 0.0)
    of, pair = dict(zip(known, found[:-1].tolist(), strict=True)), float(found[-1])
    most = float(max(len(error) - o.fixed.shape[1], 1))
    freedom = (pair + float(np.mean(error))) ** 2 / max(float(inverse[-1, -1]), TINY**4)
    return Spread(of.get(True, 0.0), of.get(False, 0.0), pair, min(max(freedom, 1.0), most))


class _Projection:
    """P over the pairs that are kept."""

    def __init__(self, o: Observed, kept: Flags, spread: Spread) -> None:
        self.weight, self.design, prior = _weighed(o, spread, kept)
        self.weighted = sparse.csr_matrix(self.design.T @ sparse.diags(self.weight))
        self.inverse = np.linalg.inv((self.weighted @ self.design).toarray() + np.diag(prior))

    def of(self, x: Numbers) -> Numbers:
        """P x, of a column or of several."""
        rest = x - self.design @ (self.inverse @ (self.weighted @ x))
        return np.asarray((rest.T * self.weight).T)

    def squares(self) -> Numbers:
        """The diagonal of P P."""
        inner = (self.weighted @ self.weighted.T).toarray()
        both = self.inverse @ inner @ self.inverse
        once, twice = (
            np.asarray(self.design.multiply(self.design @ matrix).sum(axis=1)).ravel()
            for matrix in (self.inverse, both)
        )
        return np.asarray(self.weight**2 * (1 - 2 * self.weight * once + twice))


def _weighed(
    o: Observed, spread: Spread, kept: Flags
) -> tuple[Numbers, sparse.csr_matrix, Numbers]:
    """Of the pairs that are kept the weights of residue and noise, the columns of fixed effects and
    of hosts, and how far each column is held to 0.
    """
    least = TINY * max(float(np.var(o.mean)), TINY)
    weight = 1 / np.maximum(spread.pair + o.error[kept], least)
    parts, prior = [sparse.csc_matrix(o.fixed[kept])], [np.zeros(o.fixed.shape[1])]
    for sending in (True, False):
        if variance := spread.of(sending):
            parts.append(_indicator(o.ends(sending)[kept], len(o.hosts)))
            prior.append(np.full(len(o.hosts), 1 / variance))
    return weight, sparse.hstack(parts).tocsr(), np.concatenate(prior)


class Shifts:
    """Columns of pairs (`candidates`, pairs x columns), and how far each is shifted against what
    all other pairs predict; columns can be fixed one after the other.
    """

    def __init__(self, o: Observed, spread: Spread, candidates: sparse.csc_matrix) -> None:
        self._projection = _Projection(o, np.ones(len(o.pairs), bool), spread)
        self._columns, self._mean = candidates, o.mean
        self._fixed: list[tuple[Numbers, float]] = []
        self._left = self._projected(o.mean)
        self.score = np.asarray(candidates.T @ self._left)
        self.information = self._diagonal()

    def _projected(self, x: Numbers) -> Numbers:
        """P x."""
        found = self._projection.of(x)
        for column, norm in self._fixed:
            found = found - column * float(column @ x) / norm
        return np.asarray(found)

    def _diagonal(self) -> Numbers:
        """x'Px of all candidates."""
        by_design = (self._projection.weighted @ self._columns).T.tocsr()
        self._plain = np.asarray(
            self._columns.T.multiply(self._columns.T) @ self._projection.weight
        )
        spent = np.empty(self._columns.shape[1])
        for at in range(0, len(spent), CHUNK):
            rows = by_design[at : at + CHUNK]
            spent[at : at + CHUNK] = np.asarray(
                rows.multiply(rows @ self._projection.inverse).sum(axis=1)
            ).ravel()
        return np.asarray(self._plain - spent)

    def fix(self, column: int) -> None:
        """Give a candidate a fixed effect of its own."""
        x, projected, norm = self._column(column)
        shared = np.asarray(self._columns.T @ projected)
        self.score = self.score - shared * (self.score[column] / norm)
        self.information = self.information - shared**2 / norm
        self._left = self._left - projected * (float(x @ self._left) / norm)
        self._fixed.append((projected, norm))

    def seen_in(self, column: int) -> tuple[Places, float, Numbers]:
        """The pairs of a candidate, its shift, and what is left of each pair beside it."""
        x, projected, norm = self._column(column)
        shift = float(x @ self._left) / norm
        pairs = np.flatnonzero(x)
        rest = (self._left - projected * shift) / self._projection.weight
        return pairs, shift, np.asarray(rest[pairs])

    def _column(self, column: int) -> tuple[Numbers, Numbers, float]:
        """A candidate x, P x and x'Px."""
        x = self._columns[:, [column]].toarray().ravel()
        projected = self._projected(x)
        return x, projected, float(x @ projected)

    @property
    def known(self) -> Flags:
        """The candidates that others do not explain wholly."""
        return np.asarray(self.information > KNOWN * self._plain)

    def together(self, columns: Sequence[int]) -> tuple[Numbers, Numbers]:
        """The shifts of columns and their variances, all fitted at once."""
        fixed, self._fixed = self._fixed, []
        x = self._columns[:, list(columns)].toarray()
        projected = np.column_stack([self._projected(each) for each in x.T])
        self._fixed = fixed
        inverse = np.linalg.pinv(x.T @ projected)
        return inverse @ (projected.T @ self._mean), np.diag(inverse)


def _indicator(ends: Places, hosts: int) -> sparse.csc_matrix:
    rows = np.arange(len(ends))
    return sparse.csc_matrix((np.ones(len(ends)), (rows, ends)), shape=(len(ends), hosts))
