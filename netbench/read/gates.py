"""Gates: `throughput<-2%` falls where the whole interval of a change lies past it. What has no
interval, or no ground for a verdict, as few runs have none, cannot be judged; nor can what does not
stand with the runs that failed, and two results without earlier ones, unless that is forced.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from netbench.read.metrics import METRICS
from netbench.stats.comparison import Comparison, undone_by_failures

_GATE = re.compile(
    r"\s*([a-z_][a-z0-9_]*(?:\.[a-z0-9_]+)?)\s*([<>])\s*([+-]?)\s*(\d+(?:\.\d*)?|\.\d+)\s*(%?)\s*\Z"
)
_EXAMPLE = "such as throughput<-2% or sender_demand>5%"


class Gate(NamedTuple):
    """Falls where a change of `metric` (a fraction) is wholly `below` or above `limit`."""

    text: str
    metric: str
    below: bool
    limit: float

    def falls(self, c: Comparison) -> bool:
        """Whether the whole interval of a comparison lies past the gate; it must have one."""
        return c.high - 1 < self.limit if self.below else c.low - 1 > self.limit

    def clears(self, c: Comparison) -> bool:
        """Whether no part of the interval lies past the gate: it does not only fail to fall."""
        return c.low - 1 >= self.limit if self.below else c.high - 1 <= self.limit

    def stands(self, c: Comparison) -> bool:
        """Whether what it finds of a comparison stands with the runs that failed, too."""
        if c.stands_at is None:
            return True
        falls, end, side = self.falls(c), 1 + self.limit, 1 if self.below else -1
        if falls or self.clears(c):
            return c.stands_at(end, falls != self.below, side)
        return not c.stands_at(end, not self.below, side)  # that would fall


class Outcome(NamedTuple):
    """What a gate says of the comparisons of its metric: where it `fell`, how many `held`, of these
    how many `cleared` it with their whole interval, and which cannot be judged.
    """

    gate: Gate
    fell: tuple[Comparison, ...]
    held: int
    unjudged: tuple[Comparison, ...]
    cleared: int = 0

    @property
    def passed(self) -> bool:
        """Whether all comparisons, of which there is one, cleared the gate."""
        return (
            self.cleared > 0 and not self.fell and not self.unjudged and self.cleared == self.held
        )


def parse(text: str, captured: Collection[str] = ()) -> Gate:
    """METRIC, < or >, and a change, in percent or not. Errors: ValueError."""
    match = _GATE.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a gate; write METRIC, < or >, and a change, {_EXAMPLE}")
    metric, side, sign, number, percent = match.groups()
    known_metric(metric, captured)
    limit = float(sign + number) / (100 if percent else 1)
    if not math.isfinite(limit) or limit <= -1:
        raise ValueError(
            f"{text!r}: a metric cannot fall by {abs(limit):.0%}; write a change above -100%,"
            f" {_EXAMPLE}"
        )
    return Gate(text, metric, side == "<", limit)


def known_metric(name: str, captured: Collection[str] = ()) -> str:
    """The name of a metric of records or in `captured`. Errors: ValueError with the nearest."""
    bare, dot, _ = name.partition(".")
    if name in {*captured, *METRICS} or (
        bare in METRICS and (not dot or bare.endswith(("_cpu", "_demand")))
    ):
        return name
    near = [bare] if bare in METRICS else get_close_matches(bare, METRICS, 1)
    if not near:
        raise ValueError(f"no metric {name!r}; there are {', '.join(METRICS)}")
    raise ValueError(f"no metric {name!r}; did you mean {near[0]}?")


def judge(
    gate: Gate, families: Mapping[str, Sequence[Comparison]], forced: bool = False
) -> Outcome:
    """What a gate says of its metric's comparisons; forced: also of two results alone."""

    known, unjudged = [], []
    for c in families.get(gate.metric, ()):
        if c.refused or math.isnan(c.low) or (c.lacks_history and not forced):
            unjudged.append(c)
        elif gate.stands(c):
            known.append(c)
        else:
            unjudged.append(c.but(unsettled=undone_by_failures(c)))
    fell = tuple(filter(gate.falls, known))
    cleared = sum(map(gate.clears, known))
    return Outcome(gate, fell, len(known) - len(fell), tuple(unjudged), cleared)
