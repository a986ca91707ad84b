"""Two results with earlier ones: the interval holds how far campaigns lie apart."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from netbench.read.campaigns import compare_results, find, spread
from netbench.read.gates import judge, parse
from netbench.read.load import load
from netbench.read.matching import differences, match
from netbench.read.result import Result
from netbench.result.redaction import redacted
from netbench.stats.comparison import CUT_SHORT, FEW_RUNS, Comparison
from tests.support.synthetic import Record, Synth, failed

ONE = {"send": ("sendfile",)}
TRIALS = 20_000
LEVELS = (1.004, 0.991, 1.007, 0.998, 1.012)  # of the campaign, in five earlier results


def at(level: float) -> Callable[[Mapping[str, str]], tuple[float, float, float]]:
    return lambda _: (33.0 * level, 0.5, 0.6)


def campaign(folder: Path, level: float = 1.0, seed: int = 7, **fields: object) -> Result:
    made: dict[str, object] = {"factors": ONE, "pairs": ("snd>rcv",), "spread": 0.003, "runs": 10}
    return load(Synth(**made | fields | {"truth": at(level), "seed": seed}).write(folder))  # type: ignore[arg-type]


def series(folder: Path, levels: Sequence[float] = LEVELS, **fields: object) -> list[Result]:
    return [
        campaign(folder / "earlier" / str(n), level, 100 + n, **fields)
        for n, level in enumerate(levels)
    ]


def mean(result: Result) -> float:
    return float(np.log(result.ok["throughput"]).mean())


def against(a: Result, b: Result, folder: Path, margin: float | None = None) -> Comparison:
    (found,) = compare_results(a, b, match(a, b).matches, "throughput", margin, find(folder, a, b))
    return found


def test_the_interval_is_students_with_the_spread_of_earlier_results(tmp_path: Path) -> None:
    earlier = series(tmp_path)
    a, b = campaign(tmp_path / "a", 1.0, 1), campaign(tmp_path / "b", 1.02, 2)
    c = against(a, b, tmp_path)
    sd = float(np.std([mean(each) for each in earlier], ddof=1))
    half = scipy.stats.t.ppf(0.975, 4) * math.sqrt(2) * sd
    assert (c.earlier, c.between) == (5, pytest.approx(sd))
    assert c.freedom == 4
    # all have as many runs: what noise makes of the difference of their variances is all there is
    assert math.log(c.high / c.ratio) == pytest.approx(half, rel=0.05)
    assert c.verdict == "inconclusive"
    assert c.sentence.endswith(f"5 earlier results differ by {sd:.2%} (standard deviation)")
    far = against(a, campaign(tmp_path / "far", 1.2, 2), tmp_path)
    assert (far.verdict, far.unsettled) == ("better", "")
    for runs, least, why in ((3, 3, FEW_RUNS), (2, 10, CUT_SHORT)):
        asks = {"min": least, "max": least}
        few = campaign(tmp_path / f"few{runs}", 1.2, 2, runs=runs, repeat=asks)
        assert against(a, few, tmp_path / "earlier").unsettled == why
    two = campaign(tmp_path / "two", 1.2, 2, runs=2, repeat={"min": 2, "max": 30})
    assert against(a, two, tmp_path / "earlier").freedom < 3, "its two runs say less than they"
    assert against(a, b, tmp_path / "earlier", margin=0.2).verdict == "equivalent"


def test_what_is_no_other_result_of_the_campaign_does_not_count(tmp_path: Path) -> None:
    series(tmp_path, LEVELS[:2])
    a, b = campaign(tmp_path / "a", 1.0, 1), campaign(tmp_path / "b", 1.2, 2)
    shutil.copytree(tmp_path / "a", tmp_path / "copies" / "of-a")
    shutil.copytree(tmp_path / "earlier" / "0", tmp_path / "copies" / "again")
    other = tmp_path / "copies" / "other"
    campaign(other, 1.5, 3)
    (other / "plan.json").write_text((other / "plan.json").read_text().replace("synthetic", "x"))
    broken = tmp_path / "copies" / "broken"
    campaign(broken, 1.5, 4)
    with (broken / "records.jsonl").open("a") as file:
        file.write("{}\n")
    (tmp_path / "copies" / "plan.json").write_text("no plan")
    campaign(tmp_path / "copies" / "another-cell", 1.5, 5, factors={"send": ("splice",)})
    found = find(tmp_path, a, b)
    names = [result.path.name for result in found.results]
    assert names == ["again", "another-cell", "1"]  # a copy counts once, whichever comes first
    assert [note.partition(" (")[0] for note in found.notes if "left out" in note] == [
        note for note in found.notes if str(broken) in note
    ]
    assert against(a, b, tmp_path).earlier == 2


def test_a_campaign_counts_once_however_often_it_is_there(tmp_path: Path) -> None:
    """Whole, in parts before and after it, copied without hosts' names; A and B not at all."""
    earlier = [each.path for each in series(tmp_path, LEVELS[:2])]
    a, b = campaign(tmp_path / "a", 1.0, 1), campaign(tmp_path / "b", 1.2, 2)
    for n, path in enumerate((a.path, b.path, *earlier)):
        for k in (0, 1):
            part = Path(shutil.copytree(path, tmp_path / ("before", "zafter")[k] / f"{n}-{k}"))
            plan = json.loads((part / "plan.json").read_text())
            of = {"number": k + 1, "of": 2, "pairs": ["snd>rcv"]}
            (part / "plan.json").write_text(json.dumps(plan | {"part": of}))
            lines = (part / "records.jsonl").read_text().splitlines(keepends=True)
            (part / "records.jsonl").write_text("".join(lines[k::2]))
        (tmp_path / "copies").mkdir(exist_ok=True)
        redacted(path, tmp_path / "copies" / str(n))
    found = find(tmp_path, a, b)
    copies = [tmp_path / "copies" / f"{n}/synthetic/result" for n in (2, 3)]
    assert [each.path for each in found.results] == copies
    assert against(a, b, tmp_path).earlier == 2
    assert [each.path.name for each in find(tmp_path / "before", a, b).results] == ["2-0", "3-0"]


