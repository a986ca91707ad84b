"""What bookkeeping costs does not grow with the campaign."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from netbench.plan.plan_json import plan_json
from tools.bench.ledger import costs, plan_of

ATTEMPTS = 3  # what shares a core slows one half of a measurement, rarely of each


def _growth_by_runs(folder: Path, runs: int) -> float:
    cost = list(costs(plan_of(2, 3000), folder, runs))
    return statistics.median(cost[-500:]) / statistics.median(cost[10:500])


def _growth_by_cells(folder: Path, runs: int) -> float:
    few, many = (list(costs(plan_of(n, 400), folder / str(n), runs // 2)) for n in (10, 1000))
    return statistics.median(many[-500:]) / statistics.median(few[-500:])


@pytest.mark.parametrize("runs", [2000, pytest.param(5000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("growth", [_growth_by_runs, _growth_by_cells])
def test_a_run_costs_the_same_late_in_a_campaign_and_among_many_cells(
    growth: Callable[[Path, int], float], tmp_path: Path, runs: int
) -> None:
    """1.0 where nothing grows; where every run assesses all values, 1.9 after 2,000."""
    assert any(growth(tmp_path / str(n), runs) < 1.5 for n in range(ATTEMPTS))


def test_many_levels_cost_what_they_are() -> None:
    """Each is compared with all others, by its value."""

    def seconds(cells: int) -> float:
        begun = time.process_time()
        plan_of(cells, 3)
        return time.process_time() - begun

    few, many = (min(seconds(n) for _ in range(3)) for n in (1000, 4000))
    assert many < 8 * few  # 4 where each costs the same, 16 where each is compared with each


def test_a_plan_does_not_grow_with_the_number_of_runs() -> None:
    short, long = plan_json(plan_of(1000, 3)), plan_json(plan_of(1000, 100_000, 100_000))
    assert short["order"] == long["order"]
    assert len(long["order"]) == 1000  # type: ignore[arg-type]
    assert long["runs_total"] == 100_000_000
