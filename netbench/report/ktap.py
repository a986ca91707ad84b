"""A comparison as KTAP (the kernel's Documentation/dev-tools/ktap.rst), as continuous integration
reads it: a test a metric, in it one for each comparison.
"""

from __future__ import annotations

from netbench.report.build import Report
from netbench.report.junit import FAIL, PASS, SKIP, outcomes

VERSION = "KTAP version 1"
INDENT = "    "


def render(report: Report) -> str:
    """The lines. Errors: ReportError where the campaign compares nothing."""
    by_metric = outcomes(report.source)
    lines = [VERSION, f"1..{len(by_metric)}"]
    for number, (metric, of_metric) in enumerate(by_metric.items(), 1):
        subtests = [VERSION, f"# Subtest: {metric}", f"1..{len(of_metric)}"]
        for at, outcome in enumerate(of_metric, 1):
            result = _result(at, outcome.name, outcome.state, outcome.why)
            subtests += [f"# {outcome.told}", result]
        # A metric fails with one of its comparisons, and is skipped with all of them.
        states = {outcome.state for outcome in of_metric}
        together = FAIL if FAIL in states else SKIP if states == {SKIP} else PASS
        lines += [*(f"{INDENT}{line}" for line in subtests), _result(number, metric, together)]
    return "\n".join(lines)


def _result(number: int, name: str, state: str, why: str = "") -> str:
    directive = f" # SKIP {why}".rstrip() if state == SKIP else ""
    return f"{'not ok' if state == FAIL else 'ok'} {number} {name.replace('#', '')}{directive}"
