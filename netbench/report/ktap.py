"""A comparison as KTAP (the kernel's Documentation/dev-tools/ktap.rst), as continuous integration
reads it: a test a metric, in it one for each comparison.
"""

from __future__ import annotations

from collections.abc import Iterator

from netbench.report.build import Report
from netbench.report.junit import FAIL, SKIP, Outcome, outcomes

VERSION = "KTAP version 1"
INDENT = "    "


def render(report: Report) -> str:
    """The lines. Errors: ReportError where the campaign compares nothing."""
    by_metric = outcomes(report.source)
    lines = [VERSION, f"1..{len(by_metric)}"]
    for number, (metric, mine) in enumerate(by_metric.items(), 1):
        lines += [f"{INDENT}{line}" for line in _subtests(metric, mine)]
        lines.append(_result(number, metric, _together(mine)))
    return "\n".join(lines)


def _subtests(metric: str, mine: list[Outcome]) -> Iterator[str]:
    yield VERSION
    yield f"# Subtest: {metric}"
    yield f"1..{len(mine)}"
    for number, outcome in enumerate(mine, 1):
        yield f"# {outcome.told}"
        yield f"# time={outcome.seconds * 1000:.0f}ms"
        yield _result(number, outcome.name, outcome.state, outcome.why)


def _together(mine: list[Outcome]) -> str:
    """A metric fails with one of its comparisons, and is skipped with all of them."""
    states = {outcome.state for outcome in mine}
    return FAIL if FAIL in states else SKIP if states == {SKIP} else ""


def _result(number: int, name: str, state: str, why: str = "") -> str:
    directive = f" # SKIP {why}".rstrip() if state == SKIP else ""
    return f"{'not ok' if state == FAIL else 'ok'} {number} {name.replace('#', '')}{directive}"
