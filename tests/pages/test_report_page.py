"""The page of a report as a reader meets it, in a browser."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from netbench import load
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
    """500 runs whose records do not all stand on the page as they are; one of the runs failed, with
    a reason that is markup.
    """
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


@pytest.mark.parametrize("which", ["page", "large"])
def test_no_request_and_no_error(
    browser: Browser, which: str, request: pytest.FixtureRequest
) -> None:
    shown = request.getfixturevalue(which)
    browser.open(shown, "#run-9")
    assert browser.one("#run-9").is_displayed()
    assert {url.partition("#")[0] for url in browser.requests()} <= {shown.as_uri()}
    assert browser.log() == []


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


def test_no_serious_fault_of_accessibility(browser: Browser, page: Path) -> None:
    for scheme in ("light", "dark"):
        browser.media(scheme)
        browser.open(page, "#run-3")
        browser.one("#all-runs")
        assert browser.faults() == [], scheme


def test_findings_come_first(browser: Browser, page: Path) -> None:
    browser.open(page)
    cards = browser.all(".card")
    assert cards
    assert all("▲ better" in card.text and "interval" in card.text for card in cards[:3])
    browser.click(".card .from a[data-only]")
    assert browser.at() == "#runs"
    assert {(row[1], row[2]) for row in rows(browser)} == {
        ("sendfile", "none"),
        ("readwrite", "none"),
    }
    caution = browser.all(".card .from a[href^='#caution']")[0]
    kind = caution.text
    browser.click(".card .from a[href^='#caution']")
    assert browser.one(browser.at()).text.lower().startswith(kind)


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


def test_from_a_number_to_a_raw_counter(browser: Browser, page: Path) -> None:
    """A mean leads to its cell, this to its runs, a run's metric to the counters of its formula."""
    browser.open(page)
    browser.click("#cells tbody td.n")
    assert browser.at() == "#cell-1"
    panel = browser.one("#cell-1")
    assert panel.is_displayed()
    browser.click("#cell-1 tbody td.n")
    run = browser.one(browser.at())
    assert run.is_displayed()
    assert not panel.is_displayed()
    browser.click(f"#{run.get_attribute('id')} td.w a[href$='flow.bytes']")
    row = browser.run("return document.querySelector(':target').innerText").split("\t")
    line = next(
        record
        for record in map(json.loads, (SAMPLE / "records.jsonl").open())
        if f"run-{record['run']}" == run.get_attribute("id")
    )
    edges = [value for ((value,),) in [(each,) for each in line["receiver"]["flow"]["bytes"]]]
    assert row[5:] == [f"{n:,}" for n in (*edges, edges[1] - edges[0])]


@pytest.mark.parametrize("which", ["page", "large"])
def test_every_number_leads_to_runs(
    browser: Browser, which: str, request: pytest.FixtureRequest
) -> None:
    """No row with a number is without a way to its runs, and each way leads somewhere."""
    browser.open(request.getfixturevalue(which))
    script = """return [...document.querySelectorAll('main table.data tbody tr')]
        .filter(row => row.querySelector('td.n') && !row.querySelector("a[href^='#cell-'], a[href^='#run']"))
        .map(row => row.textContent)"""
    assert browser.run(script) == []
    script = """return [...document.querySelectorAll('a[href^="#"]')].map(a => a.getAttribute('href'))
        .filter(to => !document.getElementById(to.slice(1)))"""
    assert browser.run(script) == []


def test_a_plots_points_lead_to_runs_and_back(browser: Browser, page: Path) -> None:
    browser.open(page)
    point = browser.all("#plot-cells-1 svg a")[5]
    to = browser.run("return arguments[0].getAttribute('href')", point)
    browser.run("arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", point)
    assert browser.at() == to
    assert browser.one(to).is_displayed()
    browser.click(f"{to} nav a[href='#plot-cells-1']")
    assert browser.at() == "#plot-cells-1"
    marked = browser.all("#plot-cells-1 svg a.here")
    assert [browser.run("return arguments[0].getAttribute('href')", each) for each in marked] == [
        to
    ]
    points = len(browser.all("#plot-cells-1 svg a"))
    assert points == len(load(SAMPLE).runs)
    first = browser.all("#plot-cells-1 svg a")[0]
    browser.run("arguments[0].focus()", first)
    browser.driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT, Keys.ENTER)
    second = browser.all("#plot-cells-1 svg a")[1]
    assert browser.at() == browser.run("return arguments[0].getAttribute('href')", second)


