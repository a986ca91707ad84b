"""Samples that a worker hands over while its window is open."""

from __future__ import annotations

from collections.abc import Sequence

from netbench.engine.binding import Edge, Vector
from tests.support.engine_pair import MS, PATIENCE, Pair


def run(pair: Pair, report: int) -> tuple[int, int, int]:
    """How often samples arrived before the window closed, how many in all, and how many the result
    has.
    """
    seen: list[Sequence[Vector]] = []
    pair.sender.sampled = seen.append
    pair.prepare("write", "read", duration=300 * MS, sample=10 * MS, report=report)
    pair.start(bounded=False)
    pair.sender.await_edge(Edge.CLOSE, PATIENCE)
    early = len(seen)
    pair.receiver.await_edge(Edge.CLOSE, PATIENCE)
    for worker in (pair.sender, pair.receiver):
        worker.stop()
    sent, _ = pair.sender.result(PATIENCE), pair.receiver.result(PATIENCE)
    return early, sum(map(len, seen)), len(sent.samples)


def test_samples_are_handed_over_while_the_window_is_open(pair: Pair) -> None:
    early, arrived, kept = run(pair, report=50 * MS)
    assert early > 1
    assert arrived == kept  # each of them once, and in the result as ever


def test_without_being_asked_for_they_come_after_it(pair: Pair) -> None:
    early, arrived, kept = run(pair, report=0)
    assert early == 0
    assert arrived == kept > 0
