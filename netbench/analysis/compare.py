"""Comparisons: ratio of two means from paired log differences, with an interval, corrected over the family, and a verdict in
words.

Pairing. Both cells of a comparison ran once in each block, close together in time; the difference of their logarithms within a
block is free of what drifts between blocks. The mean of these differences d has a Student t interval; exp(d) is the ratio of
(geometric) means. Where the levels lie in different boots (another kernel), or the campaign asked for several boots, the boot is
the unit: the n-th boot of one level is paired with the n-th of the other.

Family. All comparisons of one metric by one factor are one family, corrected by Holm's step-down rule (Holm 1979,
doi:10.2307/4615733): the k-th smallest of m p values is tested at alpha / (m - k + 1), and its interval has that confidence; from
the first that fails on, the level stays. So an interval excludes 1 exactly where Holm's rule rejects; that all intervals of a
family hold their ratio at once is a little less likely than the confidence says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from netbench.analysis.intervals import NAN, Interval, Numbers, mean_interval, sequential_confidence, t_probability, t_quantile
from netbench.analysis.metrics import describe
from netbench.model import Repeat

Places = npt.NDArray[np.int64]
VERDICTS = ("better", "worse", "equivalent", "inconclusive")
MOST_RUNS = 10_000  # "what n would settle it" is not asked beyond that


@dataclass(frozen=True)
class Comparison:
    """One level against the baseline, in one context (levels of the other factors) and pair.

    `ratio`, `low`, `high`: level over baseline; NaN when unknown. `p`: two-sided, of ratio 1, uncorrected. `n` pairs
    of `unit` (`block` or `boot`). `needed`: total n that would settle an inconclusive one, None when unknown or beyond MOST_RUNS.
    `why`: why there is no interval.
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
) -> list[Comparison]:
    """Each level of `factor` against `baseline`, all other factors equal, per pair: one family.

    runs: ok runs with columns pair, block, boot, `factors` and `metric`. repeat: what the campaign asked for; its confidence is
    that of the whole family, its min and max widen as for a mean, its boots say what the unit is. margin: fraction within which a
    difference does not matter. Errors: KeyError for a factor, level or metric that is not there.
    """
    if factor not in factors or metric not in runs:
        raise KeyError(factor if factor not in factors else metric)
    others = [name for name in factors if name != factor]
    levels = [str(level) for level in runs[factor].cat.categories]
    if baseline not in levels:
        raise KeyError(baseline)
    contexts: dict[tuple[str, ...], dict[str, _Series]] = {}
    for words, series in _by_cell(runs, ["pair", *others, factor], metric):
        contexts.setdefault(words[:-1], {})[words[-1]] = series
    found: list[Comparison] = []
    for words, by_level in contexts.items():
        context = dict(zip(others, words[1:], strict=True))
        empty = Comparison(factor, "", baseline, context, words[0], metric, 0, confidence=repeat.confidence, margin=margin)
        base = by_level.pop(baseline, None)
        found += (
            _paired(replace(empty, level=level), by_level[level], base, repeat.boots) for level in levels if level in by_level
        )
    return corrected(found, repeat)


@dataclass(frozen=True)
class _Series:
    """The runs of one cell: block, boot and value of each, in order of execution."""

    block: Places
    boot: Places
    values: Numbers

    def logs(self, unit: str) -> tuple[Places, Numbers]:
        """The units (`block` or `boot`) that hold runs, ascending, and the mean logarithm of the runs of each."""
        units, at = np.unique(self.boot if unit == "boot" else self.block, return_inverse=True)
        return units, np.bincount(at, np.log(self.values)) / np.bincount(at)


def _by_cell(runs: pd.DataFrame, keys: list[str], metric: str) -> Iterator[tuple[tuple[str, ...], _Series]]:
    """The runs that have the metric, by the words of `keys` in their levels' order; "" for a factor that a cell lacks."""
    used = runs[runs[metric].notna()]
    columns = [pd.Categorical(used[key]) for key in keys]
    cells, at = np.unique(np.column_stack([column.codes for column in columns]), axis=0, return_inverse=True)
    block, boot, values = (used[name].to_numpy() for name in ("block", "boot", metric))
    bounds = np.cumsum(np.bincount(at, minlength=len(cells)))[:-1]
    for codes, rows in zip(cells, np.split(np.argsort(at, kind="stable"), bounds), strict=False):
        words = tuple(str(column.categories[code]) if code >= 0 else "" for column, code in zip(columns, codes, strict=True))
        yield words, _Series(block[rows], boot[rows], values[rows].astype(float))


