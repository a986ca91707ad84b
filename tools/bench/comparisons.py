"""What a campaign compares, as rows of the bench."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import netbench
from tools.bench.table import Row

Levels = Mapping[str, str]  # of the factors of a comparison
Naming = Callable[[Levels], str]


@dataclass(frozen=True)
class Budget:
    """What a ratio and its interval (low, high) must be."""

    text: str
    holds: Callable[[float, float, float], bool]


def low_at_least(least: float) -> Budget:
    return Budget(f"lower bound at least {least:g}", lambda ratio, low, high: low >= least)


def rows(
    results: netbench.Results,
    factor: str,
    baseline: str,
    metric: str,
    what: Naming,
    budget: Budget | None = None,
) -> tuple[Row, ...]:
    """A row for each comparison of a level with the baseline, all other factors equal; `what` says
    what it is, from its levels.
    """
    cells = results.cells[results.cells["metric"] == metric].astype(str).to_dict("records")

    def shown(levels: Levels) -> str:
        mean = next(c["mean"] for c in cells if levels.items() <= c.items())
        return f"{float(mean):.4g} {results.units[metric]}"

    made = []
    for found in results.compare(factor, baseline, metric).to_dict("records"):
        if not found["n"]:
            continue  # the baseline has no such cell
        context = {name: str(found[name]) for name in results.factors if name in found}
        ours = context | {factor: str(found["level"])}
        ratio, low, high = (float(found[key]) for key in ("ratio", "low", "high"))
        made.append(
            Row(
                what(ours),
                shown(ours),
                f"{factor} {baseline}: {shown(context | {factor: baseline})}",
                f"{ratio:.3f} ({low:.3f} to {high:.3f}), n = {found['n']}",
                budget.text if budget else "",
                budget.holds(ratio, low, high) if budget else None,
            )
        )
    return tuple(made)
