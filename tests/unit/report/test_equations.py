"""Every printed equation holds, within the rounding of its numbers, in all sections."""

from __future__ import annotations

import html as markup
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from netbench.base.errors import ReportError
from netbench.report import html, json, letter, markdown, text
from netbench.report.build import build
from tests.support.paths import ROOT, SAMPLE
from tests.support.synthetic import Synth
from tests.unit.report.test_profile_section import NO_SG, SG, more, store

NUMBER = r"(\d[\d,]*(?:\.\d+)?)"
EQUATION = re.compile(rf"{NUMBER}/{NUMBER} = {NUMBER}(?![-\d])")
TIMES = re.compile(
    r"(\d+\.\d)% (more|less)(?: than(?:(?!% (?:more|less) than)[^()])*?)? \((\d+\.\d) times\)"
)


def ends(word: str) -> tuple[float, float]:
    """What a printed number may have been rounded from."""
    value, half = float(word.replace(",", "")), 0.5 / 10 ** len(word.partition(".")[2])
    return value - half, value + half


def equations(printed: str) -> Iterator[tuple[str, bool]]:
    """Each equation of a text, and whether it holds."""
    for found in EQUATION.finditer(printed):
        a, b, result = found.groups()
        values = [x / y for x in ends(a) for y in ends(b)]
        low, high = ends(result)
        yield found[0], min(values) <= high and low <= max(values)
    for found in TIMES.finditer(printed):
        sign = 1 if found[2] == "more" else -1
        factors = [1 + sign * each / 100 for each in ends(found[1])]
        values = [max(each, 1 / each) for each in factors]
        low, high = ends(found[3])
        yield found[0], min(values) <= high and low <= max(values)


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run of a cell cost many times what the others did."""
    made = Synth(
        factors={"sg": ("off", "on")}, compare={"factor": "sg", "baseline": "off"}, pairs=("a>b",)
    ).write(tmp_path_factory.mktemp("profiled") / "r")
    runs = [("sg=off", more(NO_SG, by)) for by in (0, 0, 9000)]
    return store(made, runs + [("sg=on", more(SG, by)) for by in (0, 50, 100)])


SAMPLES = sorted((ROOT / "results" / "sample").iterdir())
SLOW = [pytest.param(at, marks=pytest.mark.slow) for at in SAMPLES if at != SAMPLE]


@pytest.mark.parametrize("at", [SAMPLE, *SLOW, None], ids=str)
def test_printed_equations_hold(profiled: Path, at: Path | None) -> None:
    report = build(at or profiled)
    forms = [text.render(report), markdown.render(report), json.render(report)]
    forms.append(markup.unescape(re.sub(r"<[^>]*>", " ", html.render(report))))
    try:
        forms.append(letter.render(report))
    except ReportError:
        assert report.source.result.compare is None
    found = [each for form in forms for each in equations(" ".join(form.split()))]
    assert [told for told, holds in found if not holds] == []
    assert found or at not in (None, SAMPLE)


def test_equations_are_found_and_judged() -> None:
    told = "2622/7085 = 0.23, 2622/7085 = 0.37. 66.0% less (2.9 times), 5.0% less (2.9 times)"
    assert [holds for _, holds in equations(told)] == [False, True, True, False]
