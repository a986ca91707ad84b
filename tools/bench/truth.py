"""What verdicts hold: made-up campaigns whose truth is known, judged by the functions that judge
real ones; a row a regime.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from netbench.model import Repeat
from netbench.read.compare import Sides, compared, estimated, log_differences
from netbench.read.verdicts import holm, p_different, p_outside
from netbench.stats.closing import Target
from netbench.stats.comparison import Comparison
from netbench.stats.dependence import correlations, followed, in_common, widened
from netbench.stats.intervals import Numbers, means_of, ratio_confidence
from netbench.stats.pairs import Series
from tools.bench.table import Part, Row

SEED, CAMPAIGNS = 31, 20_000
SPREAD = 0.03
UNTIL = ("precision", "verdict")
BLOCKS = 20
HOW = (
    "Made-up runs go through the functions that estimate, widen, correct and judge those of real"
    " campaigns (netbench/read: dependence, verdicts, closing, failures). Unless a"
    " row says otherwise: two levels, {blocks} blocks, confidence 95%, runs with a standard"
    " deviation of 3%, no level differs, and what is counted are campaigns with a verdict better or"
    " worse. Shares are of {campaigns} campaigns a row, seed {seed}, with exact binomial 95%"
    " intervals (Clopper and Pearson); a budget is of the share itself. `plain` is a paired t with"
    " the same widening for looks."
)
Random = np.random.Generator
Flags = npt.NDArray[np.bool_]
Draw = Callable[[Random, tuple[int, int, int]], Numbers]
"""Logarithms of runs: campaigns by levels by blocks."""


# --- how runs vary ---


def normal(rng: Random, shape: tuple[int, int, int], spread: float = SPREAD) -> Numbers:
    return spread * rng.standard_normal(shape)


def heavy(rng: Random, shape: tuple[int, int, int]) -> Numbers:
    """Student's t with 3 degrees of freedom."""
    return SPREAD * rng.standard_t(3, shape)


def skewed(rng: Random, shape: tuple[int, int, int]) -> Numbers:
    """Log-normal times: most are short, and some very long."""
    return -np.log1p(SPREAD * rng.lognormal(0, 1, shape))


def of_machine(rng: Random, shape: tuple[int, int, int], machine: Numbers) -> Numbers:
    """What the machine does to all runs of a block, a row a campaign or one for all."""
    return normal(rng, shape) + np.atleast_2d(machine)[:, None, :]


def drifting(rng: Random, shape: tuple[int, int, int]) -> Numbers:
    return of_machine(rng, shape, np.linspace(0, -0.1, shape[2]))


def warming(rng: Random, shape: tuple[int, int, int]) -> Numbers:
    return of_machine(rng, shape, -0.1 * np.exp(-np.arange(shape[2]) / 2.0))


def series(rng: Random, shape: tuple[int, ...], r: float) -> Numbers:
    """An autoregression of order 1, of deviation 1, along the last axis."""
    found = rng.standard_normal(shape)
    for i in range(1, shape[-1]):
        found[..., i] = r * found[..., i - 1] + math.sqrt(1 - r * r) * found[..., i]
    return found


def following(rng: Random, shape: tuple[int, int, int], r: float) -> Numbers:
    """Runs of each level follow the one before of the same level."""
    return SPREAD * series(rng, shape, r)


following_half = partial(following, r=0.5)


def slow_machine(rng: Random, shape: tuple[int, int, int]) -> Numbers:
    return of_machine(rng, shape, SPREAD * series(rng, (shape[0], shape[2]), 0.9))


def modes(rng: Random, shape: tuple[int, int, int]) -> Numbers:
    """A fifth of the runs are 30% slower."""
    return normal(rng, shape, 0.01) + math.log(0.7) * (rng.random(shape) < 0.2)


# --- what is counted ---


def judged(
    differences: Numbers, repeat: Repeat, *, fixed: bool = False, plain: bool = False
) -> tuple[Flags, Flags]:
    """Which of the comparisons (campaigns by comparisons by units) have a verdict, and which of
    these are flagged.
    """
    estimate = means_of if plain or fixed else followed
    means = estimate(differences)
    p = p_different(means.mean, means.error, means.freedom)
    levels = holm(p, partial(ratio_confidence, repeat, fixed=fixed))
    found = np.asarray(p <= 1 - levels)
    if plain or fixed:
        return found, np.zeros_like(found)
    doubt = widened(means_of(differences), in_common(*correlations(differences))[:, None])
    turned = p_different(doubt.mean, doubt.error, doubt.freedom) > 1 - levels
    return found, found & turned


