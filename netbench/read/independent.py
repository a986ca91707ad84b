"""Two results: the ratio of each cell's means.

The two ran at different times, so nothing pairs them: the logarithms of their runs (of their boots'
means, where both have several boots) are independent samples, compared by Welch's t (Welch 1947,
doi:10.1093/biomet/34.1-2.28). That interval holds what the runs differ by, not what the campaign's
level moves by from one time to another, so it gives no verdict. With earlier results of the
campaign the interval holds their spread, too (history.py), and gives one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from netbench.base.units import count
from netbench.read.compare import ZERO, by_cell, failed_by_cell, withstood
from netbench.read.history import FEWEST, History, Level, spread, units
from netbench.read.matching import A, B, Match, Matching
from netbench.read.result import Result
from netbench.read.verdicts import corrected, tested
from netbench.stats.comparison import RESULT, Comparison
from netbench.stats.failures import absent
from netbench.stats.intervals import Numbers, sequential_confidence, welch_error
from netbench.stats.pairs import Series


def compared(
    a: Result,
    b: Result,
    matching: Matching,
    metric: str,
    margin: float | None = None,
    history: History | None = None,
) -> list[Comparison]:
    """B against A in one metric, a comparison a match: one family. The metric must be in both.

    history: earlier results. What fewer than FEWEST of them have stays without a verdict.
    """
    levels = history.levels(a, metric) if history else {}
    found = [
        {(w[1], w[0]): s for w, s in by_cell(result.ok, ["pair", "cell"], metric)}
        for result in (a, b)
    ]
    lost = [failed_by_cell(result.failed, ["cell", "pair"]) for result in (a, b)]
    repeat = max(
        (a.repeat, b.repeat),
        key=lambda r: (r.confidence, sequential_confidence(r.confidence, r.min, r.max)),
    )
    better = b.describe(metric).better
    samples = [
        _Sample(
            m,
            (found[0].get(m.a), found[1].get(m.b)),
            (lost[0].get(m.a), lost[1].get(m.b)),
            levels.get(m.a, []),
        )
        for m in matching.matches
    ]
    empty = Comparison(
        RESULT, B, A, {}, "", metric, 0, "run", confidence=repeat.confidence, against=0
    )
    empty = empty.but(margin=margin, better=better, earlier=0)
    family = [_independent(empty, sample, *sample.series) for sample in samples]
    told = [_told(c) for c in corrected(family, repeat)]
    return [_withstood(c, sample) for c, sample in zip(told, samples, strict=True)]


@dataclass(frozen=True)
class _Sample:
    """Of A and of B: the runs of a match, and those that failed (without values); `levels`: those
    of its cell in earlier results.
    """

    match: Match
    series: tuple[Series | None, Series | None]
    failed: tuple[Series | None, Series | None]
    levels: Sequence[Level]


def _withstood(c: Comparison, sample: _Sample) -> Comparison:
    """The comparison with the failures of both, as within a result."""
    base, mine = sample.series
    if base is None or mine is None:
        return c

    def again(mine: Series, base: Series) -> Comparison:
        return _independent(c, replace(sample, levels=()), base, mine)

    return withstood(c, mine, base, sample.failed[::-1], again)


def _independent(
    empty: Comparison, sample: _Sample, base: Series | None, mine: Series | None
) -> Comparison:
    """One comparison without its interval."""
    m = sample.match
    empty = empty.but(context=m.context, pair=m.pair)
    if base is None or mine is None:
        name, failed = (A, sample.failed[0]) if base is None else (B, sample.failed[1])
        return empty.but(why=absent(name, failed))
    if (mine.values <= 0).any() or (base.values <= 0).any():
        return empty.but(why=ZERO)
    boots = [len(s.boots) for s in (base, mine)]
    there, here = units(base), units(mine)
    unit, sizes = ("boot", boots) if max(boots) > 1 else ("run", [len(there), len(here)])
    if unit == "boot" and all(s.builds.keys() >= s.boots for s in (base, mine)):
        unit, sizes = "build", [len(there), len(here)]
    filled = empty.but(n=sizes[1], against=sizes[0], unit=unit)
    d = float(here.mean() - there.mean())
    if min(boots) == 1 < max(boots):
        one, many = (A, B) if boots[0] == 1 else (B, A)
        why = (
            f"{one} has one boot and {many} {max(boots)}: how far boots of {one} lie apart is not"
            " known"
        )
        return filled.but(ratio=math.exp(d), why=why)
    if min(len(here), len(there)) < 2:
        return filled.but(ratio=math.exp(d), why=f"one {unit} has no interval")
    few = min(boots)  # the spread of means over more boots says too little of these
    usable = [one for one in sample.levels if one.boots <= few]
    return _welch(filled.but(earlier=len(usable)), d, here, there, usable)


def _welch(
    filled: Comparison, d: float, here: Numbers, there: Numbers, levels: Sequence[Level]
) -> Comparison:
    error, freedom = welch_error(here, there)
    filled = filled.but(sd=math.hypot(here.std(ddof=1), there.std(ddof=1)))
    if len(levels) < FEWEST:
        return tested(filled, d, error, freedom)
    means = np.array([one.mean for one in levels])
    within = np.array([one.variance for one in levels])
    total = float(spread(means, within, np.array(error**2)))
    filled = filled.but(between=float(means.std(ddof=1)))
    return tested(filled, d, math.sqrt(total), len(means) - 1)


def _told(c: Comparison) -> Comparison:
    """The comparison without a verdict that no earlier results support, and with the reason why
    there is none. How many runs would settle it is not known: more of them within a campaign do not
    tell how far campaigns lie apart.
    """
    if math.isnan(c.low):
        return c
    if c.lacks_history:
        known = f", and {count(c.earlier, 'earlier result')} has no spread" if c.earlier else ""
        why = f"one campaign each cannot tell a change from what two campaigns differ by{known}"
        return c.but(verdict="inconclusive", needed=None, unsettled=why)
    if c.verdict != "inconclusive":
        return c
    why = f"{c.earlier} earlier results differ by {c.between:.2%} (standard deviation)"
    return c.but(needed=None, unsettled=why)
