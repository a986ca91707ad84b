"""What `watch` is made of: reading on in files, lines for a terminal of any size, drawing them in
place.
"""

from __future__ import annotations

import fcntl
import io
import os
import re
from dataclasses import replace
from pathlib import Path

import pyte
import pytest

from netbench import campaign
from netbench.base.errors import StoreError
from netbench.base.terminal import Painter
from netbench.live.screen import render
from netbench.live.standing import Overview, overview
from netbench.live.standings import comparisons
from netbench.live.tail import Changes, Tail, is_locked
from netbench.plan.plan import Plan
from netbench.read.accounts import ACCOUNTS
from netbench.result.record import Record, SideCounters
from netbench.result.store import now
from netbench.run.ledger import Bad, Ledger

CONTROL = re.compile("[\0-\x09\x0b-\x1f\x7f-\x9f\u202e]")
COLOUR = re.compile("\x1b\\[[0-9;]*m")
TEXT = """\
netbench: 1
name: many
sweep: {send: [write, sendfile], chunk: [1K, 2K, 3K, 4K, 5K, 6K, 7K, 8K, 9K, 10K]}
compare: {factor: send, baseline: write, control: off}
repeat: {min: 3, max: 6, metrics: [throughput, sender_cpu]}
"""


# Files that grow


def test_only_new_and_whole_lines_are_read(tmp_path: Path) -> None:
    file = tmp_path / "f"
    tail = Tail(file)
    assert tail.read() == []  # not there yet
    file.write_bytes(b"one\ntwo\nthr")
    assert tail.read() == [b"one\n", b"two\n"]
    assert tail.read() == []
    with file.open("ab") as more:
        more.write(b"ee\n")
    assert tail.read() == [b"three\n"]
    assert tail.lines == 3


def test_many_lines_are_read_in_parts_and_none_is_lost(tmp_path: Path) -> None:
    file = tmp_path / "f"
    lines = [b"%d\n" % number for number in range(1000)] + [b"x" * 5000 + b"\n"]
    file.write_bytes(b"".join(lines))
    tail, parts = Tail(file), []
    while part := tail.read(most=100):
        parts.append(part)
    assert [line for part in parts for line in part] == lines


def test_a_file_that_was_replaced_by_a_shorter_one_is_told(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"one\ntwo\n")
    tail = Tail(file)
    tail.read()
    file.write_bytes(b"one\n")
    with pytest.raises(StoreError, match="has become shorter"):
        tail.read()


def test_a_line_that_a_resume_cuts_off_was_never_read(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"one\ntw")
    tail = Tail(file)
    assert tail.read() == [b"one\n"]
    file.write_bytes(b"one\nnew\n")
    assert tail.read() == [b"new\n"]


def test_a_file_that_is_replaced_has_changed_once(tmp_path: Path) -> None:
    file, other = tmp_path / "f", tmp_path / "g"
    changes = Changes(file)
    assert not changes.changed()
    file.write_text("a")
    assert [changes.changed(), changes.changed()] == [True, False]
    other.write_text("b")
    other.rename(file)
    assert changes.changed()


