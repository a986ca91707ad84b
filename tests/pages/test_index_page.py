"""The page of many results as a reader meets it, in a browser."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from netbench.report import html, index
from netbench.report.build import build
from tests.support.browser import Browser
from tests.support.paths import SAMPLE
from tests.support.synthetic import Synth

ODD = "it's <b>one"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample with its page; ten small results, one in a folder with an odd name."""
    folder = tmp_path_factory.mktemp("many") / "results"
    sample = shutil.copytree(SAMPLE, folder / "sample" / SAMPLE.name)
    (sample / "report").mkdir()
    (sample / "report" / "index.html").write_text(html.render(build(sample)), encoding="utf-8")
    for day in range(1, 11):
        name = ODD if day == 1 else "made"
        Synth(runs=day + 1).write(folder / name / f"202601{day:02d}T000000Z-aaaaaa")
    (folder / "made" / "20260105T000000Z-aaaaaa" / "records.jsonl").write_text("{}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder.parent / "cache"))
        (folder / "index.html").write_text(
            index.render(folder, folder / "index.html"), encoding="utf-8"
        )
    return folder


def column(browser: Browser, at: int) -> list[str]:
    script = """return [...document.querySelectorAll('main tbody tr')].filter(row => !row.hidden)
        .map(row => row.cells[arguments[0]].textContent.trim())"""
    return browser.run(script, at)  # type: ignore[no-any-return]


def test_a_page_of_all_results(browser: Browser, results: Path) -> None:
    page = results / "index.html"
    browser.open(page)
    assert {url.partition("#")[0] for url in browser.requests()} <= {page.as_uri()}
    assert browser.log() == []
    assert column(browser, 0)[0] == "sample"
    assert column(browser, 2).count("unreadable") == 1
    assert browser.faults() == []
    browser.media("dark")
    assert browser.faults() == []
    browser.media()
    browser.click("th:nth-child(6) button")
    runs = [int(text) for text in column(browser, 5) if text != "-"]
    assert runs == sorted(runs)
    browser.one("input[type=search]").send_keys("status=unreadable")
    assert len(column(browser, 0)) == 1
    browser.one("input[type=search]").clear()
    browser.one("input[type=search]").send_keys("sample")
    browser.click("main td a")
    assert browser.driver.title == "sample"


def test_two_results_are_compared(browser: Browser, results: Path) -> None:
    browser.open(results / "index.html")
    said = browser.one("#compare code")
    assert said.text == "choose two results"
    odd = next(box for box in browser.all("tbody input") if ODD in str(box.get_attribute("value")))
    browser.press(odd)
    browser.press(browser.all("tbody input")[0])
    quoted = str(odd.get_attribute("value")).replace("'", "'\\''")
    newest = results / "sample" / SAMPLE.name
    assert said.text == f"python -m netbench compare '{quoted}' {newest}"
    browser.press(browser.all("tbody input")[1])
    assert not odd.is_selected(), "two at most"
    assert str(newest) in said.text