def test_command_lines_of_two_redacted_copies_are_not_known_to_differ(tmp_path: Path) -> None:
    copies = []
    for line in ("quiet", "isolcpus=1"):
        lines = {"rcv": {"command_line": "quiet"}, "snd": {"command_line": line}}
        made = campaign(tmp_path / line, facts=lines)
        copies.append(load(redacted(made.path, tmp_path / f"of {line}")))
    told = [each.hosts["snd"][0].known["command_line"] for each in copies]
    assert told == ["redacted 1", "redacted 2"]
    assert differences(*copies) == []


def test_one_earlier_result_has_no_spread_and_what_it_differs_in_is_said(tmp_path: Path) -> None:
    series(tmp_path, LEVELS[:1], facts={host: {"kernel": "5.10"} for host in ("snd", "rcv")})
    a, b = campaign(tmp_path / "a", 1.0, 1), campaign(tmp_path / "b", 1.2, 2)
    (note,) = find(tmp_path, a, b).notes
    assert "differs from A in kernel; what that changes is part of the spread" in note
    c = against(a, b, tmp_path)
    assert (c.verdict, c.earlier) == ("inconclusive", 1)


@pytest.mark.parametrize(
    ("some", "verdict", "said"),
    [
        (0, "better", "95% interval"),
        (1, "better", "even if the 4 runs that failed are ranked last"),
        (3, "inconclusive", "12 of 20 runs of B failed, and it does not stand with these ranked"),
    ],
)
def test_a_change_that_failed_runs_could_undo_is_no_verdict(
    tmp_path: Path, some: int, verdict: str, said: str
) -> None:
    """B is faster by 8%, but its slow runs may be those that failed."""

    def flaky(record: Record) -> Record:
        return failed(record, "failed", "reset") if record["block"] % 5 < some else record

    series(tmp_path)
    a = campaign(tmp_path / "a", 1.0, 1)
    c = against(a, campaign(tmp_path / "b", 1.08, 2, runs=20, edit=flaky), tmp_path / "earlier")
    assert (c.verdict, said in c.sentence) == (verdict, True), c.sentence
    assert (c.failures is None) == (some == 0)


