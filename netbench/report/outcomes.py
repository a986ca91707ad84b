"""What each comparison of a campaign is to a machine that reads test results: passed, failed (it is
worse), or skipped (nothing can be said).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from netbench.base.control_characters import escape_controls
from netbench.read.shown_levels import shown
from netbench.report.letter import compared, where
from netbench.report.source import Source
from netbench.report.titles import sentence
from netbench.stats.comparison import SURE, Comparison

PASS, FAIL, SKIP = "pass", "fail", "skip"


@dataclass(frozen=True)
class Outcome:
    """`state`: of PASS, FAIL and SKIP; `why` it is skipped; `told`: the comparison in words;
    `seconds`: how long the runs of its level took.
    """

    metric: str
    name: str
    state: str
    why: str
    told: str
    seconds: float


def outcomes(source: Source) -> Iterator[Outcome]:
    """Of each comparison, in the order of the report. Errors: as letter.compared."""
    for c in compared(source):
        place = where(source, c)
        name = f"{c.factor}={shown(c.level)} against {shown(c.baseline)}"
        state = FAIL if c.verdict == "worse" else PASS if c.verdict in SURE else SKIP
        why = (c.why or c.unsettled or "inconclusive") if state == SKIP else ""
        name, told = _line(f"{name} {place}"), _line(sentence(c, source.result))
        yield Outcome(_line(c.metric), name, state, _line(why), told, _seconds(source, c))


def _line(text: str) -> str:
    """Words from outside on one line."""
    return " ".join(escape_controls(text).split())


def _seconds(source: Source, c: Comparison) -> float:
    """How long the runs of a level took, each until the next one of the campaign began; the last
    run of all is not known to have ended.
    """
    cell = source.cell_of(c, c.level)
    runs = source.result.runs.sort_values("run")
    took = runs["started"].diff().shift(-1).dt.total_seconds()
    mine = (runs["cell"] == (cell.cell if cell else "")) & (runs["pair"] == c.pair)
    return float(took[mine].sum())
