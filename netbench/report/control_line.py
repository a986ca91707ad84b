"""A control in words: `control: baseline against itself +0.1%, -0.6 to +0.8%`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from netbench.read.control import holds
from netbench.report.gate_line import where
from netbench.stats.comparison import Comparison
from netbench.stats.words import signed

EACH = 4  # controls of a metric that are told one by one


def control_lines(what: str, controls: Sequence[Comparison], several: bool) -> Iterator[str]:
    """The controls of the metric that `what` names in sentences; several: pairs of hosts."""
    known = [c for c in controls if not math.isnan(c.low)]
    if len(controls) <= EACH or not known:
        for c in controls:
            place = where(c, several)
            yield f"{what}{f', {place}' if place else ''}, control: {_told(c)}."
        return
    low, high = min(c.low for c in known), max(c.high for c in known)
    ratios = sorted(c.ratio for c in known)
    differ = sum(not holds(c) for c in known)
    yield (
        f"{what}, {len(controls)} controls: baselines against themselves"
        f" {signed(ratios[0])} to {signed(ratios[-1])}%, intervals {signed(low)} to"
        f" {signed(high)}%" + (f"; {differ} of them differ from themselves." if differ else ".")
    )


def _told(c: Comparison) -> str:
    """A control's change and interval."""
    if math.isnan(c.ratio):
        return f"no comparison, {c.why}"
    if math.isnan(c.low):
        return f"baseline against itself {signed(c.ratio)}%, but {c.why}"
    change, low, high = (signed(ratio) for ratio in (c.ratio, c.low, c.high))
    told = f"baseline against itself {change}%, {low} to {high}%"
    return told if holds(c) else f"{told}: it differs from itself"
