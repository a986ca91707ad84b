"""Time to conclusion: the demo's grid to ±2.5% by netbench, beside netperf's loop simulated on the
same machine's variance.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

import netbench
from netbench.analysis.intervals import Numbers, mean_interval, sequential_confidence, t_quantile
from netbench.result_files import PlannedCell
from tools.bench import command
from tools.bench.table import Part, Row

CAMPAIGN = Path(__file__).resolve().parents[2] / "campaigns" / "loopback.yaml"
CONFIDENCE, PRECISION = 0.95, 0.025
RUNS_MAX = 300  # beyond the campaign's own: a cell is to end by its precision
LIMIT = "2m"
ITERATION = 10.0  # seconds, netperf's default -l
REPEATS = 3  # real runs of that length in each cell
REPETITIONS = 4000
SEED = 95
BUDGET = 1 / 3
HOW = (
    "netbench: `campaigns/loopback.yaml` without `compare`, so that each cell closes when its own"
    " 95% interval of mean throughput is ±2.5% or narrower; at least {minimum} and at most"
    f" {RUNS_MAX} runs, limit {LIMIT}; wall time of `python -m netbench run` with its checks,"
    " verification and report. netperf: `-I 95,5 -i 30,3 -l 10` as its manual describes it,"
    " simulated: one cell after the other, iterations of 10 s, at least 3 and at most 30, until"
    " the 95% t interval of mean throughput is 5% wide (±2.5%). The values are normal, with the"
    f" mean and standard deviation of {REPEATS} real runs of 10 s in each cell, made by netbench"
    f" back to back without warm-up; {REPETITIONS} passes over the grid, seed {SEED}. netperf's"
    f" time is the mean with these deviations as they are; the intervals count how little {REPEATS}"
    " runs tell of a deviation, and how long netbench's own rule would take another time"
    " (simulated likewise)."
)
NOTES = (
    (
        "netperf itself is not run: Debian has it in non-free only. Nothing but its iterations is"
        " counted (no start, no calibration), and no CPU (-c -C), whose intervals its rule would"
        " wait for too."
    ),
    (
        "What differs: an iteration of 10 s averages one connection's moments, but draws one"
        " connection only; netbench's runs (200 ms after 100 ms of warm-up) draw a new one each"
        " time. netbench visits cells in random blocks, so that slow drift reaches all of them;"
        " netperf's loop sees a cell for its own minutes alone. netbench widens its intervals for"
        " looking after every block; netperf does not, and stops sooner for it."
    ),
    (
        "The runs of 10 s follow netbench's campaign: what disturbs the machine during one of them"
        " counts for that side alone. The second row is free of this: it is the least that"
        " netperf's loop can take, whatever the variance."
    ),
    (
        "Older sources of netperf end one iteration before the maximum that the manual gives; that"
        " is at most 10 s a cell."
    ),
)

Counts = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Rule:
    """Repeat between `minimum` (2 or more) and `maximum` times, until the t interval's half-width
    is `precision` of the mean.
    """

    minimum: int
    maximum: int
    confidence: float
    precision: float = PRECISION


NETPERF = Rule(3, 30, CONFIDENCE)


@dataclass(frozen=True)
class Spread:
    """What was measured of a cell: `n` values, their mean and standard deviation."""

    n: int
    mean: float
    sd: float


def stops(values: Numbers, rule: Rule) -> tuple[Counts, Flags]:
    """When each row of `values` (one repetition each, `rule.maximum` columns) ends, and whether by
    its precision.
    """
    n = np.arange(1, rule.maximum + 1)
    base = values[:, :1]  # differences from it lose no digits in the squares
    sums, squares = np.cumsum(values - base, axis=1), np.cumsum((values - base) ** 2, axis=1)
    variance = np.maximum(squares - sums**2 / n, 0) / np.maximum(n - 1, 1)
    factors = np.array(
        [np.inf, *(t_quantile(int(count), rule.confidence) for count in n[1:])]
    ) / np.sqrt(n)
    with np.errstate(invalid="ignore"):  # the first column: no deviation of one value
        precise: Flags = factors * np.sqrt(variance) <= rule.precision * np.abs(base + sums / n)
    precise[:, : rule.minimum - 1] = False
    reached = np.asarray(precise.any(axis=1))
    return np.where(reached, precise.argmax(axis=1) + 1, rule.maximum).astype(np.int64), reached


def draw(cell: Spread, rule: Rule, rng: np.random.Generator, known: bool) -> Numbers:
    """REPETITIONS rows of values as a cell could give them.

    `known`: mean and deviation are what was measured. Otherwise each row has its own, as likely as
    the measured ones leave them (the posterior of a normal sample without prior knowledge).
    """
    sd = np.full((REPETITIONS, 1), cell.sd)
    mean = np.full((REPETITIONS, 1), cell.mean)
    if not known:
        sd *= np.sqrt((cell.n - 1) / rng.chisquare(cell.n - 1, (REPETITIONS, 1)))
        mean += sd / np.sqrt(cell.n) * rng.standard_normal((REPETITIONS, 1))
    return mean + sd * rng.standard_normal((REPETITIONS, rule.maximum))


@dataclass(frozen=True)
class Passes:
    """Simulated passes over the grid: runs of all cells together, and cells that reached their
    precision; one each a pass.
    """

    runs: Counts
    reached: Counts


def simulate(cells: Sequence[Spread], rule: Rule, known: bool) -> Passes:
    """REPETITIONS passes over a grid by a rule; the same for the same arguments."""
    rng = np.random.default_rng(SEED)
    found = [stops(draw(cell, rule, rng, known), rule) for cell in cells]
    return Passes(
        np.sum([runs for runs, _ in found], axis=0),
        np.sum([reached for _, reached in found], axis=0),
    )


def middle95(values: npt.ArrayLike) -> tuple[float, float]:
    """Between which two numbers 95% of them lie."""
    low, high = np.quantile(np.asarray(values, dtype=float), [0.025, 0.975])
    return float(low), float(high)


def measure() -> Part:
    """The demo's grid once, REPEATS runs of 10 s in each of its cells, and the simulation."""
    with tempfile.TemporaryDirectory() as name:
        ran = _grid(Path(name))
        long = [_long_runs(cell, Path(name)) for cell in ran.results.source.result.cells]
    return _part(ran, long)


