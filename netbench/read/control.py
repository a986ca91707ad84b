"""What controls show: the ratio of a baseline to itself, measured as that of any level. It holds 1
where chance alone tells runs apart; a verdict no larger than it is in doubt.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from netbench.model import CONTROL
from netbench.read.compare import for_factor
from netbench.read.result import Result, counting
from netbench.read.verdicts import corrected
from netbench.stats.comparison import CHANGES, WITHIN_CONTROL, Comparison


def controls(result: Result, metric: str) -> list[Comparison]:
    """Each control against its baseline, one a context and pair. Its level is the baseline's word
    and `,control`; its interval is its own, and not corrected for the number of controls.
    """
    return [corrected([c], result.repeat)[0] for c in control_family(result, metric)]


def control_family(result: Result, metric: str) -> list[Comparison]:
    """As `controls`, corrected for their number: whether all of them hold 1."""
    asked, planned = result.compare, result.controls
    if asked is None or not planned or metric not in result.metrics:
        return []
    control = counting(result.control_runs)
    base = result.ok[result.ok["cell"].isin({c.cell.removesuffix(CONTROL) for c in planned})]
    levels = [asked.baseline, asked.baseline + CONTROL]
    words = [levels[0]] * len(base) + [levels[1]] * len(control)
    as_levels = {asked.factor: pd.Categorical(words, categories=levels)}
    return for_factor(
        pd.concat([base, control]).assign(**as_levels),
        asked.factor,
        asked.baseline,
        metric=metric,
        factors=result.swept,
        repeat=result.repeat,
        planned=[{**cell.factors, asked.factor: level} for cell in planned for level in levels],
        better=result.describe(metric).better,
    )


def holds(control: Comparison) -> bool:
    """Whether the interval of a control's ratio holds 1."""
    return control.low <= 1 <= control.high


def marked(family: Sequence[Comparison], beside: Sequence[Comparison]) -> list[Comparison]:
    """A family, its verdicts flagged that say of no larger a change than the control beside them
    shows: than the bound of its interval that is further from 1.
    """
    most = {_place(c): max(-math.log(c.low), math.log(c.high)) for c in beside if c.low > 0}
    return [
        c.but(flags=(*c.flags, WITHIN_CONTROL))
        if c.verdict in CHANGES and abs(math.log(c.ratio)) <= most.get(_place(c), 0.0)
        else c
        for c in family
    ]


def in_places_of(family: Sequence[Comparison], controls: Sequence[Comparison]) -> list[Comparison]:
    """The controls of the contexts and pairs that a family has."""
    places = {_place(c) for c in family}
    return [c for c in controls if _place(c) in places]


def _place(c: Comparison) -> tuple[str, ...]:
    return c.pair, *(f"{name}={level}" for name, level in c.context.items())
