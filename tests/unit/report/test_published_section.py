"""The table of 2001 or 2006 beside today's."""

from __future__ import annotations

from pathlib import Path

from netbench.report import html, markdown, text
from netbench.report.blocks import Section, Table
from netbench.report.build import Report, build
from tests.support.synthetic import Synth
from tests.unit.analysis.test_published import LOOPBACK, SOSEND


def made(folder: Path, name: str, factors: dict[str, tuple[str, ...]], **fields: object) -> Report:
    folder = Synth(factors, runs=6, pairs=("snd>rcv",), **fields).write(folder / "r")  # type: ignore[arg-type]
    plan = folder / "plan.json"
    plan.write_text(plan.read_text().replace('"synthetic"', f'"{name}"'))
    return build(folder)


def tables(section: Section) -> list[Table]:
    return [block for block in section.blocks if isinstance(block, Table)]


def test_figures_and_changes_stand_cell_by_cell(tmp_path: Path) -> None:
    report = made(tmp_path, "loopback", LOOPBACK)
    section = report.section("published")
    figures, changes, *_ = tables(section)
    assert section.title == "The figures of 2001 beside today's"
    row = next(row for row in figures.rows if row[:2] == ("sendfile", "apart"))
    assert row[2:4] == ("66700", "213047")
    assert row[4] == report.source.cells[1].intervals["throughput"]
    change = next(row for row in changes.rows if row[:2] == ("sendfile against readwrite", "same"))
    (today,) = [
        c
        for c in report.source.compare("send", "readwrite", "throughput")
        if c.context == {"pin": "same"}
    ]
    assert change[2:5] == ("-1.8", "+220.0", f"{100 * (today.ratio - 1):+.1f}")


def test_what_differs_is_said_in_one_line(tmp_path: Path) -> None:
    lines = list(text.section_lines(made(tmp_path, "sosend", SOSEND).section("published"), 999))
    (differs,) = [line for line in lines if line.startswith("Then: ")]
    assert "1000Base-TX, back to back; FreeBSD with the old and the new sosend. Today: " in differs
    assert "Linux 6.18.1" in differs
    assert any("66% less cpu (or 2.9 times better)" in line for line in lines)


def test_it_fits_a_terminal_and_every_form_has_it(tmp_path: Path) -> None:
    report = made(tmp_path, "sosend", SOSEND)
    assert max(map(len, text.section_lines(report.section("published"), 80))) <= 80
    for form in (html.render(report, plots=False), markdown.render(report)):
        assert "921.28" in form


def test_metrics_are_those_that_the_campaign_asks_for(tmp_path: Path) -> None:
    repeat = {"metrics": ["sender_cpu"]}
    section = made(tmp_path, "sosend", SOSEND, repeat=repeat).section("published")
    titles = [table.title for table in tables(section) if not table.title.endswith("changes")]
    assert titles == ["sender CPU", "sender CPU (rusage)"]


def test_another_campaign_has_none(tmp_path: Path) -> None:
    report = made(tmp_path, "mine", LOOPBACK)
    assert "published" not in [section.key for section in report.sections]