def test_means_over_more_boots_say_too_little_of_one_boot(tmp_path: Path) -> None:
    boots = {"boots": 2, "runs": 10, "between": 0.002}
    series(tmp_path, **boots)
    one = [campaign(tmp_path / name, level, 8) for name, level in (("a", 1.0), ("b", 1.2))]
    assert against(one[0], one[1], tmp_path).earlier == 0
    two = [campaign(tmp_path / name, level, 8, **boots) for name, level in (("c", 1.0), ("d", 1.2))]
    c = against(two[0], two[1], tmp_path / "earlier")
    assert (c.unit, c.earlier, c.verdict) == ("boot", 5, "better")


def drawn(campaigns: int, runs: int, sd: float, within: float) -> tuple[np.ndarray, np.ndarray]:
    """Means of campaigns and the variance of each mean by its runs: trials x campaigns."""
    random = np.random.default_rng(campaigns * 1000 + runs)
    values = random.normal(0, within, (TRIALS, campaigns, runs))
    values += random.normal(0, sd, (TRIALS, campaigns, 1))
    return values.mean(axis=-1), values.var(axis=-1, ddof=1) / runs


@pytest.mark.parametrize("sd", [0.0, 0.01, 0.02])
@pytest.mark.parametrize("earlier", [2, 5, 8])
@pytest.mark.parametrize("runs", [(10, 10), (5, 20), (20, 5), (3, 30)])
def test_nothing_is_found_where_nothing_was_changed(
    sd: float, earlier: int, runs: tuple[int, int]
) -> None:
    """runs: of A and of B, and of each earlier result; those differ by 1% within a campaign."""
    history, within = drawn(earlier, runs[1], sd, 0.01)
    both, variances = drawn(2, runs[0], sd, 0.01)
    own = variances.sum(axis=-1)
    freedom = own**2 / (variances**2 / (runs[0] - 1)).sum(axis=-1)
    d, least = both[:, 1] - both[:, 0], np.minimum(earlier - 1, freedom)
    half = scipy.stats.t.ppf(0.975, least) * np.sqrt(spread(history, within, own))
    assert (np.abs(d) > half).mean() <= 0.055
    assert (d + half < math.log(0.98)).mean() <= 0.0275  # a gate of -2%
    alone = scipy.stats.t.ppf(0.975, freedom) * np.sqrt(own)
    if sd == 0.01 and runs[0] == 10:
        assert (np.abs(d) > alone).mean() > 0.5  # what Welch's interval alone would find


def test_a_change_is_found_that_the_spread_does_not_hide() -> None:
    history, within = drawn(8, 10, 0.01, 0.01)
    both, variances = drawn(2, 10, 0.01, 0.01)
    half = scipy.stats.t.ppf(0.975, 7) * np.sqrt(spread(history, within, variances.sum(axis=-1)))
    assert (both[:, 1] - both[:, 0] + 0.08 > half).mean() > 0.95


@pytest.mark.parametrize("forced", [False, True])
def test_a_gate_wants_earlier_results(tmp_path: Path, forced: bool) -> None:
    a, b = campaign(tmp_path / "a", 1.0, 1), campaign(tmp_path / "b", 1.0, 2)
    found = compare_results(a, b, match(a, b).matches, "throughput")
    outcome = judge(parse("throughput<-2%"), {"throughput": found}, forced)
    assert (len(outcome.fell), outcome.held, len(outcome.unjudged)) == (0, forced, not forced)
