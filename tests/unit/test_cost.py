"""What bookkeeping costs does not grow with the campaign."""

from __future__ import annotations

import statistics
from pathlib import Path

from tools.bench.ledger import costs, plan_of


def test_a_run_costs_the_same_late_in_a_campaign(tmp_path: Path) -> None:
    cost = list(costs(plan_of(2, 3000), tmp_path, 4000))
    early, late = statistics.median(cost[10:500]), statistics.median(cost[-500:])
    assert late < 1.5 * early  # 1.0 where nothing grows, 3 where every run assesses all values


def test_a_run_costs_the_same_among_many_cells(tmp_path: Path) -> None:
    few, many = (list(costs(plan_of(n, 400), tmp_path, 2500)) for n in (10, 2000))
    assert statistics.median(many[-500:]) < 1.5 * statistics.median(few[-500:])


def test_a_plan_does_not_grow_with_the_number_of_runs() -> None:
    short, long = plan_of(1000, 3).to_json(), plan_of(1000, 100_000, 100_000).to_json()
    assert short["order"] == long["order"]
    assert len(long["order"]) == 1000  # type: ignore[arg-type]
    assert long["runs_total"] == 100_000_000
