"""Which meter a bare CPU metric is by: the first of METER_ORDER that the runs do not contradict.

What the processes themselves used is exact to the nanosecond (rusage), and part of what their hosts
did. So a meter of the whole host that counts less has missed something: it is passed over, in all
cells, so that what is compared is by one meter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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


def order_of(metric: str, contradicted: Iterable[Contradiction]) -> tuple[str, ...]:
    """The meters for a CPU metric, the best first: those that its runs contradict come last."""
    last = {each.meter for each in contradicted if each.metric == metric}
    return tuple(sorted(METER_ORDER, key=last.__contains__))


def by_best_meter(runs: pd.DataFrame, orders: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """The frame of runs, its bare CPU and demand metrics by the first meter that any of a cell's
    runs has: a run of it that lacks this meter has none. `orders`: by CPU metric, the meters, the
    best first.
    """
    places = [runs["cell"], runs["pair"]]
    columns: dict[str, pd.Series[float]] = {}
    for metric, order in orders.items():
        for of in ("_cpu", "_demand", "_request_demand"):
            name = metric.replace("_cpu", of)
            there = [f"{name}.{meter}" for meter in order if f"{name}.{meter}" in runs.columns]
            for column in there:
                known = columns.get(name)
                if known is None:
                    columns[name] = runs[column]
                elif known.isna().any():
                    counted = known.notna().groupby(places, observed=True).transform("any")
                    columns[name] = known.where(counted, runs[column])
    return runs.assign(**columns)
