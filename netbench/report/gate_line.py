"""A gate and its outcome in words."""

from __future__ import annotations

from netbench.base.units import listed
from netbench.read.gates import Outcome
from netbench.report.numbers import share
from netbench.stats.comparison import FLAGS, RESULT, Comparison
from netbench.stats.words import bounds, change

NAMED = 8  # comparisons; the rest are counted


def where(c: Comparison, several: bool) -> str:
    """Which of a family a comparison is: `send=splice pin=apart`; several: pairs of hosts, of which
    it says its own.
    """
    words = [f"{name}={level}" for name, level in c.context.items() if level]
    return " ".join([c.pair, *words] if several else words)


def gate_line(outcome: Outcome, several: bool) -> str:
    """A gate and its outcome in words; several: there are several pairs of hosts."""
    fell, unjudged = outcome.fell, outcome.unjudged
    total = len(fell) + outcome.held + len(unjudged)
    parts = []
    if fell:
        found = listed([with_interval(c, several) for c in fell], NAMED)
        parts.append(f"FELL in {len(fell)} of {total}: {found}")
    if outcome.held:
        parts.append(f"holds in {outcome.held} of {total}")
    if unjudged:
        whys = [f"{_of(c, several)}{c.why or c.unsettled}" for c in unjudged]
        parts.append(
            f"cannot be judged{f' in {len(unjudged)} of {total}' if len(unjudged) < total else ''}:"
            f" {listed(whys, NAMED)}"
        )
    return f"{outcome.gate.text}: {'; '.join(parts) or 'cannot be judged: nothing was compared'}."


def with_interval(c: Comparison, several: bool) -> str:
    """A comparison that has one: where, the change, its interval and doubts."""
    doubts = "; ".join(FLAGS[flag] for flag in c.flags)
    return (
        f"{_of(c, several)}{change(c.ratio)}, {share(c.confidence)} interval"
        f" {bounds(c.low, c.high)}{f' ({doubts})' if doubts else ''}"
    )


def _of(c: Comparison, several: bool) -> str:
    """The level and place before what is said of it; "" where there is one thing alone."""
    level = [f"{c.factor}={c.level}"] if c.factor != RESULT else []
    words = " ".join([*level, *([where(c, several)] if where(c, several) else [])])
    return f"{words}: " if words else ""
