"""A comparison as JUnit's XML: a suite a metric, a case a comparison."""

from __future__ import annotations

from typing import NamedTuple
from xml.etree import ElementTree as xml

from netbench.base.control_characters import escape_controls
from netbench.read.shown_levels import shown
from netbench.report.build import Report
from netbench.report.letter import compared
from netbench.report.phrases import sentence, where
from netbench.report.source import Source
from netbench.stats.comparison import SURE

PASS, FAIL, SKIP = "pass", "fail", "skip"


class Outcome(NamedTuple):
    """`state`: of PASS, FAIL and SKIP; `why` it is skipped; `told`: the comparison in words."""

    name: str
    state: str
    why: str
    told: str


def outcomes(source: Source) -> dict[str, list[Outcome]]:
    """Of each comparison by metric, in the order of the report. Errors: as letter.compared."""
    by_metric: dict[str, list[Outcome]] = {}
    for c in compared(source):
        place = where(c, source.several)
        name = f"{c.factor}={shown(c.level)} against {shown(c.baseline)}"
        state = FAIL if c.verdict == "worse" else PASS if c.verdict in SURE else SKIP
        why = (c.why or c.unsettled or "inconclusive") if state == SKIP else ""
        name, message = one_line(f"{name} {place}"), one_line(sentence(c, source.result))
        outcome = Outcome(name, state, one_line(why), message)
        by_metric.setdefault(one_line(c.metric), []).append(outcome)
    return by_metric


def render(report: Report) -> str:
    """The document. Errors: ReportError where the campaign compares nothing."""
    root = xml.Element("testsuites", name=report.name)
    for metric, of_metric in outcomes(report.source).items():
        states = [outcome.state for outcome in of_metric]
        counts = {"tests": len(of_metric), "failures": states.count(FAIL), "errors": 0}
        counts["skipped"] = states.count(SKIP)
        attributes = {"name": metric, **{name: str(n) for name, n in counts.items()}}
        suite = xml.SubElement(root, "testsuite", attributes)
        for outcome in of_metric:
            named = {"classname": f"{report.name}.{metric}", "name": outcome.name}
            case = xml.SubElement(suite, "testcase", named)
            if outcome.state == FAIL:
                worse = xml.SubElement(case, "failure", type="worse", message=outcome.told)
                worse.text = outcome.told
            elif outcome.state == SKIP:
                xml.SubElement(case, "skipped", message=outcome.why)
            xml.SubElement(case, "system-out").text = outcome.told
    xml.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{xml.tostring(root, encoding="unicode")}\n'


def one_line(text: str) -> str:
    """Words from outside on one line."""
    return " ".join(escape_controls(text).split())