def _grid(folder: Path) -> command.Ran:
    tree = _tree()
    tree["limit"] = LIMIT
    tree["repeat"] |= {
        "max": str(RUNS_MAX),
        "confidence": "95%",
        "precision": "2.5%",
        "metrics": ["throughput"],
    }
    ran = command.run(yaml.safe_dump(tree), folder)
    _ = (
        ran.results.runs,
        ran.results.cells,
        ran.results.source.cautions,
    )  # read before the folder goes
    return ran


def _tree() -> dict[str, Any]:
    """The demo's campaign, its scalars as words."""
    tree: dict[str, Any] = yaml.load(CAMPAIGN.read_text(), Loader=yaml.BaseLoader)
    del tree["compare"], tree["limit"]
    return tree


def _long_runs(cell: PlannedCell, folder: Path) -> Spread:
    """Runs of netperf's length in one cell, back to back."""
    tree = _tree()
    del tree["sweep"], tree["include"]
    tree["transfer"] |= dict(cell.factors) | {"duration": f"{ITERATION:g}s", "warmup": "0s"}
    tree |= {"repeat": {"min": str(REPEATS), "max": str(REPEATS)}, "verify": "off"}
    runs = command.run(yaml.safe_dump(tree), folder).results.runs
    return _spread(runs.loc[runs["status"] == "ok", "throughput"].to_numpy())


