"""Which meter a bare CPU metric is by: the first of METER_ORDER that the runs do not contradict.

What the processes themselves used is exact to the nanosecond (rusage), and part of what their hosts
did. So a meter of the whole host that counts less has missed something: it is passed over, in all
cells, so that what is compared is by one meter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pandas as pd

from netbench.read.accounts import METER_ORDER
from netbench.stats.intervals import Interval, mean_interval

LEAST = "rusage"  # what every other meter must count at the least
CONFIDENCE = 0.95  # of all cells together
FEWEST = 3  # runs, below which a mean says nothing
SIDES_OF_CPU = ("sender_cpu", "receiver_cpu", "system_cpu")


class Contradiction(NamedTuple):
    """A meter that counted less CPU time than the processes used, in a (cell, pair).

    `counted` and `used` are means in CPUs; `short`: by how much, per run.
    """

    metric: str
    meter: str
    cell: str
    pair: str
    counted: float
    used: float
    short: Interval


def contradictions(runs: pd.DataFrame) -> list[Contradiction]:
    """Every (cell, pair) of a frame of ok runs in which a meter certainly counted less than the
    processes used: the whole interval of the difference is below 0, at a level that holds for all
    of them together.
    """
    candidates = [
        (metric, meter)
        for metric in SIDES_OF_CPU
        for meter in METER_ORDER
        if meter != LEAST and {f"{metric}.{meter}", f"{metric}.{LEAST}"} <= set(runs.columns)
    ]
    rows = []
    for metric, meter in candidates:
        counted, used = runs[f"{metric}.{meter}"], runs[f"{metric}.{LEAST}"]
        both = counted.notna() & used.notna()
        table = pd.DataFrame({"counted": counted, "used": used, "short": used - counted})[both]
        groups = table.groupby([runs["cell"][both], runs["pair"][both]], observed=True, sort=False)
        level = 1 - 2 * (1 - CONFIDENCE) / max(1, groups.ngroups * len(candidates))  # of one side
        means, sizes = groups.mean(), groups.size()
        for place in means.index[(means["short"] > 0) & (sizes >= FEWEST)]:
            short = mean_interval(groups.get_group(place)["short"].to_numpy(), level)
            if short.low > 0:
                cell, pair = map(str, place)
                at = means.loc[place]
                rows.append(
                    Contradiction(metric, meter, cell, pair, at["counted"], at["used"], short)
                )
    return rows


def by_best_meter(
    runs: pd.DataFrame, contradicted: Iterable[Contradiction]
) -> tuple[pd.DataFrame, dict[str, tuple[str, ...]]]:
    """The frame of runs, its bare CPU and demand metrics by the meter that most runs of a pair have
    (and level, where `meters` are swept), of several the first: what lacks it has none. And by CPU
    metric the meters, that one first where it is of all pairs, those that runs contradict last.
    """
    columns: dict[str, pd.Series[float]] = {}
    orders: dict[str, tuple[str, ...]] = {}
    is_swept = isinstance(runs.dtypes.get("meters"), pd.CategoricalDtype)
    level = runs["meters"] if is_swept else runs["run"] * 0
    alike = [each for _, each in runs.groupby([level, runs["pair"]], observed=True, dropna=False)]
    for metric in SIDES_OF_CPU:
        last = {each.meter for each in contradicted if each.metric == metric}
        order = sorted(METER_ORDER, key=last.__contains__)
        for of in ("_cpu", "_demand", "_request_demand"):
            name = metric.replace("_cpu", of)
            there = [meter for meter in order if f"{name}.{meter}" in runs]
            right = [f"{name}.{meter}" for meter in there if meter not in last or last >= {*there}]
            if right and alike:
                columns[name] = pd.concat([_by_one(each, right) for each in alike])
        by = meters_of(runs.assign(**columns), metric)
        orders[metric] = tuple(sorted(order, key={*order}.difference(by).__contains__))
    return runs.assign(**columns), orders


def _by_one(runs: pd.DataFrame, there: Sequence[str]) -> pd.Series[float]:
    ok = runs[(runs["status"] == "ok") & (runs["excluded"] == "")]
    return runs[max(there, key=lambda column: ok[column].notna().sum())]  # of several the first


def meters_of(runs: pd.DataFrame, name: str) -> set[str]:
    """The meters by which a bare name is in a frame of runs; none where it is no such metric."""
    known = runs[runs[name].notna()] if name in runs else runs[:0]
    by = {meter: known.get(f"{name}.{meter}") for meter in METER_ORDER if len(known)}
    return {meter for meter, of in by.items() if of is not None and of.equals(known[name])}


def meters_at(runs: pd.DataFrame, name: str) -> dict[tuple[str, str], set[str]]:
    """The same of each cell and pair."""
    if not any(f"{name}.{meter}" in runs for meter in METER_ORDER):
        return {}
    places = runs.groupby(["cell", "pair"], observed=True)
    return {(str(cell), str(pair)): meters_of(rows, name) for (cell, pair), rows in places}
