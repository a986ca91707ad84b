"""Nothing that came from outside reaches a terminal or a spreadsheet as a command."""

from __future__ import annotations

import csv as csv_module
import io
import json as json_module
import re
from pathlib import Path

import pytest

from netbench.__main__ import _complain
from netbench.base.errors import StoreError
from netbench.base.names import LINE
from netbench.cli.output import say, say_json
from netbench.cli.parser import run
from netbench.report import csv, first, html, json, junit, ktap, letter, markdown, text
from netbench.report.build import Report, build
from netbench.run.progress import Lines
from netbench.tables.table_files import write_table
from tests.support.synthetic import Record, Synth, failed

# name: characters that a terminal obeys, or that turn a line around
HOSTILE = {
    "colour": "\x1b[31m",
    "title": "\x1b]0;owned\x07",
    "C1 CSI": "\x9b2J",
    "backspace": "\b\b\b",
    "return": "\rnetbench: all is well",
    "delete": "\x7f",
    "NUL": "\0",
    "override": "\u202e",
    "no character": "\uffff",
    "isolate": "\u2066",
    "line separator": "\u2028",
}
CONTROL = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufffe\uffff]"
)


def hostile_report(folder: Path, word: str) -> Report:
    """A report with the word in a level, if it may be in one, a reason, and what a tool printed."""
    factors = {"pin": ("none", f"x{word}" if re.search(LINE, word) else "apart")}

    def edit(record: Record) -> Record:
        printed = {"text": f"t{word}", "value": 5.0, "unit": f"u{word}"}
        whole = {**record, "captures": {"v": printed}}
        return failed(record, "failed", f"r{word}") if record["run"] == 1 else whole

    compare = {"factor": "pin", "baseline": "none"}
    return build(Synth(factors=factors, edit=edit, compare=compare).write(folder))


FIRST = ("override", "return")
EACH = [
    pytest.param(word, id=name, marks=() if name in FIRST else pytest.mark.slow)
    for name, word in HOSTILE.items()
]


@pytest.mark.parametrize("word", EACH)
def test_no_renderer_lets_a_control_character_through(
    tmp_path: Path, word: str, recwarn: pytest.WarningsRecorder
) -> None:
    report = hostile_report(tmp_path / "r", word)
    for renderer in (first, text, html, markdown, csv, json, letter, ktap, junit):
        assert not CONTROL.search(renderer.render(report)), renderer.__name__
    assert not [each for each in recwarn if CONTROL.search(str(each.message))]
    for line in (text.render(report) + first.render(report)).splitlines():
        assert len(line) <= 80
    shown = json.render(report)
    assert f"r{word}" in shown.encode().decode("unicode_escape")
    assert "apart" in shown or any(
        f"x{word}" in cell["factors"].values() for cell in json_module.loads(shown)["cells"]
    )


@pytest.mark.parametrize("word", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("form", ["factor", "level"])
def test_what_is_no_name_or_level_is_refused_in_words_that_hide_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], word: str, form: str
) -> None:
    if form == "level" and re.search(LINE, word):
        return  # the renderers' test has it
    factors = {f"f{word}": ("1", "2")} if form == "factor" else {"pin": ("no", f"x{word}")}
    with pytest.raises(StoreError) as refused:
        build(Synth(factors=factors).write(tmp_path / "r"))
    _complain(str(refused.value))
    assert not CONTROL.search(capsys.readouterr().err)


@pytest.mark.parametrize("word", HOSTILE.values(), ids=HOSTILE)
def test_no_writer_lets_a_control_character_through(
    capsys: pytest.CaptureFixture[str], word: str
) -> None:
    say(f"a{word}b")
    say_json({"a": f"a{word}b"})
    _complain(f"a{word}b")
    out = io.StringIO()
    Lines(out, every=0).say(f"a{word}b")
    with pytest.raises(SystemExit):
        run(["list", f"a{word}b"])
    seen = capsys.readouterr()
    for shown in (seen.out, seen.err, out.getvalue()):
        assert "a" in shown
        assert not CONTROL.search(shown)


FORMULAS = {
    "=cmd|' /C calc'!A0": "'=cmd|' /C calc'!A0",
    "+1+1": "'+1+1",
    "@SUM(A1)": "'@SUM(A1)",
    "-x": "'-x",
    " =1": "' =1",
    "-5": "-5",
    "+1e3": "+1e3",
    "32K": "32K",
}


def test_a_csv_holds_no_formula(tmp_path: Path) -> None:
    made = Synth(factors={"pin": tuple(FORMULAS)}).write(tmp_path / "r")
    rows = list(csv_module.DictReader(io.StringIO(csv.render(build(made)))))
    write_table([made], "runs", tmp_path / "x.csv")
    with (tmp_path / "x.csv").open(newline="") as runs:
        for each in (rows, csv_module.DictReader(runs)):
            assert {row["pin"] for row in each} == set(FORMULAS.values())
    assert [float(row["mean"]) for row in rows]
