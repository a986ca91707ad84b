"""Comparisons: ratio of two means from paired log differences, with an interval, corrected over the
family, and a verdict in words.

Pairing. Within a campaign log differences are paired by block, or by boot where there are several
(pairs.py). The mean of these differences d has a Student t interval; exp(d) is the ratio of
(geometric) means. Two results were run at different times and cannot be paired: independent.py.

Family. All comparisons of one metric by one factor are one family, corrected by Holm's step-down
rule (Holm 1979, doi:10.2307/4615733): the k-th smallest of m p values is tested at alpha / (m - k +
1), and its interval has that confidence; from the first that fails on, the level stays. So an
interval excludes 1 exactly where Holm's rule rejects; that all intervals of a family hold their
ratio at once is a little less likely than the confidence says.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from netbench.analysis.intervals import NAN, Interval, mean_interval, sequential_confidence
from netbench.analysis.metrics import describe
from netbench.analysis.pairs import Rounds, Series, differences, rounds
from netbench.model import Repeat

VERDICTS = ("better", "worse", "equivalent", "inconclusive")
ZERO = "a run measured 0, which has no ratio"
MOST_RUNS = 10_000  # "what n would settle it" is not asked beyond that


@dataclass(frozen=True)
class Comparison:
    """One level against the baseline, in one context (levels of the other factors) and pair.

    `ratio`, `low`, `high`: level over baseline; NaN when unknown. `p`: two-sided, of ratio 1,
    uncorrected. `n` pairs of `unit` (`block` or `boot`); where nothing is paired, `n` and `against`
    are the units (`run` or `boot`) of level and of baseline. `error` is the standard error of the
    mean log difference, with `freedom` degrees; `sd` the deviation that it comes from. `needed`:
    total n (of each, if not paired) that would settle an inconclusive one, None when unknown or
    beyond MOST_RUNS. `why`: why there is no interval.
    """

    factor: str
    level: str
    baseline: str
    context: Mapping[str, str]
    pair: str
    metric: str
    n: int
    unit: str = "block"
    ratio: float = NAN
    low: float = NAN
    high: float = NAN
    p: float = NAN
    confidence: float = NAN  # of the family
    corrected: float = NAN  # of this interval alone, after widening and Holm's correction
    sd: float = NAN  # of the log differences
    error: float = NAN
    freedom: float = NAN
    against: int | None = None  # None: paired
    margin: float | None = None
    verdict: str = "inconclusive"
    needed: int | None = None
    why: str = ""

    @property
    def sentence(self) -> str:
        """The comparison in words, without its context."""
        from netbench.analysis.words import sentence

        return sentence(self)


def for_factor(
    runs: pd.DataFrame,
    factor: str,
    baseline: str,
    *,
    metric: str,
    factors: Sequence[str],
    repeat: Repeat,
    margin: float | None = None,
    planned: Iterable[Mapping[str, str]] = (),
    order: Rounds | None = None,
) -> list[Comparison]:
    """Each level of `factor` against `baseline`, all other factors equal, per pair: one family.

    runs: ok runs with columns pair, block, boot, `factors` and `metric`. repeat: what the campaign
    asked for; its confidence is that of the whole family, its min and max widen as for a mean, its
    boots say what the unit is. margin: fraction within which a difference does not matter. planned:
    the factors of every cell; a level that has no run where it was to have some is told so, unless
    the whole context has none. order: the rounds of boots, where more is known of them than `runs`
    show. Errors: KeyError for a factor, level or metric that is not there.
    """
    if factor not in factors or metric not in runs:
        raise KeyError(factor if factor not in factors else metric)
    others = [name for name in factors if name != factor]
    levels = [str(level) for level in runs[factor].cat.categories]
    if baseline not in levels:
        raise KeyError(baseline)
    contexts: dict[tuple[str, ...], dict[str, Series]] = {}
    for words, series in by_cell(runs, ["pair", *others, factor], metric):
        contexts.setdefault(words[:-1], {})[words[-1]] = series
    known = order or _rounds(runs, factor)
    levels_of: dict[tuple[str, ...], set[str]] = {}
    for cell in planned:
        levels_of.setdefault(tuple(str(cell.get(name, "")) for name in others), set()).add(
            str(cell.get(factor))
        )
    found: list[Comparison] = []
    for words, by_level in contexts.items():
        context = dict(zip(others, words[1:], strict=True))
        empty = Comparison(
            factor,
            "",
            baseline,
            context,
            words[0],
            metric,
            0,
            confidence=repeat.confidence,
            margin=margin,
        )
        base = by_level.pop(baseline, None)
        meant = levels_of.get(tuple(context.values()), set())
        for level in (
            level for level in levels if level != baseline and level in meant | by_level.keys()
        ):
            found.append(
                _paired(replace(empty, level=level), by_level.get(level), base, repeat.boots, known)
            )
    return corrected(found, repeat)


def _rounds(runs: pd.DataFrame, factor: str) -> Rounds:
    """The rounds of boots by the levels of a factor, whatever the cell: one that failed in a boot
    leaves the others in step.
    """
    return rounds(
        group.unique().tolist()
        for _, group in runs.groupby(factor, observed=True, sort=False)["boot"]
    )


def by_cell(
    runs: pd.DataFrame, keys: list[str], metric: str
) -> Iterator[tuple[tuple[str, ...], Series]]:
    """The runs that have the metric, by the words of `keys` in their levels' order; "" for a factor
    that a cell lacks.
    """
    used = runs[runs[metric].notna()]
    columns = [pd.Categorical(used[key]) for key in keys]
    cells, at = np.unique(
        np.column_stack([column.codes for column in columns]), axis=0, return_inverse=True
    )
    block, boot, values = (used[name].to_numpy() for name in ("block", "boot", metric))
    bounds = np.cumsum(np.bincount(at, minlength=len(cells)))[:-1]
    for codes, rows in zip(cells, np.split(np.argsort(at, kind="stable"), bounds), strict=False):
        words = tuple(
            str(column.categories[code]) if code >= 0 else ""
            for column, code in zip(columns, codes, strict=True)
        )
        yield words, Series(block[rows], boot[rows], values[rows].astype(float))


def _paired(
    empty: Comparison, mine: Series | None, base: Series | None, boots: int, order: Rounds
) -> Comparison:
    """Fill ratio, p and error of one comparison from the runs of both levels."""
    if mine is None:
        return replace(empty, why=f"{empty.level} has no run here")
    if base is None:
        return replace(empty, why=f"the baseline {empty.baseline} has no run here")
    if (mine.values <= 0).any() or (base.values <= 0).any():
        return replace(empty, why=ZERO)
    unit, found = differences(mine, base, boots, order)
    filled = replace(empty, n=len(found), unit=unit)
    if len(found) == 0:
        return replace(filled, why=f"the two have no {unit} in common")
    d = mean_interval(found, 0.95)
    if not d.known:
        return replace(filled, ratio=math.exp(d.mean), why=f"one {unit} has no interval")
    return tested(replace(filled, sd=d.sd), d.mean, d.sd / math.sqrt(d.n), d.n - 1)


def tested(empty: Comparison, d: float, error: float, freedom: float) -> Comparison:
    """The comparison with its ratio and p, from the mean log difference and its standard error;
    freedom: of Student's t.
    """
    t = math.inf if error == 0 and d else 0.0 if error == 0 else d / error
    p = float(2 * stdtr(freedom, -abs(t)))
    return replace(empty, ratio=math.exp(d), p=p, error=error, freedom=freedom)


def corrected(family: Sequence[Comparison], repeat: Repeat) -> list[Comparison]:
    """Give each comparison of one family its interval, verdict and needed n; order is kept."""
    known = sorted(
        (i for i, c in enumerate(family) if not math.isnan(c.p)), key=lambda i: family[i].p
    )
    widened = sequential_confidence(repeat.confidence, repeat.min, repeat.max)
    found = list(family)
    left, failed = len(known), False
    for i in known:
        whole = (
            repeat.confidence if family[i].unit == "boot" else widened
        )  # the number of boots is not chosen by looking
        alpha = (1 - whole) / left
        found[i] = judged(family[i], 1 - alpha)
        failed = failed or family[i].p > alpha
        left -= 0 if failed else 1
    return found


def judged(comparison: Comparison, level: float) -> Comparison:
    """The comparison with its interval at `level`, its verdict, and for an inconclusive one the n
    that would settle it.
    """
    d = math.log(comparison.ratio)
    half = _quantile(comparison.freedom, level) * comparison.error
    low, high = math.exp(d - half), math.exp(d + half)
    verdict = verdict_of(low, high, describe(comparison.metric).better, comparison.margin)
    samples = 1 if comparison.against is None else 2
    needed = (
        settling(d, comparison.sd, level, comparison.margin, samples)
        if verdict == "inconclusive"
        else None
    )
    return replace(comparison, low=low, high=high, corrected=level, verdict=verdict, needed=needed)


def _quantile(freedom: float, confidence: float) -> float:
    """Two-sided quantile of Student's t."""
    return float(stdtrit(freedom, (1 + confidence) / 2))


