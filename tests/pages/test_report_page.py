"""The page of a report as a reader meets it, in a browser."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from netbench.report import html
from netbench.report.build import build
from tests.support.browser import Browser
from tests.support.paths import SAMPLE
from tests.support.synthetic import Synth, failed

BIG = 2**60 + 1  # no number of JavaScript
HOSTILE = "<img src=x onerror=alert(1)>&quot;"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the sample."""
    file = tmp_path_factory.mktemp("sample") / "index.html"
    file.write_text(html.render(build(SAMPLE)), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """500 runs; one of them failed, with a reason that is markup."""
    folder = tmp_path_factory.mktemp("large")

    def edit(record: dict) -> dict:  # type: ignore[type-arg]
        if record["run"] == 7:
            return failed(record, "failed", HOSTILE)
        record["sender"]["rusage"]["more"] = [5, BIG]
        record["sender"]["perf"] = {f"counter_{i}": [i, i + record["run"]] for i in range(60)}
        return record

    factors = {"send": ("readwrite", "sendfile"), "pin": tuple(map(str, range(5)))}
    compare = {"factor": "send", "baseline": "readwrite", "margin": 0.01}
    result = Synth(factors, runs=50, compare=compare, edit=edit).write(folder / "r")
    file = folder / "index.html"
    file.write_text(html.render(build(result)), encoding="utf-8")
    return file


@pytest.fixture(autouse=True)
def as_usual(browser: Browser) -> None:
    browser.size(1280)
    browser.media()


def rows(browser: Browser) -> list[list[str]]:
    """The shown rows of the table of runs."""
    script = """return [...document.querySelectorAll('#all-runs tbody tr')].filter(row => !row.hidden)
        .map(row => [...row.cells].map(cell => cell.textContent))"""
    return browser.run(script)  # type: ignore[no-any-return]


def test_no_request_and_no_error(browser: Browser, large: Path) -> None:
    browser.open(large, "#run-9")
    assert browser.one("#run-9").is_displayed()
    requested = {url.partition("#")[0] for url in browser.requests()}
    assert {url for url in requested if not url.startswith("data:")} <= {large.as_uri()}
    assert browser.log() == []
    script = """return [...document.querySelectorAll('a[href^="#"]')].map(a => a.getAttribute('href'))
        .filter(to => !document.getElementById(to.slice(1)))"""
    assert browser.run(script) == [], "each link leads somewhere"
    assert large.stat().st_size <= 2_000_000
    browser.size(400)
    assert browser.run("return document.documentElement.scrollWidth") <= 400


def test_the_page_itself_forbids_requests(browser: Browser, page: Path) -> None:
    """Were a result to bring markup past the escapes, it could still send nothing."""
    browser.open(page)
    browser.requests()
    browser.run("fetch('http://127.0.0.1:9/').catch(() => 0); new Image().src = '/x.png'")
    browser.run(
        "document.head.append(Object.assign(document.createElement('script'), {text: 'bad = 1'}))"
    )
    assert browser.requests() == []
    assert browser.run("return typeof bad") == "undefined"
    assert "Content Security Policy" in " ".join(browser.log())


@pytest.mark.parametrize("scheme", ["dark", pytest.param("light", marks=pytest.mark.slow)])
def test_no_serious_fault_of_accessibility(browser: Browser, page: Path, scheme: str) -> None:
    browser.media(scheme)
    browser.open(page, "#run-3")
    browser.one("#all-runs")
    assert browser.faults() == []


def test_tables_sort_by_keyboard(browser: Browser, page: Path) -> None:
    browser.open(page, "#runs")
    before = rows(browser)
    at = next(i for i, th in enumerate(browser.all("#all-runs th")) if "throughput" in th.text)
    button = browser.all("#all-runs th button")[at]
    button.send_keys(Keys.ENTER)
    numbers = [float(row[at]) for row in rows(browser)]
    assert numbers == sorted(numbers)
    assert browser.all("#all-runs th")[at].get_attribute("aria-sort") == "ascending"
    button.send_keys(Keys.ENTER)
    assert [float(row[at]) for row in rows(browser)] == sorted(numbers, reverse=True)
    button.send_keys(Keys.ENTER)
    assert rows(browser) == before


def test_tables_filter_and_hide_columns(browser: Browser, page: Path) -> None:
    browser.open(page, "#runs")
    every = rows(browser)
    field = browser.one("#runs input[type=search]")
    field.send_keys("send=sendfile pin=apart|same")
    wanted = [r for r in every if r[1] == "sendfile" and r[2] in ("apart", "same")]
    assert rows(browser) == wanted
    assert browser.one("#runs output").text == f"{len(wanted)} of {len(every)} rows"
    field.clear()
    field.send_keys("READWR")
    assert rows(browser) == [row for row in every if row[1] == "readwrite"]
    browser.click("#runs .tools summary")
    browser.click("#runs .tools details label:nth-of-type(3) input")
    assert [th.text for th in browser.all("#all-runs th") if th.is_displayed()][:3] == [
        "run", "send", "chunk",
    ]  # fmt: skip


def test_a_row_opens_its_record(browser: Browser, large: Path) -> None:
    browser.open(large, "#run-7")
    assert HOSTILE in browser.one("#run-7").text
    browser.click("#run-7 summary")
    record = json.loads(browser.one("#run-7 pre").text)
    assert (record["run"], record["reason"]) == (7, HOSTILE)
    browser.click("#run-8 summary")
    assert json.loads(browser.one("#run-8 pre").text)["sender"]["rusage"]["more"] == [5, BIG]
    assert browser.log() == []


def test_a_plot_is_saved_as_a_picture(browser: Browser, page: Path) -> None:
    browser.open(page)
    script = """let saved = ''; const click = HTMLAnchorElement.prototype.click;
        HTMLAnchorElement.prototype.click = function () { saved = [this.download, this.href]; };
        document.querySelector('figure .png').click();
        HTMLAnchorElement.prototype.click = click; return saved"""
    name, data = browser.run(script)
    assert name.startswith("throughput")
    assert data.startswith("data:image/png;base64,iVBOR")
    assert len(data) > 10_000
    assert browser.log() == []


def test_sections_are_folded_and_opened_by_their_links(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert browser.one("#cells table").is_displayed()
    assert not browser.one("#cautions").is_displayed()
    browser.click("nav a[href='#cautions']")
    assert browser.one("#cautions").is_displayed()


def test_light_and_dark(browser: Browser, page: Path) -> None:
    def paper() -> str:
        return str(browser.run("return getComputedStyle(document.body).backgroundColor"))

    browser.open(page)
    light = paper()
    browser.media("dark")
    dark = paper()
    assert light != dark
    button = browser.one("#bar button")
    button.click()
    assert (button.text, paper()) == ("theme: light", light)
    button.click()
    assert (button.text, paper()) == ("theme: dark", dark)
    browser.media("light")
    browser.open(page)
    assert paper() == dark, "it is remembered"
    button = browser.one("#bar button")
    button.click()
    assert paper() == light


def test_print_cuts_no_table(browser: Browser, large: Path) -> None:
    browser.open(large, "#run-2")
    browser.click("#run-2 summary")
    browser.size(718)  # A4 less margins of 1 cm, at 96 dots an inch
    browser.media("dark", "print")
    wide = """return [...document.querySelectorAll('table, svg, img')].filter(each => each.checkVisibility()
        && each.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
        .map(each => each.textContent.slice(0, 60))"""
    assert browser.run(wide) == []
    hidden = ("#bar", ".tools", "#run-2 pre")
    assert not any(each.is_displayed() for name in hidden for each in browser.all(name))
    paper = "return getComputedStyle(document.body).backgroundColor"
    assert browser.run(paper) == "rgb(255, 255, 255)"
    assert browser.devtools("Page.printToPDF")["data"].startswith("JVBERi")


def test_without_a_script_a_run_shows_its_record(browser: Browser, page: Path) -> None:
    browser.devtools("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(page, "#run-5")
        browser.press(browser.one("#run-5 summary"))
        assert json.loads(browser.one("#run-5 pre").text)["run"] == 5
        assert browser.all("button") == []
    finally:
        browser.devtools("Emulation.setScriptExecutionDisabled", value=False)
