"""Intervals, p values and effects of 200 random data sets, against scipy's; slow: R's."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Iterator, Sequence
from itertools import islice
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from netbench.model import Repeat
from netbench.read.campaigns import compare_results
from netbench.read.compare import for_factor
from netbench.read.matching import Match
from netbench.stats.by_boot import split
from netbench.stats.comparison import Comparison
from netbench.stats.intervals import Numbers, mean_interval
from tests.support.outside import installed

SETS = 200
CONFIDENCES = (0.8, 0.9, 0.95, 0.99, 0.999)
EXACT = 1e-9


def samples(levels: int, apart: float = 0.02) -> Iterator[tuple[list[Numbers], float]]:
    """Values above 0 of each level, over six orders of magnitude, whose blocks share something."""
    for seed in range(SETS):
        rng = np.random.default_rng([levels, seed])
        n = int(rng.integers(3, 31))
        unit, common = 10.0 ** rng.uniform(-3, 3), rng.normal(0, rng.uniform(0, 0.1), n)
        spread = 10.0 ** rng.uniform(-4, -0.7)
        means = rng.normal(0, apart, levels)
        values = [unit * np.exp(common + m + rng.normal(0, spread, n)) for m in means]
        yield values, CONFIDENCES[seed % len(CONFIDENCES)]


def fixed(confidence: float) -> Repeat:
    """A rule that looks once: nothing is widened."""
    return Repeat(min=10, max=10, confidence=confidence)


def frame(sets: Sequence[Sequence[Numbers]]) -> pd.DataFrame:
    """Runs of a pair each set; the factor x has the levels l0, l1 and so on, and each is a cell."""
    rows = [
        (f"a>b{at:03}", f"x=l{level}", f"l{level}", block, 0, value)
        for at, levels in enumerate(sets)
        for level, values in enumerate(levels)
        for block, value in enumerate(values)
    ]
    columns = ["pair", "cell", "x", "block", "boot", "throughput"]
    names = sorted({row[2] for row in rows})
    return pd.DataFrame(rows, columns=columns).astype({"x": pd.CategoricalDtype(names)})


def paired(sets: Sequence[Sequence[Numbers]], confidence: float) -> list[Comparison]:
    """The comparisons of all levels of all sets with l0, one family."""
    return for_factor(
        frame(sets), "x", "l0", metric="throughput", factors=["x"], repeat=fixed(confidence)
    )


def unpaired(sets: Sequence[Sequence[Numbers]], confidence: float) -> list[Comparison]:
    """Two results with a cell each set."""

    def result(at: int) -> Any:
        """As much of a Result as a comparison looks at."""
        known = {
            "swept": (),
            "repeat": fixed(confidence),
            "describe": lambda _: SimpleNamespace(better=1),
        }
        runs = frame([[levels[at]] for levels in sets])
        return SimpleNamespace(ok=runs, lost=lambda _: runs[:0], **known)

    pairs = [f"a>b{at:03}" for at in range(len(sets))]
    cells = [Match(("x=l0", pair), ("x=l0", pair), {}, pair) for pair in pairs]
    return compare_results(result(0), result(1), cells, "throughput")


def by_confidence(levels: int) -> Iterator[tuple[list[list[Numbers]], float]]:
    """The data sets of each confidence together: a family costs as much as a comparison."""
    sets = list(samples(levels))
    for confidence in CONFIDENCES:
        yield [values for values, wanted in sets if wanted == confidence], confidence


def near(*values: Any) -> Any:
    return pytest.approx(values, rel=EXACT, abs=1e-12)


def test_means_are_students() -> None:
    for (values,), confidence in samples(1):
        found = mean_interval(values, confidence)
        asked = scipy.stats.ttest_1samp(values, 0).confidence_interval(confidence)
        assert (found.mean, found.sd) == near(np.mean(values), np.std(values, ddof=1))
        assert (found.low, found.high) == near(asked.low, asked.high)


def test_paired_ratios_are_students() -> None:
    """Where blocks follow each other, error and freedom are other ones: the rest must agree."""
    plain = 0
    for sets, confidence in by_confidence(2):
        for (base, mine), found in zip(sets, paired(sets, confidence), strict=True):
            logs = np.log(mine) - np.log(base)
            assert found.ratio == pytest.approx(scipy.stats.gmean(mine) / scipy.stats.gmean(base))
            assert found.error >= scipy.stats.sem(logs) * (1 - EXACT)
            assert found.freedom <= len(logs) - 1
            t = scipy.stats.t(found.freedom, logs.mean(), found.error)
            assert (found.low, found.high) == near(*np.exp(t.interval(found.corrected)))
            assert found.p == pytest.approx(2 * min(t.cdf(0), t.sf(0)), rel=1e-7)
            if found.freedom == len(logs) - 1:
                plain += 1
                test = scipy.stats.ttest_rel(np.log(mine), np.log(base))
                asked = test.confidence_interval(found.corrected)
                assert (found.low, found.high) == near(math.exp(asked.low), math.exp(asked.high))
                assert found.p == pytest.approx(test.pvalue, rel=1e-7)
    assert plain > SETS / 4


def test_unpaired_ratios_are_welchs() -> None:
    for sets, confidence in by_confidence(2):
        uneven = [[a, b[: max(2, len(b) - i % 5)] * (1 + i % 3)] for i, (a, b) in enumerate(sets)]
        for (there, here), found in zip(uneven, unpaired(uneven, confidence), strict=True):
            test = scipy.stats.ttest_ind(np.log(here), np.log(there), equal_var=False)
            asked = test.confidence_interval(found.corrected)
            assert (found.low, found.high) == near(math.exp(asked.low), math.exp(asked.high))
            assert found.freedom == pytest.approx(test.df)
            assert found.p == pytest.approx(test.pvalue, rel=1e-6)


def test_boots_are_an_analysis_of_variance() -> None:
    for boots, _ in samples(4):
        if len(boots[0]) < 2:
            continue
        number = np.repeat(np.arange(4), [len(boot) for boot in boots])
        found = split(np.concatenate(boots), number)
        assert found is not None
        test = scipy.stats.f_oneway(*boots)
        f = 1 + len(boots[0]) * (found.between / found.within) ** 2
        assert f == pytest.approx(max(1.0, test.statistic))


def holm(p: Sequence[float]) -> Numbers:
    """Adjusted p values by the definition."""
    order = np.argsort(p)
    scaled = np.asarray(p)[order] * (len(p) - np.arange(len(p)))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1)
    return adjusted


def test_families_are_holms() -> None:
    """SETS comparisons and more in families of six."""
    outcomes = set()
    for levels, confidence in islice(samples(7), 1 + SETS // 6):
        family = paired([levels], confidence)
        for c, p in zip(family, holm([c.p for c in family]), strict=True):
            assert (c.low > 1 or c.high < 1) == (p < 1 - confidence), (c, p)
            outcomes.add(bool(p < 1 - confidence))
    assert outcomes == {True, False}


@pytest.fixture(scope="module")
def program(request: pytest.FixtureRequest) -> str:
    """A program of a Debian package, given as `program package`."""
    return installed(*request.param.split())


R_SCRIPT = """
options(digits = 17)
for (line in readLines(file("stdin"))) {
  parts <- strsplit(line, ";")[[1]]
  confidence <- as.numeric(parts[1])
  a <- as.numeric(strsplit(parts[2], " ")[[1]])
  b <- as.numeric(strsplit(parts[3], " ")[[1]])
  p <- as.numeric(strsplit(parts[4], " ")[[1]])
  one <- t.test(a, conf.level = confidence)
  two <- t.test(log(b), log(a), conf.level = confidence)
  cat(one$conf.int, two$conf.int, two$parameter, two$p.value, p.adjust(p, "holm"), "\\n")
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("program", ["Rscript r-base-core"], indirect=True)
def test_r_says_the_same(program: str) -> None:
    asked, known = [], []
    for seed, ((a, b), confidence) in enumerate(samples(2)):
        words = (" ".join(repr(float(v)) for v in values) for values in (a, b))
        p = (np.random.default_rng(seed).random(6) ** 3).tolist()
        asked.append(";".join((repr(confidence), *words, " ".join(map(repr, p)))))
        mean, (ratio,) = mean_interval(a, confidence), unpaired([[a, b]], confidence)
        logs = math.log(ratio.low), math.log(ratio.high)
        known.append([mean.low, mean.high, *logs, ratio.freedom, ratio.p, *holm(p)])
    argv, lines = [program, "-e", R_SCRIPT], "\n".join(asked) + "\n"
    said = subprocess.run(argv, input=lines, capture_output=True, text=True, check=True).stdout
    for line, ours in zip(said.split("\n")[:SETS], known, strict=True):
        assert [float(word) for word in line.split()] == pytest.approx(ours, rel=1e-7, abs=1e-12)
