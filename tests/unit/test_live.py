"""What `watch` is made of: lines for a terminal of any size, drawing them in place."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest

from netbench.base.terminal import Painter
from netbench.live.screen import render
from netbench.live.standing import Overview
from netbench.live.watched import snapshot
from netbench.result.record import Record
from netbench.result.store import now
from tests.support.paths import SAMPLE

CONTROL = re.compile("[\0-\x09\x0b-\x1f\x7f-\x9f\u202e]")
COLOUR = re.compile("\x1b\\[[0-9;]*m")
NOTE = "Ctrl-C ends watching"


# Lines for a terminal


def view(cautions: tuple[str, ...] = ("something " * 30,), word: str = "") -> Overview:
    """The sample as if it ran still, with other cautions and a longer log."""
    shown = snapshot(SAMPLE)
    shown.findings.cautions = cautions
    log = tuple(f"{now()} line {number}{word}" for number in range(9))
    return replace(shown, state="running", log=log)


@pytest.fixture(scope="module")
def many() -> Overview:
    return view()


@pytest.mark.parametrize("width", [20, 40, 79, 199])
@pytest.mark.parametrize("height", [4, 10, 23, 49])
def test_no_line_is_wider_and_no_view_higher_than_the_terminal(
    many: Overview, width: int, height: int
) -> None:
    printed = render(many, width, height, colour=True, note=NOTE)
    lines = [COLOUR.sub("", line) for line in printed]
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    assert lines[0].startswith("sample")
    text = "\n".join(lines)
    if (width, height) == (79, 23):
        shown = len(re.findall(r"^\w+ +\w+ +\S+ +10 ", text, re.M))
        more = re.search(r"… and (\d+) more cells$", text, re.M)
        assert more
        assert shown + int(more[1]) == 6, text
        assert text.endswith(NOTE)


def test_cells_that_failed_or_are_open_come_first() -> None:
    shown = view()
    unit = [unit for unit in shown.plan.units if not unit.cell.control][-1]
    shown.ledger.add(Record(99, *unit.key, 9, 0, unit.cell.factors, "refused", "no", now()))
    lines = render(shown, 100, 12)
    assert any("refused" in line and line.startswith("readwrite") for line in lines), lines


def test_text_of_a_result_is_escaped_and_is_no_markup() -> None:
    hostile = "a\x1b[31m\u202e[red]b[/red]\x07"
    shown = view((hostile,), word=hostile)
    shown.ledger.bad.append(Record(1, hostile, hostile, 0, 0, {}, "failed", hostile, now()))
    for height in (None, 20):
        text = COLOUR.sub("", "\n".join(render(shown, 100, height, colour=True, note=hostile)))
        assert not CONTROL.search(text)
        assert text.count("[red]b[/red]") >= 3


# Drawing


def test_a_terminal_that_is_gone_is_no_error() -> None:
    closed = io.StringIO()
    closed.close()
    painter = Painter(closed)
    painter.draw(["x"])
    painter.print("y")
    painter.clear()
