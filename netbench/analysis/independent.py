"""Two results: the ratio of each cell's means.

The two ran at different times, so nothing pairs them: the logarithms of their runs (of their boots'
means, where both have several boots) are independent samples, compared by Welch's t (Welch 1947,
doi:10.1093/biomet/34.1-2.28). What changed between the two times, beside what was meant to, is part
of the difference and in no interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from netbench.analysis.compare import ZERO, by_cell
from netbench.analysis.comparison import Comparison
from netbench.analysis.intervals import Numbers, sequential_confidence
from netbench.analysis.matching import A, B, Match, Matching, Place
from netbench.analysis.pairs import Series
from netbench.analysis.result import Result
from netbench.analysis.verdicts import corrected, tested
from netbench.model import Repeat


def compared(
    a: Result, b: Result, matching: Matching, metric: str, margin: float | None = None
) -> list[Comparison]:
    """B against A in one metric, a comparison a match: one family. The metric must be in both."""
    series = [
        {(w[1], w[0]): s for w, s in by_cell(result.ok, ["pair", "cell"], metric)}
        for result in (a, b)
    ]
    repeat = max(
        (a.repeat, b.repeat),
        key=lambda r: (r.confidence, sequential_confidence(r.confidence, r.min, r.max)),
    )
    return corrected(
        [
            _independent(m, metric, series, repeat, margin, b.describe(metric).better)
            for m in matching.matches
        ],
        repeat,
    )


def _independent(
    m: Match,
    metric: str,
    series: Sequence[Mapping[Place, Series]],
    repeat: Repeat,
    margin: float | None,
    better: int,
) -> Comparison:
    """One comparison without its interval."""
    empty = Comparison(
        "result", B, A, m.context, m.pair, metric, 0, "run", confidence=repeat.confidence, against=0
    )
    empty = replace(empty, margin=margin, better=better)
    base, mine = series[0].get(m.a), series[1].get(m.b)
    if base is None or mine is None:
        return replace(empty, why=f"{A if base is None else B} has no run here")
    if (mine.values <= 0).any() or (base.values <= 0).any():
        return replace(empty, why=ZERO)
    boots = [len(set(s.boot.tolist())) for s in (base, mine)]
    there, here = (_logs(s, n > 1) for s, n in zip((base, mine), boots, strict=True))
    unit, sizes = ("boot", boots) if max(boots) > 1 else ("run", [len(there), len(here)])
    filled = replace(empty, n=sizes[1], against=sizes[0], unit=unit)
    d = float(here.mean() - there.mean())
    if min(boots) == 1 < max(boots):
        one, many = (A, B) if boots[0] == 1 else (B, A)
        why = (
            f"{one} has one boot and {many} {max(boots)}: how far boots of {one} lie apart is not"
            " known"
        )
        return replace(filled, ratio=math.exp(d), why=why)
    if min(len(here), len(there)) < 2:
        return replace(filled, ratio=math.exp(d), why=f"one {unit} has no interval")
    return _welch(filled, d, here, there)


def _welch(filled: Comparison, d: float, here: Numbers, there: Numbers) -> Comparison:
    variances = float(here.var(ddof=1)), float(there.var(ddof=1))
    parts = variances[0] / len(here), variances[1] / len(there)
    error = math.sqrt(sum(parts))
    below = parts[0] ** 2 / (len(here) - 1) + parts[1] ** 2 / (len(there) - 1)
    freedom = sum(parts) ** 2 / below if below else float(len(here) + len(there) - 2)
    return tested(replace(filled, sd=math.sqrt(sum(variances))), d, error, freedom)


def _logs(series: Series, by_boot: bool) -> Numbers:
    """The logarithms of runs, or their means by boot."""
    logs = np.log(series.values)
    if not by_boot:
        return logs
    _, at = np.unique(series.boot, return_inverse=True)
    return np.asarray(np.bincount(at, logs) / np.bincount(at))