def fixed_size(n: int) -> Repeat:
    return Repeat(min=n, max=n)


def verdicts(
    rng: Random,
    campaigns: int,
    draw: Draw = normal,
    *,
    comparisons: int = 1,
    n: int = BLOCKS,
    effect: float = 0.0,
    plain: bool = False,
    unflagged: bool = False,
    flagged: bool = False,
) -> Flags:
    """Campaigns in which any level has a verdict."""
    logs = draw(rng, (campaigns, comparisons + 1, n))
    differences = logs[:, 1:] - logs[:, :1] + math.log1p(effect)
    found, doubtful = judged(differences, fixed_size(n), plain=plain)
    counted = doubtful if flagged else found & ~doubtful if unflagged else found
    return np.asarray(counted.any(axis=1))


def in_boots(rng: Random, campaigns: int, boots: int, builds: int = 0) -> Flags:
    """Two kernels whose boots differ by 2%, and whose builds do by 2%, 5 blocks a boot."""
    logs = normal(rng, (campaigns, 2, max(boots, 1) * 5)).reshape(campaigns, 2, boots, 5)
    means = logs.mean(axis=-1) + normal(rng, (campaigns, 2, boots), 0.02)
    if builds:
        of_build = normal(rng, (campaigns, 2, builds), 0.02)
        means = means.reshape(campaigns, 2, builds, -1).mean(axis=-1) + of_build
    return judged(means[:, 1:] - means[:, :1], fixed_size(5), fixed=True)[0][:, 0]


def sequential(
    rng: Random,
    campaigns: int,
    repeat: Repeat,
    effect: float,
    spread: float = SPREAD,
    plain: bool = False,
) -> Flags:
    """One comparison that ends when it is settled, at the earliest at repeat.min blocks."""
    logs = normal(rng, (campaigns, 2, repeat.max), spread)
    differences = logs[:, 1] - logs[:, 0] + math.log1p(effect)
    estimate, target = (means_of if plain else followed), Target(repeat)
    found, still_open = np.zeros(campaigns, dtype=bool), np.arange(campaigns)
    for n in range(repeat.min, repeat.max + 1):
        seen = differences[still_open, :n]
        closed = target.met(estimate(seen), fixed=False) | (n == repeat.max)
        if closed.any():
            found[still_open[closed]] = judged(seen[closed, None], repeat, plain=plain)[0][:, 0]
        still_open = still_open[~closed]
    return found


def equivalent(rng: Random, campaigns: int, ratio: float, spread: float) -> Flags:
    """One comparison with a margin of 3%."""
    repeat = fixed_size(BLOCKS)
    logs = normal(rng, (campaigns, 2, BLOCKS), spread)
    means = followed(logs[:, 1] - logs[:, 0] + math.log(ratio))
    p = p_outside(means.mean, means.error, means.freedom, 0.03)
    return np.asarray(p <= 1 - ratio_confidence(repeat, sides=1))


def _one(n: int) -> Comparison:
    return Comparison("x", "b", "a", {}, "", "throughput", n, confidence=0.95)


def failing(
    rng: Random,
    campaigns: int,
    slow: float,
    fails: float,
    *,
    unseen: bool = False,
    made_up: bool = False,
    effect: float = 0.0,
    at_random: float = 0.0,
    plain: bool = False,
) -> Flags:
    """One comparison: a share of runs is 30% slower, of both levels alike (unseen: of the second
    alone; made_up: whose others are faster, so that the means are equal), and fails with a
    probability, in the second level alone. at_random: runs of both fail.
    """
    n, repeat = BLOCKS, fixed_size(BLOCKS)
    are_slow = rng.random((campaigns, 2, n)) < slow
    lost = are_slow & (rng.random(are_slow.shape) < fails)
    lost[:, 0] = False
    lost |= rng.random(lost.shape) < at_random
    if unseen:
        are_slow[:, 0] = False
    logs = normal(rng, are_slow.shape, 0.02) + math.log(0.7) * are_slow
    logs[:, 1] += math.log1p(effect) - (slow * math.log(0.7) if made_up else 0)
    made = [_halves(*each) for each in zip(logs, lost, strict=True)]
    family = []
    for ok, bad in made:
        sides = Sides(_one(n), ok[1], ok[0], (None, None) if plain else (bad[1], bad[0]))
        family += compared([sides], repeat, _estimate)
    return np.array([c.verdict in ("better", "worse") for c in family])


