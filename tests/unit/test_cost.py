"""What bookkeeping costs does not grow with the campaign; the arithmetic of the bench."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import pytest

from netbench.plan.plan_json import plan_json
from tools.bench import orchestration
from tools.bench.ledger import costs, plan_of

ATTEMPTS = 3  # what shares a core slows one half of a measurement, rarely of each


@pytest.mark.parametrize("runs", [2000, pytest.param(5000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("by", ["runs", "cells"])
def test_a_run_costs_the_same_late_in_a_campaign_and_among_many_cells(
    by: str, tmp_path: Path, runs: int
) -> None:
    """1.0 where nothing grows; where every run assesses all values, 1.9 after 2,000."""

    def growth(folder: Path) -> float:
        if by == "runs":
            cost = list(costs(plan_of(2, 3000), folder, runs))
            return statistics.median(cost[-500:]) / statistics.median(cost[10:500])
        few, many = (list(costs(plan_of(n, 400), folder / str(n), runs // 2)) for n in (10, 1000))
        return statistics.median(many[-500:]) / statistics.median(few[-500:])

    assert any(growth(tmp_path / str(n)) < 1.5 for n in range(ATTEMPTS))


def test_a_plan_does_not_grow_with_the_number_of_runs() -> None:
    short, long = plan_json(plan_of(1000, 3)), plan_json(plan_of(1000, 100_000, 100_000))
    assert short["order"] == long["order"]
    assert len(long["order"]) == 1000  # type: ignore[arg-type]
    assert long["runs_total"] == 100_000_000


# The bench's arithmetic: gaps between runs by hand


def record(run: int, opened: int, closed: int, status: str = "ok") -> dict[str, Any]:
    told = {"run": run, "status": status, "reason": "" if status == "ok" else "no"}
    return told | {"sender": {"time_ns": [opened, closed]}}


def test_overhead_is_from_a_window_s_closing_to_the_next_one_s_opening_less_the_warm_up() -> None:
    windows = [(0, 50_000_000), (68_000_000, 118_500_000), (135_500_000, 185_500_000)]
    records = [record(number, *window) for number, window in enumerate(windows, 1)]
    assert orchestration.overheads(records, 10_000_000) == [8.0, 7.0]
    with pytest.raises(RuntimeError, match="run 2 is failed: no"):
        orchestration.overheads([records[0], record(2, 2, 3, "failed")], 0)


def test_what_a_loop_costs_is_less_than_the_longer_side_measured() -> None:
    sides = ('"seconds":\t1.000000,\n"seconds":\t1.250000', '"seconds":\t1.0,\n"seconds":\t1.0')
    printed = f"at 10.0\n{sides[0]}\nat 11.5\n{sides[1]}\nat 12.6\n"
    assert orchestration.beside(printed) == pytest.approx([250.0, 100.0])


def toggled(run: int, level: str, opened: int, read: str = "") -> dict[str, Any]:
    told = {"tso": {"asked": level, "read": read or level}}
    more = {
        "factors": {"tso": level},
        "settings": {"sender": told, "receiver": {"tso": {"asked": level, "read": level}}},
    }
    return record(run, opened * 1_000_000, (opened + 50) * 1_000_000) | more


def test_only_gaps_between_different_levels_are_toggled() -> None:
    levels = [("on", 0), ("off", 90), ("off", 170), ("on", 265)]
    records = [toggled(number, *level) for number, level in enumerate(levels, 1)]
    assert orchestration.toggles(records) == [30.0, 35.0]
    with pytest.raises(RuntimeError, match="run 2 does not show tso: off on both hosts"):
        orchestration.toggles([toggled(1, "on", 0), toggled(2, "off", 90, read="on")])
