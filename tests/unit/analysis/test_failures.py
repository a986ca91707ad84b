"""Failed runs: the exact test against scipy, what verdicts stand, and how often false ones do."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import scipy.stats

from netbench.analysis.compare import for_factor
from netbench.analysis.comparison import Comparison
from netbench.analysis.failures import completed, failing_levels, fisher
from netbench.analysis.load import load
from netbench.analysis.pairs import Series
from netbench.model import Repeat
from netbench.report.source import Source
from tests.support.synthetic import Record, Synth, failed

Numbers = npt.NDArray[np.float64]


def compare(
    old: Numbers, new: Numbers, failed: dict[str, list[int]], margin: float | None = None
) -> Comparison:
    """One comparison of two levels over blocks; failed: blocks by level, of which values are not
    looked at.
    """
    blocks = np.arange(len(old))
    frames = {"ok": [], "failed": []}
    for level, values in (("old", old), ("new", new)):
        lost = np.isin(blocks, failed.get(level, []))
        for status, rows in (("ok", ~lost), ("failed", lost)):
            columns = {"pair": "a>b", "block": blocks[rows], "boot": 0, "x": level}
            frames[status].append(pd.DataFrame(columns | {"throughput": values[rows]}))
    kind = pd.CategoricalDtype(["old", "new"])
    ok, bad = (pd.concat(frames[s]).astype({"x": kind}) for s in ("ok", "failed"))
    (found,) = for_factor(
        ok,
        "x",
        "old",
        metric="throughput",
        factors=["x"],
        repeat=Repeat(min=len(old), max=len(old)),
        margin=margin,
        planned=[{"x": "old"}, {"x": "new"}],
        failed=bad,
    )
    return found


def test_the_exact_test_is_scipys() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        runs, others = (int(n) for n in rng.integers(1, 40, 2))
        k, other = int(rng.integers(0, runs + 1)), int(rng.integers(0, others + 1))
        table = [[k, runs - k], [other, others - other]]
        expected = scipy.stats.fisher_exact(table).pvalue
        assert fisher(k, runs, other, others) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("lost", "why"),
    [
        ("new", "new has no ok run here: 20 runs failed"),
        ("old", "the baseline old has no ok run here: 20 runs failed"),
    ],
)
def test_a_level_whose_runs_all_failed_is_not_said_to_have_had_none(lost: str, why: str) -> None:
    assert compare(steady(1.0), steady(1.2), {lost: list(range(20))}).why == why


def steady(factor: float, n: int = 20) -> Numbers:
    return factor * np.exp(np.random.default_rng(7).normal(0, 0.01, n))


OLD = steady(1.0)


@pytest.mark.parametrize(
    ("new", "lost", "margin", "verdict", "said"),
    [
        (steady(1.2), {}, None, "better", ""),
        (steady(1.2), {"new": [3, 9]}, None, "better", "even if the 2 runs that failed had"),
        (steady(1.2), {"old": [3]}, None, "better", "even if the 1 run that failed had"),
        (steady(0.8), {"new": [3, 9]}, None, "worse", "even if the 2 runs that failed had"),
        (steady(1.2), {"new": [4], "old": [4]}, None, "better", "even if the 2 runs"),
        (steady(1.012), {"new": [1, 3, 9, 12]}, None, "inconclusive", "4 of 20 runs of x=new"),
        (steady(1.012), {"old": [1, 3, 9, 12]}, None, "inconclusive", "4 of 20 runs of x=old"),
        (steady(1.0), {"new": [1]}, 0.05, "equivalent", "even if the 1 run that failed had"),
        (steady(1.0), {"new": [1, 3, 9]}, 0.008, "inconclusive", "it turns if these had"),
    ],
)
def test_a_verdict_stands_whatever_failed_runs_would_have_shown(
    new: Numbers, lost: dict[str, list[int]], margin: float | None, verdict: str, said: str
) -> None:
    rng = np.random.default_rng(4)
    found = compare(OLD, new * np.exp(rng.normal(0, 0.01, 20)), lost, margin)
    assert (found.verdict, said in found.sentence) == (verdict, True), found.sentence
    assert (found.failures is None) == (not lost)
    if lost:
        assert found.failures is not None
        assert found.failures.stands == (verdict != "inconclusive")
        assert found.failures.failed == len(lost.get("new", []))
        assert found.n == 20 - len(set(lost.get("new", []) + lost.get("old", [])))


def test_failed_runs_of_unknown_boots_and_of_both_are_left_out() -> None:
    def series(block: list[int], boot: list[int], values: list[float]) -> Series:
        return Series(np.array(block), np.array(boot), np.array(values))

    mine, base = series([0, 1, 2], [1, 1, 1], [1, 2, 3]), series([3, 4, 5], [2, 2, 2], [4, 5, 6])
    lost = series([6, 7], [1, 2], [0, 0])  # the second: its boot did not come up
    filled, same = completed(mine, lost, base, None, up=False)
    assert (filled.block.tolist(), filled.values.tolist()) == ([0, 1, 2, 6], [1, 2, 3, 1])
    assert same is base
    both = series([6], [1], [0])
    base = series([0, 1, 2], [1, 1, 1], [4, 5, 6])
    assert completed(mine, both, base, both, up=True) == (mine, base)


def false_verdicts(chance: float, two_modes: bool, trials: int, n: int = 15) -> float:
    """Share of verdicts where levels are equal and slow runs of one fail with this chance."""
    rng, wrong = np.random.default_rng([round(chance * 10), two_modes]), 0
    for _ in range(trials):
        values = np.exp(rng.normal(0, 0.02, (2, n)))
        slow = rng.random((2, n)) < 0.2 if two_modes else values < np.exp(-0.01)
        values *= np.where(slow & two_modes, 0.7, 1)
        lost = np.flatnonzero(slow[1] & (rng.random(n) < chance)).tolist()
        wrong += compare(values[0], values[1], {"new": lost}).verdict != "inconclusive"
    return wrong / trials


@pytest.mark.parametrize("two_modes", [False, True])
def test_slow_runs_that_fail_make_no_verdict(two_modes: bool) -> None:
    """Of what is left, half or more would be verdicts."""
    trials = 40
    assert false_verdicts(1.0, two_modes, trials, 40) <= 0.055 + 3 * math.sqrt(0.05 * 0.95 / trials)


def test_levels_that_fail_more_often_are_named() -> None:
    status = ["failed"] * 8 + ["ok"] * 12 + ["ok"] * 19 + ["failed"] + ["ok"] * 20 + ["refused"]
    level = ["a"] * 20 + ["b"] * 20 + ["c"] * 21
    runs = pd.DataFrame({"status": status, "x": level, "y": ["p", "q"] * 30 + ["p"]})
    (found,) = failing_levels(runs, ["x", "y"])
    assert (found.level, found.failed, found.runs) == ("a", 8, 20)
    assert (found.others_failed, found.others_runs) == (1, 40)
    assert found.p == pytest.approx(scipy.stats.fisher_exact([[8, 12], [1, 39]]).pvalue * 5)
    assert failing_levels(runs[runs["status"] == "ok"], ["x", "y"]) == []


def test_a_result_says_which_level_fails_and_what_stands(tmp_path: Path) -> None:
    def flaky(record: Record) -> Record:
        slow = record["factors"]["send"] == "sendfile" and record["block"] % 3 == 0
        return failed(record, "failed", "reset") if slow else record

    source = Source.of(Synth(runs=12, edit=flaky).write(tmp_path / "r"))
    (caution,) = [c for c in source.cautions if c.kind == "failing_level"]
    assert "Runs of send=sendfile fail more often" in caution.what
    assert caution.evidence.startswith("8 of 24 against 0 of 24, p = ")
    for c in source.compare("send", "readwrite", "throughput"):
        assert c.verdict == "better"
        assert c.sentence.endswith("even if the 4 runs that failed had the worst values seen")
        assert c.failures is not None
        assert c.failures.p == pytest.approx(fisher(4, 12, 0, 12))
    assert load(source.result.path).failed.shape[0] == 8
