"""What a result's plan.json says of its campaign: factors, repeats, comparison, settings."""

from __future__ import annotations

from dataclasses import replace

from netbench.model import Compare, Repeat
from netbench.result.files import PlanFile
from netbench.stats.by_boot import in_boots


def factors_of(plan: PlanFile) -> tuple[str, ...]:
    """The factors of the plan's cells, in the order in which cells name them."""
    return tuple(dict.fromkeys(name for cell in plan.cells for name in cell.factors))


def handled_by(plan: PlanFile) -> tuple[str, ...]:
    """What the campaign sets itself: factors, and settings that it holds."""
    return tuple(dict.fromkeys([*factors_of(plan), *plan.held]))


def has_boots(plan: PlanFile, repeat: Repeat) -> bool:
    """Whether netbench boots the hosts."""
    return bool(plan.boots) or in_boots(repeat, factors_of(plan))


def repeat_of(plan: PlanFile) -> Repeat:
    """The plan's `repeat`. Where hosts are booted `max` is `min`, since nothing stops early."""
    asked = plan.repeat
    repeat = Repeat(
        asked.min,
        asked.max,
        asked.confidence,
        asked.precision,
        asked.metrics,
        asked.boots,
        asked.until,
    )
    return replace(repeat, max=repeat.min) if has_boots(plan, repeat) else repeat


def compare_of(plan: PlanFile) -> Compare | None:
    """The plan's `compare`; None where the campaign compares nothing."""
    asked = plan.compare
    return Compare(asked.factor, asked.baseline, asked.margin, asked.control) if asked else None