def test_a_lock_is_seen_without_taking_it(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.touch()
    assert not is_locked(file)
    with file.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert is_locked(file)
        with file.open() as waiting, pytest.raises(BlockingIOError):
            fcntl.flock(waiting, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert not is_locked(file)


# Lines for a terminal


def played(blocks: int = 3) -> tuple[Plan, Ledger]:
    """A ledger with so many blocks of made-up runs; splice fails in the last."""
    plan = Plan(campaign.parse(TEXT, "m.yaml"))
    ledger = Ledger(plan, {"here": 100}, {"here>here": True}, ACCOUNTS)
    run = 0
    for block in range(blocks):
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
    return plan, ledger


def view(room: int | None = None) -> Overview:
    plan, ledger = played()
    return replace(
        overview(plan, ledger, Path("results/many/x"), room),
        left=100.0,
        cautions=("something " * 30,),
        log=tuple(f"{now()} line {number}" for number in range(9)),
        comparisons=tuple(comparisons(plan, ledger)),
        note="q ends watching",
    )


@pytest.mark.parametrize("width", [20, 40, 60, 79, 120, 199])
@pytest.mark.parametrize("height", [4, 10, 15, 23, 49])
def test_no_line_is_wider_and_no_view_higher_than_the_terminal(width: int, height: int) -> None:
    lines = [COLOUR.sub("", line) for line in render(view(height), width, height, colour=True)]
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    assert lines[0].startswith("many")


def test_what_has_no_room_is_counted() -> None:
    for room in (None, 23):
        text = "\n".join(render(view(room), 79, 23))
        shown = len(re.findall(r"^(?:write|sendfile) +\d+K +\d", text, re.M))
        more = re.search(r"… and (\d+) more cells: (\d+) ", text)
        assert more
        assert shown + int(more[1]) == 20, text
        assert "q ends watching" in text


def test_cells_that_failed_or_are_open_come_first() -> None:
    plan, ledger = played()
    unit = plan.units[15]
    bad = Record(99, *unit.key, 3, 0, unit.cell.factors, "refused", "no", now())
    ledger.add(bad)
    lines = render(overview(plan, ledger, Path("x"), 12), 100, 12)
    assert any("refused" in line and line.startswith("sendfile") for line in lines), lines


def test_all_of_a_view_is_there_where_there_is_no_limit() -> None:
    text = "\n".join(render(view(), 200))
    assert "more cells" not in text
    assert text.count("throughput ") >= 10  # a comparison of each chunk
    assert "line 8" in text
    assert "line 0" in text


def test_text_of_a_result_is_escaped_and_is_no_markup() -> None:
    hostile = "a\x1b[31m\u202e[red]b[/red]\x07"
    plan, ledger = played(1)
    ledger.trail.bad.append(Bad(1, hostile, hostile, "failed", hostile))
    shown = overview(plan, ledger, Path("x"))
    shown = replace(
        shown,
        name=hostile,
        cells=(replace(shown.cells[0], levels=(hostile, "1K")),),
        cautions=(hostile,),
        log=(f"{now()} {hostile}",),
        note=hostile,
    )
    for height in (None, 20):
        lines = render(shown, 100, height, colour=True)
        text = COLOUR.sub("", "\n".join(lines))
        assert not CONTROL.search(text)
        assert text.count("[red]b[/red]") >= 3


# Drawing


class Played(io.StringIO):
    """A terminal of a size that says so."""

    def __init__(self, columns: int, lines: int) -> None:
        super().__init__()
        self.screen = pyte.HistoryScreen(columns, lines, history=1000)
        self._stream = pyte.Stream(self.screen)

    def write(self, text: str) -> int:
        self._stream.feed(text.replace("\n", "\r\n"))
        return len(text)

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display if line.strip()]


@pytest.fixture
def sized(monkeypatch: pytest.MonkeyPatch) -> Played:
    terminal = Played(40, 10)
    monkeypatch.setattr("netbench.base.terminal.size_of", lambda out: os.terminal_size((40, 10)))
    return terminal


def test_lines_are_drawn_in_place_and_messages_stay_above(sized: Played) -> None:
    painter = Painter(sized)
    painter.draw(["one", "two"])
    painter.draw(["\x1b[32mthree\x1b[0m"])
    assert sized.lines == ["three"]
    painter.print("said")
    painter.draw(["four", "five"])
    assert sized.lines == ["said", "four", "five"]
    painter.clear()
    assert sized.lines == ["said"]


def test_a_view_as_high_as_the_terminal_stays_in_place(sized: Played) -> None:
    painter = Painter(sized)
    for number in range(5):
        painter.draw([f"{number}.{line}" for line in range(9)])
    assert sized.lines == [f"4.{line}" for line in range(9)]
    assert not sized.screen.history.top


def test_lines_that_a_narrower_terminal_has_folded_are_replaced(
    sized: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    painter = Painter(sized)
    painter.draw(["x" * 39])
    monkeypatch.setattr("netbench.base.terminal.size_of", lambda out: os.terminal_size((20, 10)))
    assert painter._up() == "\r\x1b[2A"


def test_a_terminal_that_is_gone_is_no_error() -> None:
    closed = io.StringIO()
    closed.close()
    painter = Painter(closed)
    painter.draw(["x"])
    painter.print("y")
    painter.clear()