def verdict_of(low: float, high: float, better: int, margin: float | None) -> str:
    """One of VERDICTS for a ratio's interval.

    `better`: 1 when more is better, -1 when less is; with 0 a difference is inconclusive.
    """
    if margin is not None and 1 - margin <= low and high <= 1 + margin:
        return "equivalent"
    if low <= 1 <= high or better == 0:
        return "inconclusive"
    return "better" if (low > 1) == (better > 0) else "worse"


def settling(
    d: float, sd: float, confidence: float, margin: float | None, samples: int = 1
) -> int | None:
    """The smallest n whose interval, were mean and spread as seen, would lie beyond 0 or wholly
    inside the margin.

    sd: of a paired difference, or with two samples the root of the sum of their variances. None
    beyond MOST_RUNS.
    """
    room = abs(d)
    if margin is not None:
        room = (
            max(room, math.log1p(margin) - d, 0.0)
            if d >= 0
            else max(room, d - math.log1p(-margin), 0.0)
        )
    if room <= 0:
        return None
    for n in _candidates():
        if _quantile(samples * (n - 1), confidence) * sd / math.sqrt(n) < room:
            return n
    return None


def _candidates() -> list[int]:
    """2, 3, 4 ... in steps of at most 2%, to MOST_RUNS."""
    n, found = 2, []
    while n <= MOST_RUNS:
        found.append(n)
        n += max(1, n // 50)
    return found


def ratio_interval(comparison: Comparison) -> Interval:
    """The ratio as an Interval, for tables and plots: its bounds are not symmetric about
    the mean.
    """
    half = (comparison.high - comparison.low) / 2
    return Interval(
        comparison.n, comparison.ratio, comparison.low, comparison.high, comparison.sd, half
    )