def _spread(values: Numbers) -> Spread:
    if len(values) < 2:
        raise RuntimeError("a cell without two runs that are ok: no variance can be told")
    found = mean_interval(values, CONFIDENCE)
    return Spread(found.n, found.mean, found.sd)


def _part(ran: command.Ran, long: Sequence[Spread]) -> Part:
    repeat = ran.results.source.result.repeat
    own = Rule(
        repeat.min, repeat.max, sequential_confidence(repeat.confidence, repeat.min, repeat.max)
    )
    short = [_spread(values.to_numpy()) for values in _by_cell(ran.results)]
    floor = len(long) * NETPERF.minimum * ITERATION
    rows = (
        _beside(ran, long, simulate(short, own, False)),
        Row(
            f"the same, were {NETPERF.minimum} iterations enough for netperf in every cell",
            f"{ran.seconds:.0f} s",
            f"{floor:.0f} s",
            f"{ran.seconds / floor:.2f}",
            "",
            None,
        ),
    )
    notes = (*_seen(ran, short, long, simulate(short, own, True)), *NOTES)
    return Part("Time to conclusion", HOW.format(minimum=repeat.min), rows, notes)


def _beside(ran: command.Ran, long: Sequence[Spread], again: Passes) -> Row:
    """The row that is judged. `again`: netbench's own rule on the same grid, other times."""
    likely, unsure = simulate(long, NETPERF, True), simulate(long, NETPERF, False)
    total = float(likely.runs.mean()) * ITERATION
    low, high = middle95(unsure.runs * ITERATION)
    ratio = ran.seconds / total
    ratios = middle95(ran.seconds * again.runs / again.runs.mean() / (unsure.runs * ITERATION))
    ratio_low, ratio_high = (
        min(*ratios, ratio),
        max(*ratios, ratio),
    )  # a mean need not lie in the middle
    asked = ran.results.cells[ran.results.cells["metric"] == "throughput"]
    reached, cells = int((asked["status"] == "converged").sum()), len(long)
    return Row(
        f"{cells} cells to ±2.5% of mean throughput",
        f"{ran.seconds:.0f} s, {len(ran.results.runs)} runs; {reached} of {cells} cells reach it",
        f"netperf's loop, simulated: {total:.0f} s ({low:.0f} to {high:.0f}); "
        f"{likely.reached.mean():.1f} of {cells} cells reach it",
        f"{ratio:.2f} ({ratio_low:.2f} to {ratio_high:.2f})",
        "every cell reaches it, and the ratio's upper bound is at most 1/3",
        reached == cells and ratio_high <= BUDGET,
    )


def _by_cell(results: netbench.Results) -> Iterator[Any]:
    ok = results.runs[results.runs["status"] == "ok"]
    for _, values in ok.groupby("cell", observed=True, sort=False)["throughput"]:
        yield values


def _seen(
    ran: command.Ran, short: Sequence[Spread], long: Sequence[Spread], likely: Passes
) -> Iterator[str]:
    """What a reader must know of this measurement."""
    yield (
        f"Standard deviation over mean, by cell: {_shares(short)} between netbench's runs,"
        f" {_shares(long)} between runs of {ITERATION:g} s."
    )
    low, high = middle95(likely.runs)
    yield (
        f"The simulation asked about netbench's own rule gives {likely.runs.mean():.0f} runs"
        f" ({low:.0f} to {high:.0f}); it made {len(ran.results.runs)}."
    )
    cautions = [
        c for c in ran.results.source.cautions if c.kind in ("drift", "dependence", "unstable")
    ]
    if cautions:
        told = "; ".join(f"[{caution.kind}] {caution.what.rstrip('.')}" for caution in cautions)
        yield (
            "netbench's own cautions on its campaign, which netperf's loop has no check for:"
            f" {told}."
        )


def _shares(cells: Sequence[Spread]) -> str:
    shares = sorted(cell.sd / cell.mean for cell in cells)
    return f"{shares[0]:.1%} to {shares[-1]:.1%}"
