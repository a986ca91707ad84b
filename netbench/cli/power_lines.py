"""What a campaign can show by an earlier result, in words and for programs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from netbench.base.units import count

if TYPE_CHECKING:
    from netbench.read.outlook import MetricPower, Outlook


def lines(outlook: Outlook, result: Path) -> Iterator[str]:
    """An outlook in lines of any length."""
    from netbench.stats.power import POWER

    yield f"what this can show in {POWER:.0%} of the cases, were its runs as those of {result}:"
    for one in outlook.metrics:
        yield from _metric(one)
    if not outlook.metrics:
        yield "  nothing is known: no metric of repeat.metrics has runs of matching cells there"
    yield from (f"  note: {note}" for note in outlook.notes)


def _metric(one: MetricPower) -> Iterator[str]:
    many = f", which varies most of {one.family}" if one.family > 1 else ""
    how = "differences" if one.paired else "differences of two such cells"
    yield f"{one.metric}: {one.of}{many}"
    yield (
        f"  {how} of a {one.unit} vary by {one.sd:.2%} (standard deviation; by"
        f" {count(one.freedom, 'degree')} of freedom it may be {one.sd_at_most:.2%}); intervals of"
        f" {one.confidence * 100:.4g}%"
    )
    shown = [f"{_share(d)} with {count(n, one.unit)}" for n, d in one.smallest.items()]
    yield f"  smallest difference: {', '.join(shown)}"
    needed = [f"{d:.0%} takes {_many(n, one.unit)}" for d, n in one.needed.items()]
    yield f"  {', '.join(needed)}"
    if not math.isnan(one.between):
        builds = "" if math.isnan(one.apart) else f"builds differ by {one.apart:.2%}, "
        yield f"  {builds}boots differ by {one.between:.2%}, blocks within one by {one.within:.2%}"


def _share(difference: float) -> str:
    return "none" if math.isnan(difference) else f"{difference:.2%}"


def _many(n: int | None, unit: str) -> str:
    return count(n, unit) if n else f"more {unit}s than can be run"


def to_json(outlook: Outlook, result: Path) -> Mapping[str, object]:
    """An outlook as an object; what there is none of is null."""
    from netbench.stats.power import POWER

    return {
        "result": str(result),
        "power": POWER,
        "metrics": [_object(one) for one in outlook.metrics],
        "notes": list(outlook.notes),
    }


def _object(one: MetricPower) -> Mapping[str, object]:
    from dataclasses import asdict

    plain = {key: _plain(value) for key, value in asdict(one).items()}
    plain["smallest"] = [{"n": n, "difference": _plain(d)} for n, d in one.smallest.items()]
    plain["needed"] = [{"difference": d, "n": n} for d, n in one.needed.items()]
    return plain


def _plain(value: object) -> object:
    return None if isinstance(value, float) and math.isnan(value) else value
