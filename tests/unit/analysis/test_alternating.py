"""Two states measured in turns: pairs of campaigns against scipy's paired t, the order of time, and
by simulation that a drift is no difference.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from netbench import api
from netbench.base.errors import RequestError
from netbench.read.campaigns import in_turns, matched, turns
from netbench.read.load import load
from netbench.read.result import Result
from netbench.stats.comparison import Comparison
from tests.support.synthetic import Record, Synth, failed

ONE = {"send": ("sendfile",)}


def campaign(folder: Path, level: float, day: int, **fields: object) -> Path:
    """A campaign that begins on a day of March."""

    def begin(record: Record) -> Record:
        record["started"] = f"2026-03-{day:02d}{record['started'][10:]}"
        return record

    made: dict[str, object] = {"factors": ONE, "pairs": ("snd>rcv",), "spread": 0.003, "runs": 10}
    known = made | {"truth": lambda _: (33.0 * level, 0.5, 0.6), "seed": day, "edit": begin}
    return Synth(**known | fields).write(folder)  # type: ignore[arg-type]


def paths(folder: Path, levels: Sequence[float], order: str = "ABAB") -> tuple[list[Path], ...]:
    """Campaigns of A and of B with these levels, in the order of time."""
    made: dict[str, list[Path]] = {"A": [], "B": []}
    for day, (state, level) in enumerate(zip(order, levels, strict=True), 1):
        made[state].append(campaign(folder / f"{state}{day}", level, day))
    return made["A"], made["B"]


def answer(a: Sequence[Path], b: Sequence[Path]) -> Comparison:
    taken = turns([load(each) for each in a], [load(each) for each in b])
    cells, places = matched(taken)
    (found,) = in_turns(taken, cells.matches, places, "throughput")
    return found


def mean(result: Result) -> float:
    return float(np.log(result.ok["throughput"]).mean())


def test_it_is_students_paired_t_of_campaigns(tmp_path: Path) -> None:
    a, b = paths(tmp_path, (1.0, 1.05, 0.99, 1.03, 1.01, 1.07), "ABABAB")
    c = answer(a, b)
    differences = [mean(load(y)) - mean(load(x)) for x, y in zip(a, b, strict=True)]
    test = scipy.stats.ttest_1samp(differences, 0)
    interval = test.confidence_interval(0.95)
    assert (c.n, c.unit, c.freedom) == (3, "campaign", 2)
    assert c.p == pytest.approx(test.pvalue)
    assert (math.log(c.low), math.log(c.high)) == pytest.approx((interval.low, interval.high))
    assert (c.verdict, c.names) == ("better", ("B", "A"))
    assert c.sentence.startswith("B moves 5.")


def test_drift_from_pair_to_pair_cancels_whatever_the_order_of_arguments(tmp_path: Path) -> None:
    a, b = paths(tmp_path, (1.0, 1.03, 0.9, 0.927, 0.8, 0.824), "ABABAB")
    for c in (answer(a, b), answer(a[::-1], b)):  # pairs are by time
        assert (c.verdict, c.ratio) == ("better", pytest.approx(1.03, abs=0.003))
        assert c.high - c.low < 0.02


@pytest.mark.parametrize(("order", "alternate"), [("ABBA", True), ("BAAB", True), ("AABB", False)])
def test_turns_are_checked(tmp_path: Path, order: str, alternate: bool) -> None:
    a, b = paths(tmp_path, (1.0, 1.03, 1.03, 1.0), order)
    taken = turns([load(each) for each in a], [load(each) for each in b])
    assert (taken.order, taken.alternate) == (" ".join(order), alternate)
    c = answer(a, b)
    assert math.isnan(c.low) == (not alternate)
    if not alternate:
        assert (c.verdict, c.why) == ("inconclusive", "the campaigns took no turns (A A B B)")


def test_a_difference_that_failed_runs_could_undo_is_no_verdict(tmp_path: Path) -> None:
    a, b = paths(tmp_path / "x", (1.0, 1.05, 1.001, 1.051))
    assert answer(a, b).verdict == "better"

    def flaky(record: Record) -> Record:
        record["started"] = f"2026-03-09{record['started'][10:]}"
        return failed(record, "failed", "reset") if record["block"] % 2 else record

    c = answer(a, [b[0], campaign(tmp_path / "flaky", 1.05, 9, edit=flaky)])
    assert c.failures is not None
    assert (c.failures.failed, c.verdict) == (5, "inconclusive")


@pytest.mark.parametrize(
    ("order", "levels"), [("ABAB", (1.0, 0.9, 1.001, 0.902)), ("AABB", (1.0, 1.0, 0.9, 0.9))]
)
def test_gates_fall_in_turns_and_are_refused_without(
    tmp_path: Path, order: str, levels: Sequence[float]
) -> None:
    a, b = paths(tmp_path, levels, order)
    found = api.compare(a[0], b[0], more=[a[1], b[1]], abab=True, gates=["throughput<-2%"])
    taken, alternate = " ".join(order), order == "ABAB"
    assert (found.fell, not found.refusal) == (alternate, alternate)
    if not alternate:
        told = f"cannot judge throughput<-2%: the campaigns took no turns ({taken})"
        assert told in found.refusal
    assert found.to_json()["turns"] == {"order": taken, "alternate": alternate}
    assert list(found.results) == ["A", "B", "A2", "B2"]


def test_what_cannot_be_asked_says_why(tmp_path: Path) -> None:
    a, b = paths(tmp_path, (1.0, 1.0, 1.0, 1.0))
    for more, asked, why in (
        ([a[1]], {"abab": True}, "two of each"),
        ([a[1], b[1]], {}, "--abab"),
        ([a[0], b[1]], {"abab": True}, "named twice"),
        ([a[1], b[1]], {"abab": True, "history": tmp_path}, "with --abab the campaigns"),
    ):
        with pytest.raises(RequestError, match=why):
            api.compare(a[0], b[0], more=more, **asked)  # type: ignore[arg-type]
