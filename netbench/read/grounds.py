"""Whether what was measured can carry a verdict on CPU. Raw CPU says which level is better only
where the same load was offered and held; a meter of whole hosts counts what others used, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from netbench.base.names import is_measured
from netbench.read import offered
from netbench.read.cells import CellResult
from netbench.read.meter_choice import LEAST
from netbench.read.metrics import RATIOS
from netbench.read.result import Result
from netbench.stats.comparison import NO_VERDICT, SURE, Comparison

NO_RATE = "raw CPU tells which is better only at an offered load that holds (`rate:`)"
MISSED = "the offered rate did not hold, and CPU goes with the load"
FOREIGN = "what others used meanwhile could make it, and this meter counts whole hosts"
Side = tuple[Result, CellResult]
"""A cell of a comparison, in its result."""
_WHOLE = {row.name for row in RATIOS if row.whole}  # metrics of the whole kernel


def grounded(c: Comparison, level: Side, baseline: Side) -> Comparison:
    """The comparison of these cells, without a verdict where its metric has no ground for one. An
    interval means that both are there.
    """
    if math.isnan(c.low) or not (why := _doubt(c, level, baseline)):
        return c
    return c.but(verdict=NO_VERDICT, unsettled=why, flags=())


def _doubt(c: Comparison, level: Side, baseline: Side) -> str:
    """Why there is no verdict; "" where nothing is against one."""
    sides = level, baseline
    bare = c.metric.partition(".")[0]
    if bare.endswith("_cpu") and is_measured(bare):
        if not all(offered.word(result, cell.factors) for result, cell in sides):
            return NO_RATE
        if not all(offered.holds(*side) for side in sides):
            return MISSED
    own, base = (_share(*side, c.metric) for side in sides)
    low, high = c.low * (1 - own), c.high / max(1 - base, 1e-9)
    stands = low > 1 or high < 1
    if c.verdict == "equivalent" and c.margin is not None:
        stands = 1 - c.margin <= low and high <= 1 + c.margin
    return FOREIGN if c.verdict in SURE and not stands else ""


def _share(result: Result, cell: CellResult, metric: str) -> float:
    """What part of a metric of a cell others may have made, by what they used in its blocks."""
    cpu = _cpu_behind(result, metric) if result.foreign_loads else ""
    if cpu not in cell.intervals:
        return 0.0
    runs = result.ok
    blocks = runs["block"][(runs["cell"] == cell.cell) & (runs["pair"] == cell.pair)]
    hosts = dict(zip(("sender", "receiver"), cell.pair.split(">"), strict=True))
    one_kernel = result.shared.get(cell.pair, False)
    own_host = hosts.get(cpu.partition("_")[0])
    names = [own_host] if own_host else list(hosts.values())[: 1 if one_kernel else 2]
    used = sum(result.foreign_loads.get((host, block), 0.0) for host in names for block in blocks)
    return min(1.0, used / len(blocks) / max(cell.intervals[cpu].mean, 1e-9))


def _cpu_behind(result: Result, metric: str) -> str:
    """The CPU metric by whole hosts, of which a metric is a part or a quotient; "" where its meter
    counts the processes alone, or no CPU.
    """
    bare, dot, meter = metric.partition(".")
    bare = bare.removesuffix("_per_request")
    who, _, what = bare.partition("_")
    if what in ("cpu", "demand", "request_demand"):
        cpu = f"{who}_cpu{dot}{meter}"
    elif bare in _WHOLE or what in _WHOLE:
        cpu = f"{who if what in _WHOLE else 'system'}_cpu"
    else:
        return ""
    return cpu if host_meter(result, cpu) else ""


def host_meter(result: Result, cpu: str) -> str:
    """The meter of whole hosts that a CPU metric is by; "" where it is the processes' own."""
    bare, _, meter = cpu.partition(".")
    order = (meter,) if meter else result.meters.get(bare, ())
    best = next((each for each in order if f"{bare}.{each}" in result.metrics), LEAST)
    return "" if best == LEAST else best


def with_processes(
    result: Result,
    families: Mapping[str, list[Comparison]],
    compare: Callable[[str], list[Comparison]],
) -> dict[str, list[Comparison]]:
    """The families that have comparisons; behind each that others' load keeps from a verdict, the
    same by what the processes themselves used.
    """
    by_metric: dict[str, list[Comparison]] = {}
    for name, family in families.items():
        by_metric |= {name: family} if family else {}
        own = f"{name.partition('.')[0]}.{LEAST}"
        if own in result.metrics and any(c.unsettled == FOREIGN for c in family):
            by_metric[own] = compare(own)
    return by_metric
