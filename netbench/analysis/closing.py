"""Which cells have been run often enough, over a whole campaign: one rule for the conductor and for the report.

Without `compare` each cell closes alone, by its own intervals (stopping.assess). With it, the cells that differ only in the
compared factor close together, once the ratio of each to the baseline is as precise as asked: paired within blocks, so what
drifts between blocks cancels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from netbench.analysis.intervals import mean_interval, sequential_confidence
from netbench.analysis.stopping import assess
from netbench.model import Compare, Repeat

Key = tuple[str, str]  # cell, pair
ByBlock = Mapping[str, Mapping[int, float]]  # metric -> block -> value, in order of execution


@dataclass(frozen=True)
class Standing:
    """One (cell, pair): its factors, its values, why it is closed already ("" if it is not), and how many of its runs are ok."""

    factors: Mapping[str, str]
    values: ByBlock
    closed: str = ""
    runs: int = 0


def closings(cells: Mapping[Key, Standing], swept: Iterable[str], compare: Compare | None, repeat: Repeat) -> dict[Key, str]:
    """Why each (cell, pair) is closed: `converged`, `max`, what it was closed for before, or "" while it wants more runs."""
    found: dict[Key, str] = {}
    for group in _groups(cells, swept, compare):
        reasons = {key: cells[key].closed or _reason(key, group, cells, compare, repeat) for key in group}
        together = all(reasons.values())
        for key, reason in reasons.items():
            found[key] = reason if together or reason != "converged" else ""
    return found


def _groups(cells: Mapping[Key, Standing], swept: Iterable[str], compare: Compare | None) -> list[list[Key]]:
    """Cells that close together. Keys that `include` attached belong to their level and do not keep cells apart."""
    if compare is None:
        return [[key] for key in cells]
    others = [name for name in swept if name != compare.factor]
    groups: dict[tuple[str | None, ...], list[Key]] = {}
    for key, cell in cells.items():
        groups.setdefault((key[1], *(cell.factors.get(name) for name in others)), []).append(key)
    return list(groups.values())


def _reason(key: Key, group: list[Key], cells: Mapping[Key, Standing], compare: Compare | None, repeat: Repeat) -> str:
    alone = assess({name: list(values.values()) for name, values in cells[key].values.items()}, repeat)
    exhausted = "max" if max(alone.n, cells[key].runs) >= repeat.max else ""
    base = None
    if compare is not None:
        levels = (other for other in group if cells[other].factors.get(compare.factor) == compare.baseline)
        base = next(levels, None)
    if base is None or len(group) == 1 or cells[base].closed:
        return alone.reason if alone.closed else exhausted
    judged = [other for other in group if other != base and not cells[other].closed] if key == base else [key]
    precise = all(ratios_precise(cells[other].values, cells[base].values, repeat) for other in judged)
    if precise and alone.n >= repeat.min:
        return "converged"
    return exhausted


def ratios_precise(mine: ByBlock, base: ByBlock, repeat: Repeat) -> bool:
    """Whether the ratio to the baseline is as precise as asked in every chosen metric that both have, and there is one."""
    confidence = sequential_confidence(repeat.confidence, repeat.min, repeat.max)
    judged = 0
    for metric in repeat.metrics:
        here, there = mine.get(metric, {}), base.get(metric, {})
        common = [block for block in here if block in there]
        if not here or not there:
            continue
        if any(here[block] <= 0 or there[block] <= 0 for block in common):
            return False  # no ratio
        interval = mean_interval([math.log(here[block] / there[block]) for block in common], confidence)
        if len(common) < repeat.min or not interval.known or math.expm1(interval.half_width) > repeat.precision:
            return False
        judged += 1
    return judged > 0
