"""A part of the bench that runs the engine, in a form so small that only its shape can be judged."""

from __future__ import annotations

from tools.bench import null


def test_a_part_of_two_workers_judges_each_row() -> None:
    rows = null.measure(1, 20).rows
    assert [row.holds is not None and bool(row.ours) for row in rows] == [True] * 2
