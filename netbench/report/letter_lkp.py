"""A comparison in the form of the kernel test robot's mails (lkp-tests): mean with its deviation in
percent, change, mean with its deviation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from netbench.base.control_characters import escape_controls
from netbench.report.build import Report
from netbench.report.letter import compared, folded, head
from netbench.report.phrases import where
from netbench.report.source import Source
from netbench.stats.comparison import Comparison
from netbench.stats.words import percent

WIDTH = 16  # of the column of the base; that of the level is wider by 11
RULES = (
    f"{'-' * WIDTH} {'-' * (WIDTH + 11)}",
    f"{'%stddev':>{WIDTH}}     %change{'%stddev':>{WIDTH}}",
    f"{chr(92):>{WIDTH - 3}}          |{chr(92):>{WIDTH + 1}}",
)


def render(report: Report) -> str:
    """The letter. Errors: as letter.render."""
    source = report.source
    family = compared(source)
    parts = ["\n".join(folded(head(source, family), ""))]
    places: dict[tuple[str, str], list[Comparison]] = {}
    for c in family:
        places.setdefault((where(c, source.several), c.level), []).append(c)
    for (place, level), mine in places.items():
        first = mine[0]
        names = f"{first.baseline:>{WIDTH}} {level:>{WIDTH + 11}}"
        lines = [place, names.rstrip(), *RULES, *(_row(source, c) for c in mine)]
        parts.append("\n".join(line for line in lines if line))
    return escape_controls("\n\n".join(parts))


def _row(source: Source, c: Comparison) -> str:
    unit = source.result.describe(c.metric).unit
    base, level = (" ".join(_mean(source, c, word)) for word in (c.baseline, c.level))
    change = f"{percent(c.ratio):+.1f}%" if c.ratio > 0 else "-"
    return f"{base:>{WIDTH}} {change:>10} {level:>{WIDTH}}  {c.metric} {unit}".rstrip()


def _mean(source: Source, c: Comparison, level: str) -> Iterator[str]:
    """The mean of a cell, and its deviation where there is one that shows."""
    cell = source.cell_of(c, level)
    interval = cell.intervals.get(c.metric) if cell else None
    if interval is None or math.isnan(interval.mean):
        yield "-"
        return
    yield f"{interval.mean:.5g}"
    share = 100 * interval.sd / interval.mean if interval.mean else math.nan
    yield f"±{share:3.0f}%" if share >= 0.5 else " " * 5
