"""What a result's plan.json says of its campaign: factors, repeats, comparison, settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from netbench.analysis.boots import in_boots
from netbench.model import Compare, Repeat

Plan = Mapping[str, Any]
"""A plan.json as docs/records.md describes it."""


def factors_of(plan: Plan) -> tuple[str, ...]:
    """The factors of the plan's cells, in the order in which cells name them."""
    return tuple(dict.fromkeys(str(name) for cell in plan["cells"] for name in cell["factors"]))


def handled_by(plan: Plan) -> tuple[str, ...]:
    """What the campaign sets itself: factors, and settings that it holds."""
    return tuple(dict.fromkeys([*factors_of(plan), *plan.get("held", ())]))


def has_boots(plan: Plan, repeat: Repeat) -> bool:
    """Whether netbench boots the hosts."""
    return bool(plan.get("boots")) or in_boots(repeat, factors_of(plan))


def repeat_of(plan: Plan) -> Repeat:
    """The plan's `repeat`. Where hosts are booted `max` is `min`, since nothing stops early."""
    raw = plan["repeat"]
    repeat = Repeat(
        raw["min"],
        raw["max"],
        raw["confidence"],
        raw["precision"],
        tuple(raw["metrics"]),
        raw.get("boots", 1),
    )
    return replace(repeat, max=repeat.min) if has_boots(plan, repeat) else repeat


def compare_of(plan: Plan) -> Compare | None:
    """The plan's `compare`; None where the campaign compares nothing."""
    raw = plan.get("compare")
    return Compare(raw["factor"], raw["baseline"], raw.get("margin")) if raw else None
