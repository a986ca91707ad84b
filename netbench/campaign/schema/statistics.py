"""Keys that say how often runs are repeated, in which order, and what is compared."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Annotated

from pydantic_core import PydanticCustomError

from netbench.base.names import METRIC as METRIC_NAME
from netbench.base.names import METRICS
from netbench.campaign.messages import expected, listed, nearest
from netbench.campaign.schema import kinds, transfer_values
from netbench.campaign.schema.keys import Keys, optional, required
from netbench.campaign.schema.kinds import Kind
from netbench.campaign.tree import Plain
from netbench.model import Repeat
from netbench.plan.rounds import OVERLAPS

FOOTPRINT_MAX = 1 << 26


def why_no_metric(value: str, captured: Collection[str]) -> PydanticCustomError | None:
    """What is wrong with a name of a metric; `captured`: those that the campaign's tools print."""
    name, dot, meter = value.partition(".")
    if (name in METRICS and (not dot or (meter and name != "throughput"))) or value in captured:
        return None
    known = [*METRICS, *captured]
    what = f"a metric that can close cells ({listed(known)}; CPU metrics also as NAME.METER)"
    return expected(what, value, nearest(value, known))


def _metric(value: Plain) -> str:
    """A metric of netbench's own, or what may be the name of one that a tool prints."""
    if isinstance(value, str) and re.fullmatch(METRIC_NAME, value):
        return value
    error = why_no_metric(value, ()) if isinstance(value, str) else expected("a metric", value)
    if error:
        raise error
    return str(value)


_RUNS = kinds.number("a number of runs", 1, 100_000)
_CONFIDENCE = kinds.share(
    "a confidence from 80% to 99.9% (the range that intervals are calibrated for),",
    "95%",
    0.8,
    0.99901,
)
_PRECISION = kinds.share("a precision above 0% and below 100%,", "2.5%", 0, 1)
_MARGIN = kinds.share("a margin above 0% and below 100%,", "1%", 0, 1)
_UNTIL = kinds.choice("what ends the runs", ("precision", "verdict"))
OVERLAPPING = kinds.choice("an overlap", OVERLAPS)
_PROFILED = kinds.choice("cells to profile", ("changed", "all"))
_METRIC = Kind(
    _metric, {"type": "string", "pattern": f"^({METRIC_NAME}|({'|'.join(METRICS)})[.].+)$"}
)
_METRICS = kinds.list_of("a list of metrics such as [throughput]")


class RepeatKeys(Keys):
    """When a cell closes."""

    min: Annotated[int | None, _RUNS] = optional(
        "fewest runs of a cell", 5, shown=str(Repeat().min)
    )
    max: Annotated[int | None, _RUNS] = optional("most runs of a cell", 50, shown=str(Repeat().max))
    confidence: Annotated[float, _CONFIDENCE] = optional(
        "confidence of every interval", "99%", default="95%"
    )
    precision: Annotated[float, _PRECISION] = optional(
        "half-width of the interval over the mean at which a cell closes", "1%", default="2.5%"
    )
    metrics: Annotated[list[Annotated[str, _METRIC]], _METRICS] = optional(
        "the metrics that must be that precise",
        ["throughput", "sender_cpu"],
        default=["throughput"],
    )
    boots: Annotated[int, kinds.number("a number of boots", 1, 1000)] = optional(
        "how often each host is booted on each kernel", 4, default="1"
    )
    until: Annotated[str, _UNTIL] = optional(
        "what ends the runs of a comparison: precision, its interval is as narrow as asked;"
        " verdict, it is better, worse or equivalent, by an interval that holds however often it"
        " is looked at",
        "verdict",
        default="precision",
    )


class OrderKeys(Keys):
    """The order of runs: the same seed gives the same order."""

    seed: Annotated[int, kinds.number("a seed")] = optional("a whole number", 7, default="1")


class SoakKeys(Keys):
    """What the soakers of the meter soak do."""

    footprint: Annotated[int, kinds.size(0, FOOTPRINT_MAX)] = optional(
        "bytes that each CPU's soaker goes round through, 1 KiB a quantum; 0: registers only, so"
        " that it feels no cache misses",
        "64K",
        default="0",
    )


class ProfileKeys(Keys):
    """Which cells are profiled after all measured runs, and for how long."""

    cells: Annotated[str, _PROFILED] = optional(
        "changed: those that are better or worse than the baseline, and their baselines; or all",
        "all",
        default="changed",
    )
    seconds: Annotated[int, transfer_values.SECONDS] = optional(
        "length of a profile run", 10, default="5s"
    )
    frequency: Annotated[int, kinds.number("a number of samples a second", 1, 20_000)] = optional(
        "samples a second of each CPU; one that is no divisor of a timer's does not run in step"
        " with it",
        499,
        default="997",
    )
    runs: Annotated[int, kinds.number("a number of profile runs", 1, 100)] = optional(
        "profile runs of a cell; intervals of what symbols cost come from how far these lie apart",
        5,
        default="3",
    )


class CompareKeys(Keys):
    """Which levels are compared."""

    factor: Annotated[str, kinds.text("a swept key")] = required("a key of sweep", "send")
    baseline: Annotated[str | None, kinds.level()] = optional(
        "the level that the others are compared with; left out: the first one", "write"
    )
    margin: Annotated[float | None, _MARGIN] = optional(
        "a difference within it does not matter; left out: no level is called equivalent", "1%"
    )
    control: Annotated[bool | None, kinds.switch()] = optional(
        "the baseline runs a second time, as a control whose ratio to it must hold 1; left out: on"
        " where its runs are less than a quarter of all, as with four levels or more",
        "on",
    )
