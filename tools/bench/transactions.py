"""Requests and connections beside loops written by hand (loops/)."""

from __future__ import annotations

from collections.abc import Iterator

from tools.bench.methods import HOW, SHARED_WARMUP_MS, SHARED_WIDE, SHARED_WINDOW_MS, Question, rows
from tools.bench.table import Part

OF_SESSIONS = (
    "Each end, of a loop too, is a session of its own. Where both are on one CPU the warm-up has"
    f" {SHARED_WARMUP_MS} ms, in which the weights of sessions settle where there are autogroups"
    f" (sched(7)), the window {SHARED_WINDOW_MS}, and the interval ±{SHARED_WIDE:.1%}."
)


def questions() -> Iterator[Question]:
    for apart in (False, True):
        yield from (Question("request", "request", size, 1, apart) for size in (1, 16 << 10))
        yield Question("requests", "requests", 1, 64, apart)
        yield Question("connect", "connect", 1, 1, apart)


def measure() -> Part:
    """A row each. Errors: ValueError, NetbenchError."""
    return Part("Requests beside loops by hand", f"{HOW} {OF_SESSIONS}", tuple(rows(questions())))
