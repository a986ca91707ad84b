"""Which senders, receivers, pairs and links of a fleet are outlying: shifted further against the
fleet's median than such things lie apart by themselves.

The most outlying candidate gets an effect of its own, then the next of what is left, so that what
a slow sender does to its pairs is said once. Variances are estimated without what was found, and
the search repeated with them until it finds the same: an outlier is held against the spread of the
others. The first variances are robust ones, so several outliers do not hide each other. Levels are
those of Holm's rule over all candidates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import stdtr, stdtrit

from netbench.analysis.fleet_model import (
    Flags,
    Observed,
    Shifts,
    Spread,
    robust_spread,
    told_apart,
    variances,
)
from netbench.analysis.intervals import Numbers, ratio_confidence
from netbench.model import Repeat

SENDER, RECEIVER, PAIR, LINK = "sender", "receiver", "pair", "link"
MOST_PASSES = 12
LEAST = 1e-300
MOST_CORRECTED = 4.0
"""By how much what inflates the variance that it is held against is corrected for that at most."""
MOST_SHARE = 0.25  # of the candidates: more outliers are a fleet of two kinds


@dataclass(frozen=True)
class Shift:
    """How far a host as sender or receiver, a pair or a link lies from the fleet's median, as
    ratios: `low` to `high` hold it at the confidence `level`. `shrunk`: the ratio drawn towards
    the median by what is known of it (best linear unbiased prediction); NaN for what is outlying,
    since it is not one of the others. `pairs`: how many it is over. `p`: of such a shift, or a
    larger one, among things that lie apart as the others do; NaN where it is not judged.
    """

    kind: str
    name: str
    pairs: int
    ratio: float
    low: float = math.nan
    high: float = math.nan
    shrunk: float = math.nan
    p: float = math.nan
    level: float = math.nan
    outlying: bool = False


@dataclass(frozen=True)
class Analysis:
    """Shifts of everything, spreads (variances of logarithms) of hosts and pairs without outliers,
    and in which directions hosts can be told from their pairs. `outliers`: pairs x what is
    outlying, 1 where a pair is of it.
    """

    shifts: tuple[Shift, ...]
    spread: Spread
    senders_apart: bool
    receivers_apart: bool
    settled: bool
    outliers: Numbers


@dataclass(frozen=True)
class _Candidates:
    kinds: Sequence[str]
    names: Sequence[str]
    columns: sparse.csc_matrix
    judged: Flags


def analysed(
    o: Observed, crossing: Mapping[str, Sequence[bool]], repeat: Repeat, families: int = 1
) -> Analysis:
    """The shifts of a cell's pairs. crossing: by link, which pairs cross it. families: cells that
    are looked at together.
    """
    known = told_apart(o)
    candidates = _candidates(o, crossing, known)
    family = max(int(candidates.judged.sum()), 1) * families  # of one run a pair none is judged
    spread, kept = robust_spread(o), np.zeros(len(o.pairs), bool)
    seen: list[frozenset[int]] = []
    for _ in range(MOST_PASSES):
        search = _Search(o, spread, candidates, kept, family, repeat)
        found = frozenset(search.found)
        if found in seen:
            break
        seen.append(found)
        kept = _untouched(o, candidates, search.found)
        spread = variances(o, kept, spread)
    outliers = candidates.columns[:, search.found].toarray()
    return Analysis(search.shifts(), search.spread, *known, found == seen[-1], outliers)


def _candidates(
    o: Observed, crossing: Mapping[str, Sequence[bool]], known: tuple[bool, bool]
) -> _Candidates:
    """Hosts by direction, pairs, links. A host is judged where it has several pairs, or its
    direction can be told apart; a pair with two runs or more.
    """
    kinds, names, judged, parts = [], [], [], []
    for kind, sending, apart in ((SENDER, True, known[0]), (RECEIVER, False, known[1])):
        ends = o.ends(sending)
        there = np.unique(ends)
        place = np.searchsorted(there, ends)
        rows = np.arange(len(ends))
        parts.append(
            sparse.csc_matrix((np.ones(len(ends)), (rows, place)), shape=(len(ends), len(there)))
        )
        kinds += [kind] * len(there)
        names += [o.hosts[i] for i in there.tolist()]
        several = o.degree(sending)[there] > 1
        judged += (several & apart).tolist()
    parts.append(sparse.identity(len(o.pairs), format="csc"))
    kinds += [PAIR] * len(o.pairs)
    names += o.pairs
    judged += (o.n > 1).tolist()
    alike: dict[tuple[bool, ...], list[str]] = {}
    for link, crosses in crossing.items():
        if any(crosses) and not all(crosses):
            alike.setdefault(tuple(crosses), []).append(link)
    for crosses, links in alike.items():  # links that the same pairs cross are one candidate
        parts.append(sparse.csc_matrix(np.array(crosses, dtype=float)[:, None]))
        kinds.append(LINK)
        names.append(" or ".join(links))
        judged.append(True)
    return _Candidates(kinds, names, sparse.hstack(parts).tocsc(), np.array(judged))


def _untouched(o: Observed, candidates: _Candidates, found: Sequence[int]) -> Flags:
    """The pairs that no outlier has a part in; all where too few are left."""
    touched = np.zeros(len(o.pairs), bool)
    for column in found:
        touched |= candidates.columns[:, [column]].toarray().ravel() > 0
    return ~touched if (~touched).sum() > len(o.pairs) / 2 else np.ones(len(o.pairs), bool)


class _Search:
    """One pass: outliers found with given variances."""

    def __init__(
        self,
        o: Observed,
        spread: Spread,
        candidates: _Candidates,
        kept: Flags,
        family: float,
        repeat: Repeat,
    ) -> None:
        """kept: the pairs that the variances are of."""
        self.o, self.spread, self.candidates = o, spread, candidates
        self.family, self.repeat = family, repeat
        self.model = Shifts(o, spread, candidates.columns)
        self.own = self._own()
        self.pairs = np.array([kind == PAIR for kind in candidates.kinds])
        self.freedom = self._freedom()
        self.inside = np.asarray(candidates.columns.T @ (~kept).astype(float)).ravel() == 0
        self.found: list[int] = []
        self.p_of: dict[int, float] = {}
        most = max(1, int(MOST_SHARE * len(o.pairs)))
        self.last = ratio_confidence(repeat, family)
        self.levels: dict[int, float] = {}
        passed_over: set[int] = set()
        while len(self.found) < most:
            t, freedom = self.statistics()
            free = candidates.judged & self.model.known
            free[[*self.found, *passed_over]] = False
            if not free.any():
                break
            p = 2 * stdtr(freedom, -np.abs(t))
            self.last = ratio_confidence(repeat, max(family - len(self.found), 1))
            shown = free & (p < 1 - self.last)
            if not shown.any():
                break
            far = self.model.score**2 / np.where(shown, self.model.information, np.inf)
            best = int(np.argmax(np.where(shown, far, -1)))
            if not (self._measured(best) and self._in_most(best)):
                passed_over.add(best)
                continue
            self.p_of[best], self.levels[best] = float(p[best]), self.last
            self.found.append(best)
            passed_over.clear()
            self.model.fix(best)

    def _own(self) -> Numbers:
        """How far each candidate lies apart by itself: a variance, 0 for links."""
        of_kind = {
            SENDER: self.spread.sender,
            RECEIVER: self.spread.receiver,
            PAIR: self.spread.pair if self.o.freedom.any() else 0.0,
            LINK: 0.0,
        }
        return np.array([of_kind[kind] for kind in self.candidates.kinds])

    def statistics(self) -> tuple[Numbers, Numbers]:
        """Each candidate's shift in standard deviations of such shifts, and degrees of freedom;
        those that the variances hold are corrected for it (external studentization).
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            r = self.model.score / np.sqrt(self.model.information)
            room = np.maximum(self.freedom - r**2, LEAST)
            external = r * np.clip(np.sqrt((self.freedom - 1) / room), 1.0, MOST_CORRECTED)
        t = np.where(self.inside, external, r)
        return np.nan_to_num(t), np.maximum(self.freedom - self.inside, 1.0)

    def _freedom(self) -> Numbers:
        """Degrees of freedom of how far each candidate lies apart, that of pairs by Satterthwaite:
        what they lie apart by is what is left of all beside the mean noise of their runs, so it is
        known as well as that sum; more noise of a pair's own as its runs say.
        """
        freedom = self._counts()
        noise, own = float(np.mean(self.o.error)), self.own[self.pairs]
        known = (own + noise) ** 2 / freedom[self.pairs]
        more = np.maximum(self.o.error - noise, 0.0)
        known += more**2 / self._freedom_of_rest()[self.pairs]
        total = own + self.o.error
        freedom[self.pairs] = np.maximum(total**2 / np.maximum(known, LEAST), 1.0)
        return freedom

    def _counts(self) -> Numbers:
        """Degrees of freedom of what lies apart, by candidate."""
        tally = {kind: self.candidates.kinds.count(kind) for kind in (SENDER, RECEIVER)}
        return np.array(
            [
                max(tally[kind] - 1.0, 1.0) if kind in tally else self.spread.freedom
                for kind in self.candidates.kinds
            ]
        )

    def _freedom_of_rest(self) -> Numbers:
        """Of what a shift is measured with: the runs' noise for a pair, the pairs' residue for what
        is over several.
        """
        free = np.full(len(self.candidates.kinds), float(self.spread.freedom))
        if self.o.freedom.any():
            free[self.pairs] = self.o.freedom
        return free

    def _measured(self, column: int) -> bool:
        """Whether the interval of the measurement excludes no shift, too."""
        shift = self.model.score[column] / self.model.information[column]
        half = self._half(1 / self.model.information[[column]], np.array([column]), self.last)
        return bool(abs(shift) > half[0])

    def _in_most(self, column: int) -> bool:
        """Whether more than half of its pairs show at least half of a shift: one odd pair makes no
        slow host.
        """
        pairs, shift, rest = self.model.seen_in(column)
        return bool((rest / shift > -0.5).sum() > len(pairs) / 2)

    def _half(self, total: Numbers, columns: Sequence[int] | Numbers, level: float) -> Numbers:
        """Half-widths of intervals (of logarithms) of what was measured."""
        at = np.asarray(columns, dtype=int)
        variance = np.maximum(total - self.own[at], 0.0)
        return np.asarray(stdtrit(self._freedom_of_rest()[at], (1 + level) / 2) * np.sqrt(variance))

    def shifts(self) -> tuple[Shift, ...]:
        """All candidates with their intervals, those that were found fitted together."""
        with np.errstate(invalid="ignore", divide="ignore"):
            known = self.model.known
            total = np.where(known, 1 / self.model.information, np.nan)
            shift = np.where(known, self.model.score * total, np.nan)
        if self.found:
            shift[self.found], total[self.found] = self.model.together(self.found)
        t, freedom = self.statistics()
        p = 2 * stdtr(freedom, -np.abs(t))
        kinds = np.array(self.candidates.kinds)
        # pairs of one centre of a star, which has an effect of its own, are against each other
        others = np.ones(len(kinds), bool)
        others[self.found] = False
        centre = np.full(len(kinds), -1)
        centre[self.pairs] = np.unique(self.o.fixed, axis=0, return_inverse=True)[1].ravel()
        for kind, among in sorted(set(zip(kinds.tolist(), centre.tolist(), strict=True))):
            mine = (kinds == kind) & (centre == among)
            there = mine & ~np.isnan(shift)
            if kind != LINK and there.any():
                count = (there & others).sum()  # each of which is against the mean of all but it
                shift[mine & others] *= max(count - 1, 1) / max(count, 1)
                shift[mine] -= np.median(shift[there])
        levels = np.array([self.levels.get(i, self.last) for i in range(len(kinds))])
        half = np.array([self._half(total[[i]], [i], levels[i])[0] for i in range(len(kinds))])
        shrunk = shift * np.where(total > 0, self.own / total, 1.0)
        shrunk[self.found] = np.nan
        sums = np.asarray(self.candidates.columns.sum(axis=0)).ravel()
        columns = zip(
            self.candidates.kinds,
            self.candidates.names,
            sums.tolist(),
            shift.tolist(),
            half.tolist(),
            shrunk.tolist(),
            strict=True,
        )
        return tuple(
            Shift(
                kind,
                name,
                int(pairs),
                math.exp(x),
                math.exp(x - h),
                math.exp(x + h),
                math.exp(s),
                self.p_of.get(i, float(p[i])) if self.candidates.judged[i] else math.nan,
                float(levels[i]),
                i in self.p_of,
            )
            for i, (kind, name, pairs, x, h, s) in enumerate(columns)
        )