def _estimate(sides: Sides) -> Comparison:
    return estimated(*log_differences(sides, 1, {}))


def _halves(logs: Numbers, lost: Flags) -> tuple[list[Series], list[Series | None]]:
    """The runs of two levels that are ok, and those that failed."""
    made = []
    for which in (~lost, lost):
        places = [np.flatnonzero(each) for each in which]
        made.append(
            [
                Series(at, np.zeros_like(at), np.exp(each[at]))
                for each, at in zip(logs, places, strict=True)
            ]
        )
    return made[0], [each if len(each.values) else None for each in made[1]]


def wider(rng: Random, campaigns: int, n: int) -> Numbers:
    """How much wider than plain t an interval of independent differences is."""
    values = normal(rng, (campaigns, 1, n))[:, 0]
    return followed(values).half_widths(0.95) / means_of(values).half_widths(0.95)


# --- the table ---


@dataclass(frozen=True)
class Regime:
    """A row: what is counted, or averaged, in so many campaigns, and between which bounds it must
    be. beside: the same by a plain t, over which the bounds are.
    """

    what: str
    counted: Callable[[Random, int], Numbers | Flags]
    least: float = 0.0
    most: float = math.inf
    beside: Callable[[Random, int], Flags] | None = None

    @property
    def is_bound(self) -> bool:
        return self.least > 0 or math.isfinite(self.most)

    def measured(
        self, counted: Callable[[Random, int], Numbers | Flags], campaigns: int
    ) -> Numbers:
        """Of one and of a plain t, the runs are the same."""
        rng = np.random.default_rng([SEED, *self.what.encode()])
        return np.asarray(counted(rng, campaigns), dtype=float)

    def shares(self, campaigns: int) -> tuple[float, float]:
        """What is measured, and the same by plain t (0: there is none)."""
        made = (self.counted, self.beside)
        ours, plain = (float(self.measured(x, campaigns).mean()) if x else 0.0 for x in made)
        return ours, plain

    def row(self, campaigns: int) -> Row:
        share, plain = self.shares(campaigns)
        ratio = share / plain if plain else share
        looks = f"n = {campaigns}"
        if "width" not in self.what:
            low, high = binomial(round(share * campaigns), campaigns)
            looks = f"{percent(low)} to {percent(high)}, {looks}"
        told = percent(share) if "width" not in self.what else f"{share:.3f}"
        bounds = f"at least {self.least:g}" if self.least else ""
        if math.isfinite(self.most):
            bounds = f"{self.least:g} to {self.most:g}" if self.least else f"at most {self.most:g}"
        return Row(
            self.what,
            told,
            f"plain: {percent(plain)}, ratio {ratio:.3f}" if plain else "",
            looks,
            bounds,
            self.least <= ratio <= self.most if self.is_bound else None,
        )


def binomial(hits: int, looks: int, confidence: float = 0.95) -> tuple[float, float]:
    """The exact interval of a share (Clopper and Pearson 1934, doi:10.1093/biomet/26.4.404)."""
    misses, tail = looks - hits, (1 - confidence) / 2
    low = float(betaincinv(hits, misses + 1, tail)) if hits else 0.0
    return low, float(betaincinv(hits + 1, misses, 1 - tail)) if misses else 1.0


def percent(share: float) -> str:
    """`4.9%`, `0.08%`, `0%`."""
    return f"{share:.1%}" if share >= 0.01 or share == 0 else f"{share:.2%}"


FALSE = 0.055


def table() -> Iterator[Regime]:
    """All regimes."""
    for each in (_equal, _following, _power, _failing, _equivalent):
        yield from each()


