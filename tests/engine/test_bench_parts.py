"""The bench's parts that run the engine, in a form so small that only their shape can be judged."""

from __future__ import annotations

import pytest

from tools.bench import many_streams, null, shared_threads, uring, wait
from tools.bench.table import Part


def judged(part: Part) -> list[bool]:
    """Whether each row that has a budget was measured and judged."""
    return [row.holds is not None and bool(row.ours) for row in part.rows if row.budget]


def test_parts_of_two_workers_judge_each_row() -> None:
    assert judged(null.measure(1, 20)) == [True] * 2
    assert judged(many_streams.measure(4, 1)) == [True] * len(many_streams.WAYS)


@pytest.mark.slow
def test_parts_of_campaigns_judge_each_row() -> None:
    assert judged(shared_threads.measure(2, "20ms")) == [True] * 6
    assert judged(uring.measure(2, 2, "20ms")) == [True]
    assert [row.budget for row in wait.measure(2, "20ms").rows] == [""] * 4
