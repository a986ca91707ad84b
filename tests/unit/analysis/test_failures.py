"""Failed runs: what verdicts stand whatever these would have shown."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import scipy.stats

from netbench.model import Repeat
from netbench.read.compare import for_factor
from netbench.read.gates import judge, parse
from netbench.read.result import Result
from netbench.report import first
from netbench.report.build import build
from netbench.report.source import Source
from netbench.stats.comparison import Comparison
from netbench.stats.failures import ranked
from netbench.stats.intervals import NAN
from netbench.stats.pairs import Series
from tests.support.synthetic import Record, Synth, failed

Numbers = npt.NDArray[np.float64]


def compare(
    old: Numbers, new: Numbers, failed: dict[str, list[int]], margin: float | None = None
) -> Comparison:
    """One comparison of two levels over blocks; failed: by level, blocks without a value."""
    blocks = np.arange(len(old))
    frames = {"ok": [], "failed": []}
    for level, values in (("old", old), ("new", new)):
        lost = np.isin(blocks, failed.get(level, []))
        for status, rows in (("ok", ~lost), ("failed", lost)):
            columns = {"pair": "a>b", "block": blocks[rows], "boot": 0, "x": level}
            frames[status].append(pd.DataFrame(columns | {"throughput": values[rows]}))
    kind = pd.CategoricalDtype(["old", "new"])
    ok, bad = (pd.concat(frames[s]).astype({"x": kind}).assign(status=s) for s in ("ok", "failed"))
    asked = {"metric": "throughput", "factors": ["x"], "repeat": Repeat(len(old), len(old))}
    planned = [{"x": "old"}, {"x": "new"}]
    (found,) = for_factor(ok, "x", "old", margin=margin, planned=planned, failed=bad, **asked)  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize(("lost", "who"), [("new", "x=new"), ("old", "x=old")])
def test_a_level_whose_runs_all_failed_is_not_said_to_have_had_none(lost: str, who: str) -> None:
    told = compare(steady(1.0), steady(1.2), {lost: list(range(20))}).why
    assert told == f"no run of {who} has a value here; 20 runs failed"


def steady(factor: float, n: int = 20) -> Numbers:
    return factor * np.exp(np.random.default_rng(7).normal(0, 0.01, n))


OLD = steady(1.0)


@pytest.mark.parametrize(
    ("new", "lost", "margin", "verdict", "said"),
    [
        (steady(1.2), {}, None, "better", ""),
        (steady(1.2), {"new": [3, 9]}, None, "better", "even if the 2 runs that failed"),
        (steady(0.8), {"new": [3, 9]}, None, "worse", "even if the 2 runs that failed"),
        (steady(1.2), {"new": [4], "old": [4]}, None, "better", "even if the 2 runs"),
        (steady(1.012), {"new": [1, 3, 9, 12]}, None, "inconclusive", "4 of 20 runs of x=new"),
        (steady(1.012), {"old": [1, 3, 9, 12]}, None, "better", "even if the 4 runs that failed"),
        (steady(0.988), {"old": [1, 3, 9, 12]}, None, "inconclusive", "4 of 20 runs of x=old"),
        (steady(1.0), {"new": [1]}, 0.05, "equivalent", "even if the 1 run that failed"),
        (steady(1.0), {"new": [1, 3, 9]}, 0.008, "inconclusive", "does not stand with these"),
    ],
)
def test_a_verdict_stands_whatever_failed_runs_would_have_shown(
    new: Numbers, lost: dict[str, list[int]], margin: float | None, verdict: str, said: str
) -> None:
    found = compare(OLD, new * np.exp(np.random.default_rng(4).normal(0, 0.01, 20)), lost, margin)
    assert (found.verdict, said in found.sentence) == (verdict, True), found.sentence
    assert (found.failures is None) == (not lost)
    if lost:
        assert found.failures is not None
        assert found.failures.stands == (verdict != "inconclusive")
        assert found.failures.failed == len(lost.get("new", []))
        assert found.n == 20 - len(set(lost.get("new", []) + lost.get("old", [])))


def test_failed_runs_of_known_boots_are_ranked_last() -> None:
    def series(block: list[int], boot: list[int], values: list[float]) -> Series:
        return Series(np.array(block), np.array(boot), np.array(values))

    mine, base = series([0, 1, 2], [1, 1, 1], [1, 5, 5]), series([3, 4, 5], [2, 2, 2], [4, 6, 5])
    lost = series([6, 7], [1, 2], [0, 0])  # the second: its boot did not come up
    for lowest in (True, False):
        filled, same = ranked(mine, lost, base, None, lowest=lowest)
        values = [1, 5, 5, -1 if lowest else 9, 4, 6, 5]
        ranks = scipy.stats.rankdata(values) / 7
        assert filled.block.tolist() == [0, 1, 2, 6]
        assert [*filled.logs, *same.logs] == pytest.approx(ranks)


@pytest.mark.parametrize("moves", [True, False])
@pytest.mark.parametrize(("every", "verdict"), [(6, "better"), (2, "inconclusive")])
def test_a_result_says_what_stands(tmp_path: Path, moves: bool, every: int, verdict: str) -> None:
    """So where nothing moved in these runs, which leaves them without a demand."""

    def flaky(record: Record) -> Record:
        if record["factors"]["send"] != "sendfile" or record["block"] % every:
            return record
        record["receiver"]["flow"]["bytes"][1] = record["receiver"]["flow"]["bytes"][0]
        return failed(record, "failed", "reset") if moves else record

    source = Source.of(Synth(runs=24, edit=flaky).write(tmp_path / "r"))
    for c in source.compare("send", "readwrite", "sender_demand"):
        assert c.verdict == verdict
    gate = judge(parse("sender_demand>2%"), {"sender_demand": [c]})
    assert (gate.passed, len(gate.unjudged)) == (every == 6, every == 2)


@pytest.mark.parametrize(
    ("speed", "limit", "lost"), [(1, 2, 1), (1, 2, 9), (0.95, 20, 9), (0.98, 2, 9)]
)
def test_a_gate_stands_with_failed_runs_ranked_last(speed: float, limit: int, lost: int) -> None:
    new = speed * OLD * np.exp(np.random.default_rng(4).normal(0, 0.005, 20))
    found = compare(OLD, new, {"new": list(range(0, 2 * lost, 2))})
    outcome = judge(parse(f"throughput<-{limit}%"), {"throughput": [found]})
    assert (outcome.passed, len(outcome.unjudged)) == (lost == 1, lost == 9)


def test_a_run_that_lacks_what_its_cell_has_is_lost() -> None:
    runs = pd.DataFrame({"cell": [*"aabb"], "pair": "x", "status": "ok", "p99": [1.0] + [NAN] * 3})
    assert [*Result.lost(SimpleNamespace(runs=runs, ok=runs), "p99").index] == [1]  # type: ignore[arg-type]


@pytest.mark.parametrize("status", ["refused", "unsupported"])
def test_a_level_that_cannot_be_run_is_told_so_once(tmp_path: Path, status: str) -> None:
    def lacking(record: Record) -> Record:
        never = record["factors"]["send"] == "sendfile"
        return failed(record, status, "no such thing") if never else record

    compare = {"factor": "send", "baseline": "readwrite"}
    report = build(Synth(runs=6, edit=lacking, compare=compare).write(tmp_path / "r"))
    assert len(report.source.answers) > 1
    for family in report.source.answers.values():
        whys = {c.why for c in family if c.level == "sendfile"}
        assert whys == {f"send=sendfile is {status} here"}
    places = {c.context["pin"] for c in report.source.answers["throughput"]}
    assert first.render(report, 200).count(f"is {status} here") == len(places)
