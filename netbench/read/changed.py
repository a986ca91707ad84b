"""Cells that changed against the baseline: what a profile is to explain."""

from __future__ import annotations

from netbench.read.compare import Place, in_result
from netbench.read.result import Result

CHANGED = ("better", "worse")
COSTS = ("_cpu", "_demand")  # how the names of CPU time and of CPU time per byte end


def changed(result: Result) -> set[Place]:
    """The cells that are better or worse than the baseline in throughput, CPU time or CPU time per
    byte, with their baselines; none where the campaign compares nothing.
    """
    asked = result.compare
    if asked is None or asked.factor not in result.factors:
        return set()
    others = [name for name in result.swept if name != asked.factor]
    cell_of = {
        (cell.factors.get(asked.factor), tuple(cell.factors.get(name, "") for name in others)): cell
        for cell in result.cells
    }
    places: set[Place] = set()
    for metric in result.metrics:
        if metric != "throughput" and not metric.endswith(COSTS):
            continue
        family = in_result(result, metric, asked.factor, asked.baseline, asked.margin)
        for c in family:
            context = tuple(c.context.get(name, "") for name in others)
            for level in (c.level, c.baseline) if c.verdict in CHANGED else ():
                places.add((cell_of[level, context].cell, c.pair))
    return places
