"""Shares of variance: against figures worked by hand, R's analysis of variance (slow), and by
simulation that their intervals hold them as often as they say.
"""

from __future__ import annotations

import math
import subprocess
from itertools import pairwise

import numpy as np
import pytest

from netbench.analysis.dependence import Dependence
from netbench.analysis.intervals import Numbers
from netbench.analysis.shares import component, shares, terms_of
from tests.unit.analysis.test_agreement import program as program  # a fixture

HAND = np.array([[[1.0, 1.0], [3.0, 9.0]], [[0.5, 2.5], [6.5, 10.5]]])
"""Two units of 2x2 cells: their components are 2.5 and 3.5, twice 1.5, 1.5 and 0.5."""


def test_components_of_a_table_worked_by_hand() -> None:
    means = HAND.mean(axis=0, keepdims=True)
    assert component(means, (0,)).ravel() == pytest.approx([-3, 3])
    assert component(means, (1,)).ravel() == pytest.approx([-1.5, 1.5])
    assert component(means, (0, 1)).ravel() == pytest.approx([1, -1, -1, 1])


def test_shares_worked_by_hand() -> None:
    """Each component's mean squared, less half its variance over the two units; the runs of the
    cells lie 0.5, 1.5, 3.5 and 1.5 apart.
    """
    found = shares(HAND, 0.95)
    a, b, ab, runs = 9 - 0.25, 2.25, 1 - 0.25, (0.5**2 + 1.5**2 + 3.5**2 + 1.5**2) / 2 / 4
    whole = a + b + ab + runs
    told = [share.value for share in found.terms.values()]
    assert told == pytest.approx([a / whole, b / whole, ab / whole])
    assert (found.runs, found.higher) == pytest.approx((runs / whole, 0.0))
    assert all(math.isnan(share.low) for share in found.terms.values())  # two units


def test_what_three_factors_do_together_is_told_apart() -> None:
    rng = np.random.default_rng(1)
    signs = np.array([-1.0, 1.0])
    cube = np.einsum("i,j,k->ijk", signs, signs, signs)
    found = shares(cube + 0.01 * rng.standard_normal((8, 2, 2, 2)), 0.95)
    assert found.higher == pytest.approx(1, abs=0.001)
    assert max(share.value for share in found.terms.values()) < 0.001


def test_without_variance_nothing_is_known() -> None:
    found = shares(np.ones((5, 2, 2)), 0.95)
    assert all(math.isnan(share.value) for share in found.terms.values())


def test_dependent_blocks_widen_the_intervals() -> None:
    table = _table((0.5, 0.2, 0.1), (2, 2), 12, np.random.default_rng(2))
    plain, wider = (
        [s.high - s.low for s in shares(table, 0.95, each).terms.values()]
        for each in (Dependence(), Dependence(0.4, 0.1, 4))
    )
    assert all(b > a for a, b in zip(plain, wider, strict=True))


def _table(
    wanted: tuple[float, ...], shape: tuple[int, ...], n: int, rng: np.random.Generator
) -> Numbers:
    """Units with something in common, and effects of two factors with known shares."""
    pattern = np.random.default_rng(5).standard_normal((1, *shape))
    table = np.zeros((n, *shape))
    for term, share in zip(terms_of(2), wanted, strict=True):
        part = component(pattern, term)
        table = table + part * math.sqrt(share / float(np.square(part).mean()))
    rest = 1 - sum(wanted)
    own = math.sqrt(0.6 * rest) * rng.standard_normal(table.shape)
    common = math.sqrt(0.4 * rest) * rng.standard_normal((n, 1, 1))
    return np.asarray(table + own + common)


TRIALS = 1000


@pytest.mark.parametrize("n", [4, 10, 20])
@pytest.mark.parametrize("wanted", [(0.6, 0.1, 0.02), (0.3, 0.0, 0.05), (0.02, 0.02, 0.0)])
def test_intervals_hold_the_share(n: int, wanted: tuple[float, ...]) -> None:
    rng = np.random.default_rng([n, len(wanted)])
    held = np.zeros(3)
    for _ in range(TRIALS):
        found = shares(_table(wanted, (3, 2), n, rng), 0.95).terms.values()
        held += [
            s.low - 1e-9 <= true <= s.high + 1e-9 for s, true in zip(found, wanted, strict=True)
        ]
    assert (held / TRIALS > 0.93).all(), held / TRIALS


def test_more_units_make_intervals_narrower() -> None:
    widths = []
    for n in (5, 20, 80):
        found = shares(_table((0.5, 0.1, 0.1), (2, 2), n, np.random.default_rng(n)), 0.95)
        widths.append(found.terms[0,].high - found.terms[0,].low)
    assert all(b < 0.7 * a for a, b in pairwise(widths))


R_SCRIPT = """
options(digits = 17)
d <- read.table(file("stdin"), header = TRUE, colClasses = c(rep("factor", 3), "numeric"))
s <- summary(aov(y ~ a * b + Error(u / (a * b)), data = d))
for (term in c("Error: u:a", "Error: u:b", "Error: u:a:b")) {
  t <- s[[term]][[1]]
  cat(t[1, "Sum Sq"], t[2, "Mean Sq"], t[1, "F value"], t[1, "Pr(>F)"], "\\n")
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("program", ["Rscript r-base-core"], indirect=True)
def test_r_splits_the_same(program: str) -> None:
    """R's sums of squares and error strata of the same table give our shares."""
    shape, n = (3, 2), 7
    table = _table((0.4, 0.2, 0.1), shape, n, np.random.default_rng(9))
    rows = [f"{u} {a} {b} {float(table[u, a, b])!r}" for u, a, b in np.ndindex(*table.shape)]
    said = subprocess.run(
        [program, "-e", R_SCRIPT],
        input="\n".join(["u a b y", *rows]) + "\n",
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found, cells = shares(table, 0.95), math.prod(shape)
    runs = float(table.var(axis=0, ddof=1).mean())
    parts = []
    for term, line in zip(terms_of(2), said.splitlines(), strict=True):
        squares, error, _, _ = (float(word) for word in line.split())
        freedom = math.prod(shape[at] - 1 for at in term)
        parts.append((squares - freedom * error) / (n * cells))
    whole = runs + sum(parts)
    assert [s.value for s in found.terms.values()] == pytest.approx([p / whole for p in parts])
