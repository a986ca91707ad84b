"""Comparisons as KTAP and JUnit: what passes, fails and is skipped, by the kernel's parser."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as xml

import pytest

from netbench.cli.report import render
from netbench.report import junit, ktap
from netbench.report.build import Report, build
from netbench.stats.comparison import NO_VERDICT
from tests.support.local import call, ran
from tests.support.outside import apt_get
from tests.support.synthetic import Synth

LEVELS = ("readwrite", "sendfile", "slower", "same")
TRUTH = {"readwrite": 18.0, "sendfile": 33.0, "slower": 9.0, "same": 18.0}
SKIPPED = ("inconclusive", NO_VERDICT)
STATES = {"better": "ok", "worse": "not ok", "equivalent": "ok"} | dict.fromkeys(
    SKIPPED, "ok # SKIP"
)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A level of each verdict but equivalent."""
    made = Synth(
        factors={"send": LEVELS},
        compare={"factor": "send", "baseline": "readwrite"},
        truth=lambda factors: (TRUTH[factors["send"]], 0.5, 0.5),
    )
    return build(made.write(tmp_path_factory.mktemp("r") / "r"))


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Three runs of levels far apart."""
    made = Synth(
        factors={"send": LEVELS[:2]},
        runs=3,
        compare={"factor": "send", "baseline": "readwrite"},
        truth=lambda factors: (TRUTH[factors["send"]], 0.5, 0.5),
    )
    return build(made.write(tmp_path_factory.mktemp("few") / "r"))


def test_each_comparison_is_a_subtest(report: Report) -> None:
    lines, families = ktap.render(report).splitlines(), report.source.comparisons
    assert lines[:2] == ["KTAP version 1", f"1..{len(families)}"]
    subtests = [line.strip() for line in lines if re.match(r"    (not )?ok ", line)]
    found = [re.sub(r" \d+ .*?( # SKIP|$).*", r"\1", s) for s in subtests]
    wanted = [STATES[c.verdict] for family in families.values() for c in family]
    assert found == wanted
    assert {"ok", "not ok", "ok # SKIP"} == set(found)
    for line in lines:
        if match := re.match(r"(not ok|ok) \d+ (\S+)$", line):
            assert (match[1] == "not ok") == any(c.verdict == "worse" for c in families[match[2]])
    for c in (c for family in families.values() for c in family):
        assert any(c.sentence in line for line in lines)


@pytest.mark.parametrize(
    "kind", ["first", "text", "markdown", "letter", "json", "junit", "ktap", "html"]
)
def test_few_runs_have_a_verdict_in_no_form(few: Report, kind: str) -> None:
    told = render(few, kind)
    assert "few runs" in " ".join(told.split())
    assert re.search("inconclusive|SKIP|skipped", told)
    told = re.sub(r"(?s)<style.*?</style>|is better|\"better\":", "", told)
    assert re.findall("better|not ok|<failure", told) == []


def test_junit_says_the_same(report: Report) -> None:
    root = xml.fromstring(junit.render(report))
    assert [suite.get("name") for suite in root] == list(report.source.comparisons)
    for suite in root:
        tally = Counter(c.verdict for c in report.source.comparisons[str(suite.get("name"))])
        told = [int(str(suite.get(key))) for key in ("tests", "failures", "skipped")]
        assert told == [len(suite), tally["worse"], sum(tally[v] for v in SKIPPED)]
        assert next(case.get("name") for case in suite) == "send=sendfile against readwrite"


def test_the_command_line_prints_and_writes_them(report: Report, tmp_path: Path) -> None:
    file = tmp_path / "junit.xml"
    done = call("report", report.source.result.path, "--ktap", "--junit", file)
    assert (done.returncode, done.stdout) == (0, ktap.render(report) + "\n")
    assert file.read_text() == junit.render(report)
    both = call("report", report.source.result.path, "--ktap", "--letter")
    assert both.returncode == 2
    assert "--letter and --ktap are forms of one report" in both.stderr


@pytest.mark.slow
def test_the_kernels_parser_reads_it(report: Report, tmp_path: Path) -> None:
    """kunit.py of Debian's linux-source-6.1 (130 MB)."""
    if why := apt_get("download", "linux-source-6.1", folder=tmp_path):
        pytest.skip(f"needs Debian's linux-source-6.1: {why}")
    (package,) = tmp_path.glob("*.deb")
    script = (
        "dpkg-deb --fsys-tarfile $0 | tar -xO ./usr/src/linux-source-6.1.tar.xz"
        " | tar -xJ --wildcards 'linux-source-6.1/tools/testing/kunit/*'"
    )
    subprocess.run(["sh", "-ec", script, package], cwd=tmp_path, check=True)
    program = tmp_path / "linux-source-6.1" / "tools" / "testing" / "kunit" / "kunit.py"
    done = ran([sys.executable, str(program), "parse"], input=ktap.render(report) + "\n")
    tally = Counter(c.verdict for family in report.source.comparisons.values() for c in family)
    said = done.stdout
    assert f"failed: {tally['worse']}" in said
    assert f"skipped: {sum(tally[v] for v in SKIPPED)}" in said
    assert "error" not in said.lower()
