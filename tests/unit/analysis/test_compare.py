"""Comparisons: scipy's paired t test, Holm by hand, verdicts, the ratios of a post of 2006."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import scipy.stats

from netbench.model import Repeat
from netbench.read.compare import for_factor, in_result
from netbench.read.gates import judge, parse
from netbench.read.load import load
from netbench.read.verdicts import corrected, judged
from netbench.read.verdicts import tested as estimated
from netbench.report.phrases import gate_line
from netbench.stats.comparison import Comparison
from netbench.stats.pairs import Series, differences
from netbench.stats.words import bounds
from tests.support.synthetic import Record, Synth, failed, scaled

FIXED = Repeat(min=10, max=10)


def frame(levels: dict[str, np.ndarray], boots: dict[str, list[int]] | None = None) -> pd.DataFrame:
    """Runs of one pair with the factor x."""
    rows = [
        ("a>b", block, boots[level][block] if boots else 0, level, value)
        for level, values in levels.items()
        for block, value in enumerate(values)
        if not math.isnan(value)
    ]
    found = pd.DataFrame(rows, columns=["pair", "block", "boot", "x", "throughput"])
    return found.astype({"x": pd.CategoricalDtype(list(levels))})


def compare(
    runs: pd.DataFrame, repeat: Repeat = FIXED, margin: float | None = None
) -> list[Comparison]:
    return for_factor(
        runs, "x", "old", metric="throughput", factors=["x"], repeat=repeat, margin=margin
    )


def test_only_common_blocks_are_paired() -> None:
    old = np.array([1.0, 1.1, 0.9, 1.05, math.nan, 1.0])
    (found,) = compare(frame({"old": old, "new": np.array([2.0, 2.2, math.nan, 2.1, 9.0, 2.0])}))
    assert found.n == 4
    assert found.ratio == pytest.approx(2.0)


IN_ORDER, SHUFFLED = np.arange(4), np.array([2, 0, 3, 1])


@pytest.mark.parametrize("of_base", [IN_ORDER, SHUFFLED], ids=["base in order", "shuffled"])
@pytest.mark.parametrize("places", [IN_ORDER, SHUFFLED], ids=["in order", "shuffled"])
def test_runs_are_paired_by_block_whatever_their_order(
    places: npt.NDArray[np.int64], of_base: npt.NDArray[np.int64]
) -> None:
    boots = np.zeros(4, dtype=np.int64)
    mine, base = Series(places, boots, 2.0 + places), Series(of_base, boots, 1.0 + of_base)
    unit, found = differences(mine, base, 1, {})
    assert unit == "block"
    assert found == pytest.approx(np.log([2 / 1, 3 / 2, 4 / 3, 5 / 4]))


@pytest.mark.parametrize(
    ("low", "high", "better", "margin", "verdict"),
    [
        (1.02, 1.05, 1, None, "better"),
        (1.02, 1.05, -1, None, "worse"),
        (0.95, 0.98, -1, None, "better"),
        (0.95, 0.98, 1, None, "worse"),
        (0.995, 1.005, 1, 0.01, "equivalent"),
        (0.99, 1.01, 1, None, "inconclusive"),  # without a margin never equivalent
        (1.002, 1.008, 1, 0.01, "equivalent"),  # beyond 0 and wholly inside the margin
        (1.002, 1.02, 1, 0.01, "better"),  # beyond 0 and not wholly inside
        (0.98, 1.005, 1, 0.01, "inconclusive"),
        (0.99, 1.01, 1, 0.01, "equivalent"),
    ],
)
def test_verdicts(low: float, high: float, better: int, margin: float | None, verdict: str) -> None:
    half, d = math.log(high / low) / 2, math.log(high * low) / 2
    empty = Comparison("x", "b", "a", {}, "", "throughput", 9, confidence=0.95)
    error = half / float(scipy.stats.t.ppf(0.975, 8))
    made = estimated(empty.but(better=better, margin=margin), d, error, 8)
    assert judged(made, 0.95, 0.95).verdict == verdict


def test_across_boots_the_boot_is_the_unit() -> None:
    rng = np.random.default_rng(9)
    boots = {"old": [0, 0, 2, 2, 4, 4], "new": [1, 1, 3, 3, 5, 5]}  # two kernels: never in one boot
    levels = {name: np.exp(rng.normal(0.1 * (name == "new"), 0.01, 6)) for name in boots}
    (found,) = compare(frame(levels, boots))
    per_boot = {name: np.log(values).reshape(3, 2).mean(axis=1) for name, values in levels.items()}
    test = scipy.stats.ttest_rel(per_boot["new"], per_boot["old"])
    assert (found.unit, found.n) == ("boot", 3)
    assert found.p == pytest.approx(test.pvalue)


def test_within_shared_boots_differences_are_of_blocks_and_count_as_their_mean() -> None:
    """Three boots that both levels share; one block lacks a level."""
    rng = np.random.default_rng(4)
    block = rng.normal(0, 0.3, 9)
    old, new = np.exp(block + rng.normal(0, 0.01, 9)), np.exp(block + rng.normal(0.05, 0.01, 9))
    old[4] = math.nan
    boots = [1, 1, 1, 2, 2, 2, 3, 3, 3]
    (found,) = compare(frame({"old": old, "new": new}, {"old": boots, "new": boots}))
    apart = np.log(new) - np.log(old)
    test = scipy.stats.ttest_1samp([np.nanmean(apart[i : i + 3]) for i in (0, 3, 6)], 0)
    assert (found.unit, found.n) == ("boot", 3)
    assert found.p == pytest.approx(test.pvalue)


def test_boots_of_different_number_are_paired_from_the_first() -> None:
    old, new = np.array([1.0, 2.0, 4.0, 8.0]), np.array([1.1, 2.2, 4.4, math.nan])
    (found,) = compare(frame({"old": old, "new": new}, {"old": [1, 3, 5, 7], "new": [2, 4, 6, 8]}))
    assert (found.n, found.ratio) == (3, pytest.approx(1.1))


def stepped(lost: Callable[[Record, int], bool], made: Callable[[Record], Record | None]) -> Synth:
    """Two kernels whose rounds differ by 50%: paired with another round a ratio is far off."""
    factors = {"kernel": ("a", "b"), "send": ("readwrite", "sendfile")}
    rounds = {boot: at // 2 for at, (boot, _) in enumerate(Synth(factors, boots=4).booted())}

    def step(record: Record) -> Record | None:
        place = rounds[record["boot"]]
        return made(record) if lost(record, place) else scaled(record, 1.5**place)

    return Synth(factors, runs=12, boots=4, spread=0.001, edit=step)


def test_a_cell_that_failed_in_one_boot_stays_in_step(tmp_path: Path) -> None:
    def is_lost(record: Record, place: int) -> bool:
        return record["cell"] == "kernel=a,send=sendfile" and place == 1

    synth = stepped(is_lost, lambda record: failed(record, "failed", "reset"))
    result = load(synth.write(tmp_path / "r"))
    asked = {"metric": "throughput", "factors": result.factors, "repeat": result.repeat}
    for order in (result.rounds, None):
        found = for_factor(result.ok, "kernel", "a", order=order, **asked)  # type: ignore[arg-type]
        assert [c.n for c in found] == [4, 3]
        assert [c.ratio for c in found] == pytest.approx([1, 1], abs=0.005)


def test_a_boot_that_nothing_ran_in_keeps_its_round(tmp_path: Path) -> None:
    def is_lost(record: Record, place: int) -> bool:
        return (record["factors"]["kernel"], place) == ("a", 1)

    result = load(stepped(is_lost, lambda record: None).write(tmp_path / "r"))
    for c in in_result(result, "throughput", "kernel", "a"):
        assert (c.n, c.ratio) == (3, pytest.approx(1, abs=0.005))
    by_round = {
        kernel: {result.rounds[boot] for boot in result.kernels if result.kernels[boot] == kernel}
        for kernel in "ab"
    }
    assert by_round == {"a": {0, 2, 3}, "b": {0, 1, 2, 3}}


def test_a_level_that_was_planned_and_has_no_run_is_told(tmp_path: Path) -> None:
    def refused(record: Record) -> Record:
        is_refused = record["factors"] == {"send": "sendfile", "pin": "apart"}
        return failed(record, "refused", "no") if is_refused else record

    result = load(Synth(runs=6, edit=refused).write(tmp_path / "r"))
    asked = {"metric": "throughput", "factors": result.factors, "repeat": result.repeat}
    planned = [cell.factors for cell in result.cells]
    missed = [("none", ""), ("apart", "no run of send=sendfile has a value here")]
    for cells, told in ((planned, missed), (planned[:3], missed[:1])):  # what was excluded is not
        found = for_factor(result.ok, "send", "readwrite", planned=cells, **asked)  # type: ignore[arg-type]
        assert [(c.context["pin"], c.why) for c in found] == told


@pytest.mark.parametrize(
    ("repeat", "verdict"),
    [
        (Repeat(min=3, max=3), "inconclusive"),
        (Repeat(min=3, max=4), "better"),
        (Repeat(min=4, max=9), "inconclusive"),  # it ended early
        (Repeat(min=3, max=3, boots=3), "better"),
    ],
)
def test_few_runs_have_no_verdict(repeat: Repeat, verdict: str) -> None:
    boots = {level: [repeat.boots > 1 and n for n in range(3)] for level in ("old", "new")}
    runs = frame({"old": np.array([1.0, 1.01, 0.99]), "new": np.array([2.0, 2.01, 2.02])}, boots)
    (found,) = compare(runs, repeat)
    assert found.low > 1.5
    assert (found.verdict, "few runs" in found.unsettled) == (verdict, verdict == "inconclusive")
    assert ("few runs" in found.sentence) == found.refused
    outcome = judge(parse("throughput>10%"), {"throughput": [found]})
    assert (bool(outcome.fell), bool(outcome.unjudged)) == (not found.refused, found.refused)
    assert ("x=new: too few runs" in gate_line(outcome, False)) == found.refused


def test_a_quantile_that_no_run_has_requests_for_says_so() -> None:
    runs = frame({"old": np.full(6, np.inf), "new": np.arange(1.0, 7.0)})
    runs = runs.rename(columns={"throughput": "p99.9"}).replace(np.inf, np.nan)
    (found,) = for_factor(runs, "x", "old", metric="p99.9", factors=["x"], repeat=FIXED)
    assert found.why == "no run of x=old has a p99.9: needs 10,000 requests"
    assert found.sentence.startswith("x=new against x=old in p99.9: no comparison")


@pytest.mark.parametrize(
    ("old", "new", "boots", "why"),
    [
        ([1.0, 1.1], [0.0, 1.0], None, "0, which has no ratio"),
        ([1.0, math.nan], [math.nan, 1.0], None, "no block in common"),
        ([1.0, math.nan], [2.0, math.nan], None, "one block has no interval"),
        ([1.0, 1.1], [2.0, 2.1], {"old": [1, 1], "new": [2, 2]}, "one boot has no interval"),
    ],
)
def test_what_cannot_be_compared_says_why(
    old: list[float], new: list[float], boots: dict[str, list[int]] | None, why: str
) -> None:
    (found,) = compare(frame({"old": np.array(old), "new": np.array(new)}, boots))
    assert found.verdict == "inconclusive"
    assert math.isnan(found.low)
    assert why in found.why
    assert why in found.sentence


def test_what_a_whole_context_lacks_is_told_where_it_could_have_it(tmp_path: Path) -> None:
    """And where all of its runs failed, or none was made; not that bulk has no latency."""

    def lacking(record: Record) -> Record:
        return failed(record, "failed", "gone") if record["pair"] == "c>d" else record

    synth = Synth(runs=8, pairs=("a>b", "c>d"), edit=lacking)
    result = load(synth.write(tmp_path / "r"))
    found = in_result(result, "throughput", "send", "readwrite", everywhere=True)
    assert sum(c.why.endswith("here; 8 runs failed") for c in found) == 2 == len(found) / 2
    of_one = replace(synth, edit=lambda record: record if record["pair"] == "a>b" else None)
    made = load(of_one.write(tmp_path / "of one"))
    found = in_result(made, "throughput", "send", "readwrite", everywhere=True)
    assert sum("no run of" in c.why for c in found if c.pair == "c>d") == 2 == len(found) / 2
    planned = [cell.factors for cell in result.cells]
    for metric, mean in (("p99", "latency"), ("service_p99", "service_latency")):
        runs = result.ok.assign(**{mean: math.nan, metric: math.nan})
        runs.loc[runs["pin"] == "none", mean] = 1.0
        asked = {"metric": metric, "factors": result.swept, "repeat": result.repeat}
        found = for_factor(runs, "send", "readwrite", planned=planned, **asked, everywhere=["a>b"])
        assert {(c.pair, c.context["pin"]) for c in found} == {("a>b", "none")}


def test_a_metric_of_a_tools_own_is_not_called_cpu() -> None:
    c = Comparison("x", "new", "old", {}, "", "power_demand", 4, ratio=1.5, low=1.4, high=1.6)
    assert "has 50.0% more power_demand than" in c.sentence


def test_all_other_factors_equal(tmp_path: Path) -> None:
    result = load(Synth(runs=8, pairs=("a>b", "c>d")).write(tmp_path / "r"))
    found = in_result(result, "throughput", "send", "readwrite")
    assert {(c.pair, c.context["pin"]) for c in found} == {
        (p, x) for p in ("a>b", "c>d") for x in ("none", "apart")
    }
    for c in found:
        assert c.ratio == pytest.approx(33 / 18, rel=0.02)
        assert c.verdict == "better"
    some = result.ok[(result.ok["pin"] == "none") & (result.ok["pair"] == "a>b")]
    asked = {"metric": "throughput", "factors": result.swept, "repeat": result.repeat}
    no_base = [{"send": "readwrite", "pin": "none"}]  # as `exclude` leaves it
    assert for_factor(some, "pin", "apart", planned=no_base, **asked) == []


@pytest.mark.parametrize(
    ("numbers", "metric", "more", "said"),
    [
        (
            (1.311, 1.302, 1.321),
            "throughput",
            {},
            "moves 31.1% more than ONE, 95% interval 30.2 to 32.1%",
        ),
        (
            (0.34, 0.32, 0.36),
            "system_demand",
            {},
            "uses 66.0% less CPU per KB than ONE, 95% interval 64.0 to 68.0% (2.9 times)",
        ),
        (
            (1.001, 0.995, 1.006),
            "throughput",
            {"verdict": "equivalent", "margin": 0.01},
            "moves as much as ONE, within the margin of 1%: 95% interval 0.50% less to 0.60% more",
        ),
        (
            (1.01, 0.98, 1.04),
            "throughput",
            {"verdict": "inconclusive"},
            "moves 1.0% more than ONE, 95% interval 2.0% less to 4.0% more: inconclusive",
        ),
    ],
)
def test_sentences(
    numbers: tuple[float, float, float], metric: str, more: dict[str, object], said: str
) -> None:
    known = dict(zip(("ratio", "low", "high"), numbers, strict=True), confidence=0.95)
    empty = Comparison("send", "sendfile", "readwrite", {}, "a>b", metric, 10)
    found = empty.but(**{"verdict": "better"} | known | more)
    assert found.sentence == f"send=sendfile {said.replace('ONE', 'send=readwrite')}"


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (1e-5, 25476.0, "over 99.9% less to over 10 times as much"),
        (1.5, 50.0, "50.0% more to over 10 times as much"),
        (1e-5, 0.5, "50.0 to over 99.9% less"),
    ],
)
def test_bounds_tell_their_direction(low: float, high: float, said: str) -> None:
    assert bounds(low, high) == said


def test_no_difference_and_no_spread() -> None:
    (found,) = compare(frame({"old": np.ones(3), "new": np.ones(3)}))
    assert (found.ratio, found.low, found.high, found.verdict) == (1.0, 1.0, 1.0, "inconclusive")


def six(d: float, margin: float | None, trials: int, **asked: object) -> list[list[Comparison]]:
    """Families of six comparisons of ten blocks at a true log ratio."""
    drawn = np.random.default_rng(14).normal(d, 0.01, (trials, 6, 10))
    empty = Comparison("x", "b", "a", {}, "p", "throughput", 10, margin=margin, confidence=0.95)
    return [
        corrected(
            [
                estimated(replace(empty, sd=s), m, s / math.sqrt(10), 9)
                for m, s in zip(values.mean(1), values.std(1, ddof=1), strict=True)
            ],
            FIXED._replace(**asked),
        )
        for values in drawn
    ]


def test_any_false_equivalent_of_six_at_the_margin_is_rare() -> None:
    found = six(math.log1p(-0.03), 0.03, 800)
    assert 0 < sum(any(c.verdict == "equivalent" for c in f) for f in found) <= 0.055 * len(found)
