"""What `watch` is made of: lines for a terminal of any size, drawing them in place."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from netbench import campaign
from netbench.base.terminal import Painter
from netbench.live.findings import Findings
from netbench.live.screen import render
from netbench.live.standing import Overview
from netbench.plan.plan import Plan
from netbench.read.accounts import ACCOUNTS
from netbench.report.source import Source
from netbench.result.record import Record, SideCounters
from netbench.result.store import now
from netbench.run.ledger import Ledger
from tests.support.paths import SAMPLE

CONTROL = re.compile("[\0-\x09\x0b-\x1f\x7f-\x9f\u202e]")
COLOUR = re.compile("\x1b\\[[0-9;]*m")
TEXT = """\
netbench: 1
name: many
sweep: {send: [write, sendfile], chunk: [1K, 2K, 3K, 4K, 5K, 6K, 7K, 8K, 9K, 10K]}
compare: {factor: send, baseline: write, control: off}
repeat: {min: 3, max: 6, metrics: [throughput, sender_cpu]}
"""


# Lines for a terminal


def view(
    cautions: tuple[str, ...] = ("something " * 30,), last: str = "ok", word: str = ""
) -> Overview:
    """Three blocks of made-up runs, and one more run with a status."""
    plan = Plan(campaign.parse(TEXT, "m.yaml"))
    ledger = Ledger(plan, {"here": 100}, {"here>here": True}, ACCOUNTS)
    run = 0
    for block in range(3):
        for number, unit in enumerate(plan.units):
            run += 1
            amount = (10 + number + 0.1 * ((run * 7) % 5)) * 1e9 / 8
            cpu = {"rusage": {"cpu_ns": [0, 300_000_000 + run * 1000]}}
            sides = [
                SideCounters("here", (0, 10**9), meters={"flow": {"bytes": [[0], [n]]}, **cpu})
                for n in (1, int(amount))
            ]
            factors = unit.cell.factors
            ledger.add(Record(run, *unit.key, block, 0, factors, "ok", "", now(), *sides))
        ledger.next_block()
    unit = plan.units[15]
    if last != "ok":
        ledger.add(Record(99, *unit.key, 3, 0, unit.cell.factors, last, "no", now()))
    findings = Findings(Path(), 1.0)
    findings.comparisons = tuple(Source.of(SAMPLE).comparisons["throughput"])
    findings.cautions = cautions
    log = tuple(f"{now()} line {number}{word}" for number in range(9))
    return Overview(plan, ledger, Path("results/many/x"), findings, 100.0, log=log)


NOTE = "Ctrl-C ends watching"


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
    assert lines[0].startswith("many")
    text = "\n".join(lines)
    if (width, height) == (79, 23):
        shown = len(re.findall(r"^(?:write|sendfile) +\d+K +\d", text, re.M))
        more = re.search(r"… and (\d+) more cells$", text, re.M)
        assert more
        assert shown + int(more[1]) == 20, text
        assert text.endswith(NOTE)


def test_cells_that_failed_or_are_open_come_first() -> None:
    lines = render(view(last="refused"), 100, 12)
    assert any("refused" in line and line.startswith("sendfile") for line in lines), lines


def test_text_of_a_result_is_escaped_and_is_no_markup() -> None:
    hostile = "a\x1b[31m\u202e[red]b[/red]\x07"
    shown = view((hostile,), word=hostile)
    shown.ledger.bad.append(Record(1, hostile, hostile, 0, 0, {}, "failed", hostile, now()))
    for height in (None, 20):
        lines = render(shown, 100, height, colour=True, note=hostile)
        text = COLOUR.sub("", "\n".join(lines))
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
