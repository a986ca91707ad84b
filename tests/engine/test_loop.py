"""The shared loop, measured with the method that moves nothing: what every other method's numbers
include.
"""

from __future__ import annotations

from netbench.engine.binding import Edge
from tests.support.engine_pair import MS, Side, open_pair

BUDGET_NS = 20  # a step; named by the specification
ATTEMPTS = 8


def step_ns(side: Side) -> float:
    """CPU time of the worker per step in the window; it holds the whole process, so the flow's
    share is at most this.
    """
    steps = side.moved("flow", "steps")
    if steps < 1000:
        return float("inf")  # it had no CPU
    return min(side.moved("rusage", "cpu_ns"), side.ns(Edge.CLOSE) - side.ns(Edge.OPEN)) / steps


def test_a_step_of_the_loop_costs_next_to_nothing() -> None:
    best = [float("inf"), float("inf")]
    with open_pair() as pair:
        for _ in range(ATTEMPTS):  # other work on this machine can only make it look slower
            sides = pair.run("null", "null", duration=50 * MS, warmup=20 * MS)
            best = [min(b, step_ns(side)) for b, side in zip(best, sides, strict=True)]
            if max(best) <= BUDGET_NS:
                break
    for side in sides:
        assert side.numbers("flow", "bytes", Edge.CLOSE) == []
        assert side.moved("tcp", "segments_out") == 0
    assert max(best) <= BUDGET_NS, f"sender {best[0]:.1f} ns, receiver {best[1]:.1f} ns a step"
