"""The catalogue of metrics: what each number in a report means, with its unit, its formula and
where the formula comes from. `derive.py` computes them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from netbench.read.ratio_table import RATIOS, TIME_SHARE, Ratio
from netbench.result.record import SIDES

COUNTERS = "docs/records.md"
NO_UNITS: Mapping[str, str] = MappingProxyType({})
BETTER = {"µs": -1, "Gb/s": 1}
"""Of metrics that tools print: less time is better, and more of a rate."""


@dataclass(frozen=True)
class Metric:
    """One number that is derived from a run's raw counters.

    `unit`; `about`, one line; `better`: 1 more is better, -1 less is better, 0 neither; `label` for
    tables and plots. `formula` in words, where a counter's name stands for its closing less its
    opening value and `window` for the measured time of that side; `source` of the formula.
    `lowest`, `highest`: what its mean cannot lie outside. `is_count`: it counts few, whole events
    of a run.
    """

    name: str
    unit: str
    about: str
    formula: str
    source: str
    better: int = 0
    label: str = ""
    lowest: float = 0.0
    highest: float = math.inf
    is_count: bool = False

    @property
    def title(self) -> str:
        return self.label or self.name


def _rows(table: str) -> Iterator[Metric]:
    """The rows of metric_table.txt."""
    lines = [line.strip() for line in table.splitlines() if line and not line.startswith("#")]
    for head, about, formula in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        name, unit, more, label, source, *words = head.split(" | ")
        ends = {word: float(end) for word, _, end in (each.partition("=") for each in words) if end}
        better = {"better": 1, "worse": -1, "either": 0}[more]
        is_count = "count" in words
        yield Metric(name, unit, about, formula, source, better, label, is_count=is_count, **ends)


def _of_ratio(row: Ratio) -> Iterator[Metric]:
    """Both sides together, and each."""
    label = row.name.replace("_", " ")
    lowest = -math.inf if row.less_idle else 0.0
    highest = 1.0 if row.unit == TIME_SHARE else math.inf

    def made(who: str, formula: str, most: float = highest) -> Metric:
        """Of a side; of both together, or of the only one that it is about, with who: ""."""
        name, title = (f"{who}_{row.name}", f"{who} {label}") if who else (row.name, label)
        about = f"{row.about}, of the {who}" if who else row.about
        return Metric(name, row.unit, about, formula, row.source, row.better, title, lowest, most)

    if row.side:
        yield made("", row.formula(row.side))
        return
    summed = "the sum of both sides" if isinstance(row.over, str) else "counters of both sides"
    together = "one kernel is both ends" if row.whole else "both ends are in one network namespace"
    formula = f"as sender_{row.name}, {summed}; where {together}, of what was counted there"
    yield made("", formula, 2 * highest)
    for who in SIDES:
        yield made(who, row.formula(who))


METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        *_rows((Path(__file__).parent / "metric_table.txt").read_text(encoding="utf-8")),
        *(metric for row in RATIOS for metric in _of_ratio(row)),
    )
}
"""All metrics by name, in the order of tables."""


def _captured(name: str, unit: str) -> Metric:
    """A metric that a tool prints."""
    better = BETTER.get(unit, 1 if unit.endswith("/s") else 0)
    about = "what the pattern of `captures` finds in the output of a tool"
    return Metric(
        name, unit, about, "the number, in its base unit", COUNTERS, better, lowest=-math.inf
    )


def describe(name: str, units: Mapping[str, str] = NO_UNITS) -> Metric:
    """The Metric of a name, also of `NAME.METER`. `units`: of the metrics that tools print. Errors:
    KeyError for a name that no record can give.
    """
    bare, _, meter = name.partition(".")
    if name in units and bare not in METRICS:
        return _captured(name, units[name])
    metric = METRICS[bare]
    if not meter:
        return metric
    return replace(
        metric,
        name=name,
        about=f"{metric.about}, by {meter}",
        label=f"{metric.title} ({meter})",
    )
