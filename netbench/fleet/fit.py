"""A fleet's two-way fit: the logarithm of what a pair moves is the median of all, an effect of its
sender, one of its receiver, and what is left of the pair. Medians fit it (Tukey, Exploratory Data
Analysis, 1977, chapter 11), so that a slow host does not move the effects of the others.

Some tens of hosts cannot tell one bad host from a heavy tail by their standard deviation. So what
is called outlying lies far below the tail that the others show, whatever its shape.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from netbench.model import NOTHING
from netbench.stats import special
from netbench.stats.intervals import NAN, Numbers

Places = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
SENDER, RECEIVER, PAIR, LINK = "sender", "receiver", "pair", "link"
FEWEST_PAIRS = 3  # of a host in a direction, so that they tell it from its partners
FEWEST_UNITS = 8  # whose tail is looked at
FEWEST_OF_BLOCK = 8  # pairs whose median is the block's own
STEPS, CLOSE = 30, 1e-6  # of alternating medians: until a step is smaller, of a logarithm
FAR, HOSTS, LEVEL = 1.65, 30, 0.05
"""Of HOSTS good hosts the lowest is FAR times the tail of the others in at most LEVEL of fleets, be
they normal, Student's t with 3 degrees of freedom or exponential: by simulation
(tools/bench/fleet_outlying.py). The heaviest, t, has that chance fall with the cube of FAR;
exponential ones of fewer hosts take the root of HOSTS by their number more."""
MOST_SHARE = 4  # one in so many units at most is outlying
NORMAL = math.sqrt(math.pi / 2)
"""Of normal values: the standard deviation by the mean deviation, and the error of a median by that
of a mean."""


@dataclass(frozen=True)
class Observed:
    """The pairs of one cell: `sender` and `receiver` are places in `hosts`; `mean` is that of the
    logarithms of its `n` runs, `error` that mean's standard error (NaN: not known).
    """

    hosts: tuple[str, ...]
    pairs: tuple[str, ...]
    sender: Places
    receiver: Places
    mean: Numbers
    n: Places
    error: Numbers

    def ends(self, kind: str) -> Places:
        """The sender of each pair, or its receiver."""
        return self.sender if kind == SENDER else self.receiver


@dataclass(frozen=True)
class Shift:
    """How far a host as sender or receiver, or a pair beside its hosts, lies from the fleet's
    median: a ratio with its interval (by its own pairs or runs). `pairs`: how many it is over.
    """

    kind: str
    name: str
    pairs: int
    ratio: float
    low: float
    high: float
    outlying: bool = False


@dataclass(frozen=True)
class Shared:
    """What pairs that cross a link (`kind` LINK), or a group's hosts as senders or receivers, move
    against the rest of the fleet: a ratio with its interval, which holds for all of them at once
    (Bonferroni; NaN: `hosts` are too few). `worse`: it lies on the worse side.
    """

    kind: str
    name: str
    hosts: int
    ratio: float
    low: float
    high: float
    worse: bool


@dataclass(frozen=True)
class Fit:
    """`shifts` of all kinds; by kind `limits`, the ratio beyond which one would be outlying."""

    shifts: tuple[Shift, ...]
    limits: Mapping[str, float]
    shared: tuple[Shared, ...]

    @property
    def outlying(self) -> list[Shift]:
        return [shift for shift in self.shifts if shift.outlying]


def observed(
    runs: pd.DataFrame, metric: str, pairs: Sequence[str], hosts: Sequence[str] = ()
) -> Observed | None:
    """The pairs of a cell's runs (ok ones; those with a value above 0), in the order of `pairs`,
    without what the pairs of a block, then of a round in it, have in common; None without any.
    """
    used = runs[runs[metric] > 0]
    if used.empty:
        return None
    order = {pair: at for at, pair in enumerate(pairs)}
    present, at = np.unique(used["pair"].astype(str).map(order).to_numpy(), return_inverse=True)
    y, n = np.log(used[metric].to_numpy(dtype=float)), np.bincount(at)
    for by in (["block"], ["block", "round"]):
        if not set(by) <= set(used.columns):
            continue
        keys = used.groupby(by, observed=True, dropna=False).ngroup().to_numpy()
        full = np.bincount(keys)[keys] >= FEWEST_OF_BLOCK
        for _ in range(STEPS):  # pairs of few runs were in few of the blocks that means are over
            shared = np.where(full, _medians(y - (np.bincount(at, y) / n)[at], keys), 0.0)
            y = y - shared
            if np.abs(shared).max() < CLOSE:
                break
    mean = np.bincount(at, y) / n
    with np.errstate(invalid="ignore", divide="ignore"):
        own = np.sqrt(np.bincount(at, (y - mean[at]) ** 2) / (n - 1))
    usual = np.median(own[n > 1]) if (n > 1).any() else NAN
    error = np.fmax(own, usual) / np.sqrt(n)  # few runs that agree by chance are as noisy as others
    measured = tuple(pairs[i] for i in present.tolist())
    every = dict.fromkeys((*hosts, *(host for pair in pairs for host in pair.split(">"))))
    place = {host: i for i, host in enumerate(every)}
    ends = np.array([[place[host] for host in pair.split(">")] for pair in measured])
    return Observed(tuple(every), measured, ends[:, 0], ends[:, 1], mean, n, error)


def _medians(values: Numbers, keys: npt.NDArray[np.integer]) -> Numbers:
    """Of each value the median of those with its key."""
    return pd.Series(values).groupby(keys).transform("median").to_numpy()


def far_below(shifts: Numbers, level: float = LEVEL) -> tuple[Places, Numbers]:
    """In each row of shifts how many of the lowest are outlying, and the shift beyond which one
    would be. level: the share of rows of good hosts in which any is, at most.

    Shifts are against the row's median. The tail of the others is the fourth root of the sum of
    their fourth powers, or of twice that of the lower half, whichever is more.
    """
    ordered = np.sort(shifts - np.median(shifts, axis=1, keepdims=True), axis=1)
    n = ordered.shape[1]
    most = max(n // MOST_SHARE, 1)
    lower = np.minimum(ordered, 0.0)
    tails = [  # of those that are left without the lowest, the lowest two, ...
        times * np.cumsum(values[:, ::-1] ** 4, axis=1)[:, ::-1][:, 1 : most + 1]
        for times, values in ((1, ordered), (2, lower))
    ]
    far = FAR * max(1.0, math.sqrt(HOSTS / n)) * (LEVEL / level) ** (1 / 3)
    limits = -far * np.maximum(*tails) ** 0.25
    beyond = ordered[:, :most] < limits
    last = most - np.argmax(beyond[:, ::-1], axis=1)
    number = np.where(beyond.any(axis=1), last, 0)
    return number, limits[np.arange(len(limits)), np.maximum(number, 1) - 1]


@dataclass(frozen=True)
class _Units:
    """Hosts as a kind, or pairs, with their shifts (less is worse) and standard errors; by pair its
    unit (-1: none) and what it says of that one's shift.
    """

    kind: str
    names: Sequence[str]
    shift: Numbers
    error: Numbers
    judged: Flags
    of_pair: Places
    said: Numbers

    def outlying(self, level: float) -> tuple[set[int], float]:
        """Places of outlying units, and the shift beyond which one is; level: as in far_below."""
        places = np.flatnonzero(self.judged)
        if len(places) < FEWEST_UNITS:
            return set(), NAN
        order = places[np.argsort(self.shift[places])]
        (number,), (limit,) = far_below(self.shift[order][None, :], level)
        next_one = self.shift[order[number]]
        return {
            i
            for i in order[:number].tolist()
            if self.shift[i] + 2 * self.error[i] < next_one
            and np.mean(self.said[self.of_pair == i] < self.shift[i] / 2) > 0.5
        }, float(limit)


def fit(
    o: Observed,
    better: int = 1,
    confidence: float = 0.95,
    cells: int = 1,
    links: Mapping[str, Sequence[str]] = NOTHING,
    groups: Mapping[str, Sequence[str]] = NOTHING,
) -> Fit:
    """The fit of a cell. better: -1 where less of the metric is better; cells: how many are looked
    at together; links, groups: their hosts.
    """
    sign = -1.0 if better < 0 else 1.0  # within, less is worse
    rest = sign * (o.mean - np.median(o.mean))
    covered = 1 - (1 - confidence) / (cells * max(len(links) + 2 * len(groups), 1))
    shared: list[Shared] = []
    for name, hosts in links.items():
        inside = np.isin(o.hosts, list(hosts))
        crossing = inside[o.sender] != inside[o.receiver]
        apart = list(_across(o, rest, crossing, inside ^ (2 * inside.sum() > len(inside))))
        shift, half = _interval(apart, [], covered)
        shared += [_shared(LINK, name, len(apart), sign, shift, half)] if apart else []
        if shift + half < 0:  # what is said of it is not said of what is behind it once more
            rest = rest - shift * crossing
    rest, effects = _polished(o, rest - np.median(rest))
    units = [_hosts(o, kind, effect, rest) for kind, effect in effects.items()]
    units.append(_Units(PAIR, o.pairs, rest, o.error, o.n > 1, np.arange(len(rest)), rest))
    hosts_told = sum(len(each.names) for each in units[:-1]) >= FEWEST_UNITS
    level = (1 - confidence) / (cells * (len(units) if hosts_told else 1))
    z = special.ndtri((1 + confidence) / 2)
    shifts: list[Shift] = []
    limits: dict[str, float] = {}
    for each in units:
        far, limit = each.outlying(level)
        limits |= {} if math.isnan(limit) else {each.kind: math.exp(sign * limit)}
        counts = np.bincount(each.of_pair[each.of_pair >= 0], minlength=len(each.names)).tolist()
        rows = zip(
            each.names, counts, (sign * each.shift).tolist(), (z * each.error).tolist(), strict=True
        )
        for i, (name, pairs, x, half) in enumerate(rows):
            ends = math.exp(x), math.exp(x - half), math.exp(x + half)
            shifts.append(Shift(each.kind, name, pairs, *ends, i in far))
    named = {(each.kind, each.name) for each in shifts if each.outlying}
    for name, members in groups.items():
        for kind, effect in effects.items():
            value = dict(
                zip(o.ends(kind).tolist(), _medians(effect + rest, o.ends(kind)), strict=True)
            )
            unnamed = {o.hosts[i]: x for i, x in value.items() if (kind, o.hosts[i]) not in named}
            own = [x for host, x in unnamed.items() if host in members]
            others = [x for host, x in unnamed.items() if host not in members]
            if own and others:
                shared.append(_shared(kind, name, len(own), sign, *_interval(own, others, covered)))
    return Fit(tuple(shifts), limits, tuple(shared))


def _polished(o: Observed, rest: Numbers) -> tuple[Numbers, dict[str, Numbers]]:
    """What is left of pairs, and the effects of their senders and of their receivers, each 0 for a
    host with few pairs as such.
    """
    effects = {kind: np.zeros(len(rest)) for kind in (SENDER, RECEIVER)}
    for _ in range(STEPS):
        before = rest
        for kind, effect in effects.items():
            several = np.bincount(o.ends(kind))[o.ends(kind)] >= FEWEST_PAIRS
            move = np.where(several, _medians(rest, o.ends(kind)), 0.0)
            np.add(effect, move, out=effect)
            rest = rest - move
        if np.abs(rest - before).max() < CLOSE:
            break
    return rest, effects


def _hosts(o: Observed, kind: str, effect: Numbers, rest: Numbers) -> _Units:
    """The hosts that have pairs enough as a kind."""
    hosts, at, pairs = np.unique(o.ends(kind), return_inverse=True, return_counts=True)
    several = pairs >= FEWEST_PAIRS
    place = np.where(several, np.cumsum(several) - 1, -1)[at]
    shift = np.zeros(int(several.sum()))
    shift[place[place >= 0]] = effect[place >= 0]
    # those that each is fitted beside have effects of about as many pairs
    free = 1 - 2 * several.sum() / len(rest)
    noise = NORMAL * float(np.abs(rest).mean()) / math.sqrt(max(free, 0.25))
    error = NORMAL * noise / np.sqrt(pairs[several]) * np.sqrt(1 + NORMAL**2 / pairs[several])
    names = [o.hosts[host] for host in hosts[several].tolist()]
    middle = float(np.median(shift)) if names else 0.0
    residual = effect + rest - middle
    return _Units(kind, names, shift - middle, error, np.ones(len(names), bool), place, residual)


def _across(o: Observed, rest: Numbers, crossing: Flags, inside: Flags) -> Iterator[float]:
    """Of each host inside that has both, what its pairs that cross move against its others."""
    for host in np.flatnonzero(inside).tolist():
        of_host = (o.sender == host) | (o.receiver == host)
        if (of_host & crossing).any() and (of_host & ~crossing).any():
            yield float(np.median(rest[of_host & crossing]) - np.median(rest[of_host & ~crossing]))


def _interval(one: Sequence[float], two: Sequence[float], level: float) -> tuple[float, float]:
    """The mean of one less that of two (none: 0), and the half-width of its interval by Student's t
    with the degrees of freedom of the smaller; NaN of one value.
    """
    each = [np.array(values) for values in (one, two) if values]
    shift = float(each[0].mean()) - (float(each[1].mean()) if two else 0.0) if one else NAN
    few = min(map(len, each), default=0)
    if few < 2:
        return shift, NAN
    error = math.sqrt(sum(values.var(ddof=1) / len(values) for values in each))
    return shift, float(special.stdtrit(few - 1, (1 + level) / 2)) * error


def _shared(kind: str, name: str, hosts: int, sign: float, shift: float, half: float) -> Shared:
    middle = sign * shift
    ratio, low, high = (math.exp(middle + x) for x in (0.0, -half, half))
    return Shared(kind, name, hosts, ratio, low, high, shift + half < 0)