def test_a_run_shows_all_that_its_record_holds(browser: Browser, page: Path) -> None:
    browser.open(page, "#run-1")
    record = json.loads((SAMPLE / "records.jsonl").read_text().splitlines()[0])
    said = browser.one("#run-1").text
    captions = " ".join(browser.texts("#run-1 caption"))
    for heading in ("Metrics", "Raw counters", "Settings", "Proof"):
        assert heading in captions
    for meter in ("flow", "rusage", "procstat", "tcp"):
        for name, (before, after) in record["sender"][meter].items():
            one = [v[0] if isinstance(v, list) else v for v in (before, after)]
            assert f"{meter}.{name}" in said
            assert f"{one[0]:,}" in said
    assert "send_buffer" in said
    assert all(counter in said for side in record["proof"].values() for counter in side)
    assert browser.one("#run-1 .graph path.receiver").get_attribute("d").startswith("M")
    browser.click("#run-1 details summary")
    assert json.loads(browser.one("#run-1 pre").text) == record


def test_a_packed_record_is_unpacked(browser: Browser, large: Path) -> None:
    assert 'id="packed"' in large.read_text(encoding="utf-8")
    browser.open(large, "#run-500")
    browser.click("#run-500 details summary")
    record = json.loads(browser.one("#run-500 pre").text)
    assert record["run"] == 500
    said = browser.one("#run-500").text
    assert f"{BIG:,}" in said, "no digit is lost"
    assert f"{BIG - 5:,}" in said
    browser.open(large, "#run-7")
    assert HOSTILE in browser.one("#run-7").text
    assert browser.log() == []


def test_500_runs_take_at_most_2_mb(large: Path) -> None:
    text = large.read_text(encoding="utf-8")
    assert len(re.findall(r'id="run-\d+"', text)) == 500
    assert large.stat().st_size <= 2_000_000


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


@pytest.mark.parametrize("which", ["page", "large"])
def test_print_cuts_no_table(browser: Browser, which: str, request: pytest.FixtureRequest) -> None:
    browser.open(request.getfixturevalue(which), "#run-2")
    browser.size(718)  # A4 less margins of 1 cm, at 96 dots an inch
    browser.media("dark", "print")
    wide = """return [...document.querySelectorAll('table, svg')].filter(each => each.checkVisibility()
        && each.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
        .map(each => each.textContent.slice(0, 60))"""
    assert browser.run(wide) == []
    hidden = ("#bar", ".tools", "#run-2")
    assert not any(each.is_displayed() for name in hidden for each in browser.all(name))
    assert "Panels of single runs are left out" in browser.one("main").text
    paper = "return getComputedStyle(document.body).backgroundColor"
    assert browser.run(paper) == "rgb(255, 255, 255)"
    assert browser.pdf().startswith(b"%PDF")


def test_400_pixels_are_enough(browser: Browser, page: Path) -> None:
    browser.size(400)
    browser.open(page, "#run-2")
    assert browser.run("return document.documentElement.scrollWidth") <= 400
    assert browser.one("#run-2 h3").is_displayed()


def test_without_a_script_a_run_shows_its_record(browser: Browser, page: Path) -> None:
    browser.devtools("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(page, "#run-5")
        assert browser.one("#run-5").is_displayed()
        assert json.loads(browser.one("#run-5 pre").text)["run"] == 5
        assert browser.all("button") == []
    finally:
        browser.devtools("Emulation.setScriptExecutionDisabled", value=False)