def _paired(empty: Comparison, mine: _Series, base: _Series | None, boots: int) -> Comparison:
    """Fill ratio, p and sd of one comparison from the runs of both levels."""
    if base is None:
        return replace(empty, why=f"the baseline {empty.baseline} has no run here")
    if (mine.values <= 0).any() or (base.values <= 0).any():
        return replace(empty, why="a run measured 0, which has no ratio")
    unit = "boot" if boots > 1 or not set(mine.boot.tolist()) & set(base.boot.tolist()) else "block"
    differences = _differences(mine, base, unit)
    found = replace(empty, n=len(differences), unit=unit)
    if len(differences) == 0:
        return replace(found, why=f"the two have no {unit} in common")
    d = mean_interval(differences, 0.95)
    if not d.known:
        return replace(found, ratio=math.exp(d.mean), why=f"one {unit} has no interval")
    t = math.inf if d.sd == 0 and d.mean else 0.0 if d.sd == 0 else d.mean / (d.sd / math.sqrt(d.n))
    return replace(found, ratio=math.exp(d.mean), sd=d.sd, p=t_probability(t, d.n))


def _differences(mine: _Series, base: _Series, unit: str) -> Numbers:
    """Log differences, one a common unit; runs of one unit count as their mean. Boots that are never shared pair in order."""
    (units, logs), (others, against) = mine.logs(unit), base.logs(unit)
    _, i, j = np.intersect1d(units, others, assume_unique=True, return_indices=True)
    if unit == "boot" and len(i) == 0:
        i = j = np.arange(min(len(units), len(others)))
    return logs[i] - against[j]


def corrected(family: Sequence[Comparison], repeat: Repeat) -> list[Comparison]:
    """Give each comparison of one family its interval, verdict and needed n; order is kept."""
    tested = sorted((i for i, c in enumerate(family) if not math.isnan(c.p)), key=lambda i: family[i].p)
    widened = sequential_confidence(repeat.confidence, repeat.min, repeat.max)
    found = list(family)
    left, failed = len(tested), False
    for i in tested:
        whole = widened if family[i].unit == "block" else repeat.confidence  # the number of boots is not chosen by looking
        alpha = (1 - whole) / left
        found[i] = judged(family[i], 1 - alpha)
        failed = failed or family[i].p > alpha
        left -= 0 if failed else 1
    return found


def judged(comparison: Comparison, level: float) -> Comparison:
    """The comparison with its interval at `level`, its verdict, and for an inconclusive one the n that would settle it."""
    d, n = math.log(comparison.ratio), comparison.n
    half = t_quantile(n, level) * comparison.sd / math.sqrt(n)
    low, high = math.exp(d - half), math.exp(d + half)
    verdict = verdict_of(low, high, describe(comparison.metric).better, comparison.margin)
    needed = settling(d, comparison.sd, level, comparison.margin) if verdict == "inconclusive" else None
    return replace(comparison, low=low, high=high, corrected=level, verdict=verdict, needed=needed)


def verdict_of(low: float, high: float, better: int, margin: float | None) -> str:
    """One of VERDICTS for a ratio's interval.

    `better`: 1 when more is better, -1 when less is; with 0 a difference is inconclusive.
    """
    if margin is not None and 1 - margin <= low and high <= 1 + margin:
        return "equivalent"
    if low <= 1 <= high or better == 0:
        return "inconclusive"
    return "better" if (low > 1) == (better > 0) else "worse"


def settling(d: float, sd: float, confidence: float, margin: float | None) -> int | None:
    """The smallest n whose interval, were mean and spread as seen, would lie beyond 0 or wholly inside the margin.

    None beyond MOST_RUNS.
    """
    room = abs(d)
    if margin is not None:
        room = max(room, math.log1p(margin) - d, 0.0) if d >= 0 else max(room, d - math.log1p(-margin), 0.0)
    if room <= 0:
        return None
    for n in _candidates():
        if t_quantile(n, confidence) * sd / math.sqrt(n) < room:
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
    """The ratio as an Interval, for tables and plots: its bounds are not symmetric about the mean."""
    half = (comparison.high - comparison.low) / 2
    return Interval(comparison.n, comparison.ratio, comparison.low, comparison.high, comparison.sd, half)
