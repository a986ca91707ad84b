"""A comparison as JUnit's XML: a suite a metric, a case a comparison."""

from __future__ import annotations

from xml.etree import ElementTree as xml

from netbench.report.build import Report
from netbench.report.outcomes import FAIL, SKIP, Outcome, outcomes


def render(report: Report) -> str:
    """The document. Errors: ReportError where the campaign compares nothing."""
    root = xml.Element("testsuites", name=report.name)
    by_metric: dict[str, list[Outcome]] = {}
    for outcome in outcomes(report.source):
        by_metric.setdefault(outcome.metric, []).append(outcome)
    for metric, mine in by_metric.items():
        suite = xml.SubElement(root, "testsuite", {"name": metric, **_counts(mine)})
        for outcome in mine:
            _case(suite, report.name, outcome)
    xml.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{xml.tostring(root, encoding="unicode")}\n'


def _counts(mine: list[Outcome]) -> dict[str, str]:
    return {
        "tests": str(len(mine)),
        "failures": str(sum(outcome.state == FAIL for outcome in mine)),
        "errors": "0",
        "skipped": str(sum(outcome.state == SKIP for outcome in mine)),
        "time": f"{sum(outcome.seconds for outcome in mine):.3f}",
    }


def _case(suite: xml.Element, campaign: str, outcome: Outcome) -> None:
    case = xml.SubElement(
        suite,
        "testcase",
        classname=f"{campaign}.{outcome.metric}",
        name=outcome.name,
        time=f"{outcome.seconds:.3f}",
    )
    if outcome.state == FAIL:
        xml.SubElement(case, "failure", type="worse", message=outcome.told).text = outcome.told
    elif outcome.state == SKIP:
        xml.SubElement(case, "skipped", message=outcome.why)
    xml.SubElement(case, "system-out").text = outcome.told