def _equal() -> Iterator[Regime]:
    draws = {
        "independent": normal,
        "Student's t with 3 degrees of freedom": heavy,
        "log-normal": skewed,
        "the machine drifts by 10%": drifting,
        "the machine warms up": warming,
        "the machine follows itself, AR 0.9": slow_machine,
        "two modes in both levels": modes,
    }
    for what, draw in draws.items():
        for many in (1, 6, 24):
            least = 0.04 if (draw, many) == (normal, 1) else 0.0
            made = partial(verdicts, draw=draw, comparisons=many)
            yield Regime(f"{what}, comparisons: {many}", made, least, FALSE)
    for boots in (2, 3, 4, 8):
        made = partial(in_boots, boots=boots)
        yield Regime(f"{boots} boots of each of two kernels", made, most=FALSE)
    for builds in (2, 4):
        made = partial(in_boots, boots=2 * builds, builds=builds)
        yield Regime(f"{builds} builds of 2 boots", made, most=FALSE)
    for until in UNTIL:
        made = partial(sequential, repeat=Repeat(min=5, max=30, until=until), effect=0.0)
        yield Regime(f"5 to 30 blocks, until: {until}", made, most=FALSE)


def _following() -> Iterator[Regime]:
    for r, most in ((0.3, 0.07), (0.5, 0.08)):
        for n, limit in ((30, most), (10, math.inf)):
            made = partial(verdicts, draw=partial(following, r=r), n=n)
            yield Regime(f"levels follow themselves, AR {r}, {n} blocks", made, most=limit)
            yield Regime(f"AR {r}, {n} blocks: without a flag", partial(made, unflagged=True))


def _power() -> Iterator[Regime]:
    for n in (5, 8, 10, 20, 30):
        most = 1.1 if n < 30 else math.inf
        yield Regime(f"mean width over plain t, {n} blocks", partial(wider, n=n), most=most)
    for spread, effect, n in ((0.01, 0.05, 5), (0.01, 0.03, 8), (0.03, 0.05, 10), (0.03, 0.03, 20)):
        made = partial(verdicts, draw=partial(normal, spread=spread), n=n, effect=effect)
        what = f"sd {spread:.0%}, effect {effect:.0%}, {n} blocks"
        if n <= 10:
            yield Regime(f"power: {what}", made, 0.95, beside=partial(made, plain=True))
        yield Regime(f"{what}: flagged", partial(made, flagged=True), most=0.1)
    for until in UNTIL:
        for spread, effect in ((0.03, 0.05), (0.01, 0.02)):
            repeat = Repeat(min=5, max=30, until=until)
            made = partial(sequential, repeat=repeat, spread=spread, effect=effect)
            what = f"power: sd {spread:.0%}, effect {effect:.0%}, 5 to 30 blocks, until: {until}"
            yield Regime(what, made, 0.95, beside=partial(made, plain=True))


def _failing() -> Iterator[Regime]:
    for slow, fails in ((0.1, 1.0), (0.2, 1.0), (0.2, 0.8)):
        made = partial(failing, slow=slow, fails=fails)
        what = f"{slow:.0%} slow by 30%, {fails:.0%} of these fail in one level"
        yield Regime(what, made, most=FALSE)
        alone = partial(made, unseen=True)
        yield Regime(f"{what}, which alone has them", alone, most=FALSE)
        faster = partial(alone, made_up=True)
        yield Regime(f"{what}, which alone has them; its others are faster for it", faster)
    made = partial(failing, slow=0.0, fails=0.0, effect=0.02, at_random=0.05)
    plain = partial(made, plain=True)
    yield Regime("power: 5% of all runs fail, effect 2%", made, 0.75, beside=plain)


def _equivalent() -> Iterator[Regime]:
    made = partial(equivalent, ratio=0.97, spread=0.01)
    yield Regime("at the margin of 3%, sd 1%: a false `equivalent`", made, 0.04, FALSE)
    made = partial(equivalent, ratio=1.0, spread=0.03)
    yield Regime("margin 3%, sd 3%, equal: `equivalent`", made)


def measure() -> Part:
    """A row for each regime."""
    campaigns = int(os.environ.get("TRUTH_CAMPAIGNS", CAMPAIGNS))
    how = HOW.format(blocks=BLOCKS, campaigns=campaigns, seed=SEED)
    return Part("Verdicts that hold", how, tuple(each.row(campaigns) for each in table()))
