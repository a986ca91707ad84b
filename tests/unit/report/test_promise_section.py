"""One paragraph says what was promised and what held, from what the report itself found."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from netbench.report.blocks import Prose
from netbench.report.build import build
from tests.support.synthetic import Record, Synth

COMPARE = {"factor": "send", "baseline": "readwrite", "margin": None, "control": True}
LEVELS = ("readwrite", "mmap", "sendfile", "splice")
RANGE = {"min": 10, "max": 30}


def told(folder: Path) -> str:
    (block,) = build(folder).section("promise").blocks
    assert isinstance(block, Prose)
    (paragraph,) = block.lines
    return paragraph


def shifted(record: Record) -> Record:
    """A control that moves a third less than its baseline."""
    if record.get("control"):
        record["receiver"]["flow"]["bytes"][1][0] //= 3
    return record


@pytest.mark.parametrize(
    ("made", "said", "unsaid"),
    [
        pytest.param(
            {"compare": COMPARE, "spread": 0.002},
            [
                "at most 5% of such campaigns call a level better or worse than readwrite",
                "each cell has 10 runs",
                r"Held: 3 changes known to ±0\.\d+% at best and ±0\.\d+% at worst\.",
                r"The control agrees: readwrite, measured a second time, differs from itself by"
                r" [+-]0\.\d+% \([+-]\d\.\d+ to [+-]\d\.\d+%\) in throughput",
            ],
            ["marked", "No control", "did not hold"],
            id="a control that agrees",
        ),
        pytest.param(
            {"compare": COMPARE, "spread": 0.002, "edit": shifted},
            ["The control says that it did not hold", "differs from itself by -66.", "marked †"],
            ["agrees"],
            id="a control that does not",
        ),
        pytest.param(
            {"compare": {**COMPARE, "control": False}, "repeat": RANGE, "spread": 0.002},
            [
                r"each change is known to ±2\.5% in throughput, or stopped after 30 runs",
                r"Held: all of 3 changes known to ±2\.5%, the least precise to ±0\.\d+%\.",
                "No control checked it: `compare: {control: true}`",
            ],
            ["agrees"],
            id="without a control",
        ),
        pytest.param(
            {"compare": {**COMPARE, "control": False}, "repeat": RANGE, "spread": 0.2},
            [r"Held: none of 3 changes known to ±2\.5%, the least precise to ±\d\d"],
            [],
            id="what is not precise is said to be so",
        ),
        pytest.param(
            {"repeat": RANGE, "spread": 0.002, "drift": 0.1},
            [
                "at most 5% of such ranges miss what many more runs would give on average",
                r"each cell is known to ±2\.5%",
                "4 means known",
                r"the cautions below say otherwise \(.*drift",
            ],
            ["control"],
            id="nothing is compared, and runs drift",
        ),
        pytest.param(
            {"repeat": {"confidence": 0.99}},
            ["at most 1% of such ranges"],
            ["say otherwise"],
            id="another confidence",
        ),
    ],
)
def test_the_paragraph_says_what_was_promised_and_what_held(
    tmp_path: Path, made: dict[str, Any], said: list[str], unsaid: list[str]
) -> None:
    paragraph = told(Synth(factors={"send": LEVELS}, **made).write(tmp_path / "r"))
    assert paragraph.startswith("Promised: ")
    for words in said:
        assert re.search(words, paragraph), (words, paragraph)
    for words in unsaid:
        assert words not in paragraph, (words, paragraph)


def test_without_a_run_there_is_no_paragraph(tmp_path: Path) -> None:
    def nothing(record: Record) -> None:
        return None

    report = build(Synth(edit=nothing).write(tmp_path / "r"))
    assert "promise" not in [section.key for section in report.sections]
