"""What a campaign can show before it runs, by an earlier result, the pilot: the smallest difference
in each of its metrics, the runs that a difference takes, and the cheapest split of builds, boots
and blocks.

Each comparison of the campaign takes the runs of the two cells of the pilot whose levels agree with
it in all factors that both sweep. Where the pilot has only one of them, differences are taken to
vary as those of two cells like it that do not go up and down together. The comparison that varies
most stands for its family, at the level of Holm's first step: the one that the smallest of all p
values has to pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from netbench.base.units import listed
from netbench.model import Campaign
from netbench.read.compare import Place, by_place
from netbench.read.matching import NAMED
from netbench.read.result import Result
from netbench.stats import power
from netbench.stats.by_boot import Places, Split, runs_a_boot, split
from netbench.stats.closing import baseline_of, groups
from netbench.stats.dependence import followed
from netbench.stats.intervals import NAN, Numbers, ratio_confidence
from netbench.stats.pairs import Series

LINK_SECONDS = 12.0  # of another layout of a kernel that is compiled: a guess for a small one
DIFFERENCES = (0.01, 0.02, 0.05)


@dataclass(frozen=True)
class BootPlan:
    """The cheapest split: so many blocks a boot, and boots a build where the campaign has builds
    (0: it has none); boots of each kernel, and seconds of the campaign, by the difference that they
    show (None: too many). Costs in seconds, as the pilot had them; that of a build is assumed.
    """

    blocks_a_boot: int
    boot_seconds: float
    block_seconds: float
    boots: Mapping[float, int | None]
    seconds: Mapping[float, float | None]
    boots_a_build: int = 0
    build_seconds: float = 0.0


@dataclass(frozen=True)
class MetricPower:
    """What the campaign can show in one metric.

    `of`: the comparison that varies most, of `family` ones; `confidence`: of its interval, widened
    and corrected. `unit`: `block`, `boot` or `build`, with deviation `sd` from `freedom` degrees of
    freedom, at most `sd_at_most` (one-sided 80%). `smallest`: by n, the smallest difference that it
    shows with power.POWER, as a fraction; `needed`: n by difference, None beyond power.MOST_UNITS.
    `apart`, `between`, `within`: as in Variation. `boots`: None where hosts are not booted, or
    where the pilot does not tell.
    """

    metric: str
    of: str
    family: int
    confidence: float
    unit: str
    sd: float
    sd_at_most: float
    freedom: int
    paired: bool
    between: float
    within: float
    smallest: Mapping[int, float]
    needed: Mapping[float, int | None]
    boots: BootPlan | None = None
    apart: float = math.nan


@dataclass(frozen=True)
class Outlook:
    """What a campaign can show by an earlier result, and in words what that does not tell."""

    metrics: tuple[MetricPower, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Variation:
    """How far log differences of two cells vary: deviations `between` boots (NaN: not known) and
    `within`, of one block, with the degrees of freedom of `within`, and the number of boots; and
    deviations `apart` of `builds` builds (NaN: not known; then `between` is that of all boots).
    `paired`: seen as differences.
    """

    between: float
    within: float
    freedom: int
    boots: int
    paired: bool
    apart: float = NAN
    builds: int = 1

    @property
    def whole(self) -> float:
        """The deviation of one block in one boot, as far as it is known."""
        return self.within if math.isnan(self.between) else self.of_boot(1)

    def of_boot(self, blocks: float) -> float:
        """The deviation of the difference of two boots of so many blocks."""
        return math.hypot(self.between, self.within / math.sqrt(blocks))

    def of_build(self, boots: float, blocks: float) -> float:
        """The deviation of the difference of two builds of so many boots of so many blocks."""
        return math.hypot(self.apart, self.of_boot(blocks) / math.sqrt(boots))


@dataclass(frozen=True)
class _Contrast:
    """A cell, the baseline that it is compared with ("": its campaign compares nothing), and the
    pair of hosts.
    """

    cell: str
    base: str
    pair: str

    @property
    def words(self) -> str:
        against = f" against {self.base}" if self.base else ""
        return f"{self.cell or 'the one cell'}{against}"


def outlook(campaign: Campaign, result: Result) -> Outlook:
    """What the campaign can show in each of its metrics, were its cells as those of the result."""
    contrasts = list(_contrasts(campaign))
    pilot = _Pilot(result, campaign)
    notes = list(pilot.notes())
    found = []
    for metric in campaign.repeat.metrics:
        if metric not in result.metrics:
            notes.append(f"{metric} was not measured there")
            continue
        known = {c: v for c in contrasts if (v := pilot.variation(c, metric))}
        if campaign.boots_hosts and known:
            known = {c: v for c, v in known.items() if not math.isnan(v.between)}
            if not known:
                notes.append(
                    f"{metric}: no cell there has several boots of several blocks, so how far boots"
                    " lie apart is not known; run it with repeat.boots: 3 once"
                )
        if pilot.builds > 1 and any(math.isnan(v.apart) for v in known.values()):
            notes.append(
                f"{metric}: a kernel there has one build, so how far builds lie apart is not known,"
                " and what is told is of boots of one build; run it with builds: 3 once"
            )
        if known:
            found.append(_power(metric, known, len(contrasts), pilot))
    return Outlook(tuple(found), tuple(notes))


def _contrasts(campaign: Campaign) -> Iterator[_Contrast]:
    """What the campaign compares; each cell alone where it compares nothing."""
    keys = {(c.id, p.name): c.factors for c in campaign.cells for p in campaign.pairs}
    for group in groups(keys, [factor.name for factor in campaign.factors], campaign.compare):
        base = baseline_of({key: keys[key] for key in group}, campaign.compare)
        for key in group:
            if campaign.compare is None or base not in (None, key):
                yield _Contrast(key[0], base[0] if base else "", key[1])


def _power(
    metric: str, known: Mapping[_Contrast, Variation], family: int, pilot: _Pilot
) -> MetricPower:
    campaign = pilot.campaign
    repeat, by_boot = campaign.repeat, campaign.boots_hosts
    blocks, builds = runs_a_boot(repeat), pilot.builds
    by_build = builds > 1 and not any(math.isnan(v.apart) for v in known.values())

    def deviation(v: Variation) -> float:
        if by_build:
            return v.of_build(repeat.boots / builds, blocks)
        return v.of_boot(blocks) if by_boot else v.within

    worst = max(known, key=lambda c: deviation(known[c]))
    seen, sd = known[worst], deviation(known[worst])
    unit, freedom, sizes = "block", seen.freedom, [repeat.min, repeat.max]
    if by_boot:
        unit, freedom, sizes = "boot", seen.boots - 1, [repeat.boots]
    if by_build:
        unit, freedom, sizes = "build", seen.builds - 1, [builds]
    count = family if campaign.compare else 1
    confidence = ratio_confidence(repeat, count, fixed=by_boot)

    def smallest(n: int) -> float:
        return math.expm1(power.smallest_difference(sd, n, confidence, blocks=not by_boot))

    def needed(d: float) -> int | None:
        return power.units_needed(math.log1p(d), sd, confidence, blocks=not by_boot)

    return MetricPower(
        metric,
        worst.words,
        count,
        confidence,
        unit,
        sd,
        power.upper_deviation(sd, freedom),
        freedom,
        seen.paired,
        seen.between,
        seen.within,
        {n: smallest(n) for n in sizes},
        {d: needed(d) for d in DIFFERENCES},
        _boot_plan(pilot, seen, confidence, by_build) if by_boot else None,
        seen.apart,
    )


def _boot_plan(
    pilot: _Pilot, seen: Variation, confidence: float, by_build: bool
) -> BootPlan | None:
    if pilot.costs is None:
        return None
    campaign, (boot, run) = pilot.campaign, pilot.costs
    kernels = len({cell.kernel for cell in campaign.cells})
    block = run * len(campaign.cells) * len(campaign.pairs) / kernels
    blocks = power.cheapest(seen.between, seen.within, boot, block)
    sd, each, build = seen.of_boot(blocks), 1, 0.0
    of_boot = boot + blocks * block  # a boot costs its blocks too
    if by_build:
        build = LINK_SECONDS if any(k.git for k in campaign.kernels.values()) else 0.0
        each = power.cheapest(seen.apart, sd, build, of_boot, power.MOST_BOOTS_A_BUILD)
        sd = seen.of_build(each, blocks)
    units = {d: power.units_needed(math.log1p(d), sd, confidence) for d in DIFFERENCES}
    return BootPlan(
        blocks,
        boot,
        block,
        {d: n and n * each for d, n in units.items()},
        {d: n and kernels * n * (build + each * of_boot) for d, n in units.items()},
        each if by_build else 0,
        build,
    )


class _Pilot:
    """An earlier result as a campaign that has not run sees it."""

    def __init__(self, result: Result, campaign: Campaign) -> None:
        self.result, self.campaign = result, campaign
        self.builds = min((len(kernel.each) for kernel in campaign.kernels.values()), default=1)
        self._swept = [factor.name for factor in campaign.factors]
        self._common = [name for name in self._swept if name in result.swept]
        self._theirs = [name for name in result.swept if name not in self._common]
        there = [(self._levels(c.factors, self._common), c.cell) for c in result.cells]
        self._matches = {
            cell.id: [id_ for levels, id_ in there if levels == self._levels(cell.factors)]
            for cell in campaign.cells
        }
        self._series: dict[str, dict[Place, Series]] = {}

    def _levels(self, factors: Mapping[str, str], names: list[str] | None = None) -> list[str]:
        names = self._common if names is None else names
        return [factors.get(name, "") for name in names]

    def notes(self) -> Iterator[str]:
        """What does not match."""
        alone = [cell for cell, found in self._matches.items() if not found]
        if alone:
            yield f"no cell there has the levels of {listed(alone, NAMED)}"
        ours = [name for name in self._swept if name not in self._common]
        if ours:
            yield f"{', '.join(ours)}: not swept there, so what there is stands for each level"
        if self._theirs:
            yield (
                f"{', '.join(self._theirs)}: swept there alone, and the level that varies most"
                " counts"
            )
        if self.campaign.pairs[0].name not in self.result.plan.pairs:
            yield f"other pairs of hosts there: {listed(self.result.plan.pairs, NAMED)}"

    def variation(self, contrast: _Contrast, metric: str) -> Variation | None:
        """How far the differences of a comparison vary there, where they vary most; None where the
        result does not tell.
        """
        if metric not in self._series:
            runs = by_place(self.result.ok, metric)
            self._series[metric] = {at: s for at, s in runs.items() if (s.values > 0).all()}
        known = self._series[metric]
        there = list(self.result.plan.pairs)
        found = [
            _variation(known[one, pair], known[two, pair], alone=one == two)
            for pair in ([contrast.pair] if contrast.pair in there else there)
            for one, two in self._cells(contrast)
            if (one, pair) in known and (two, pair) in known
        ]
        return max(filter(None, found), key=lambda v: v.whole, default=None)

    def _cells(self, contrast: _Contrast) -> list[tuple[str, str]]:
        """The two cells there of a comparison; one cell twice where there is only one."""
        mine, bases = (self._matches.get(cell, []) for cell in (contrast.cell, contrast.base))
        others = {c.cell: self._levels(c.factors, self._theirs) for c in self.result.cells}
        both = [(x, y) for x in mine for y in bases if x != y and others[x] == others[y]]
        return both or [(x, x) for x in (mine or bases)]

    @cached_property
    def costs(self) -> tuple[float, float] | None:
        """Seconds of a boot and of a run: medians of the times between starts; None without several
        boots.
        """
        runs = self.result.runs[["started", "boot"]].dropna().sort_values("started")
        gaps = runs["started"].diff().dt.total_seconds().to_numpy()[1:]
        booted = np.diff(runs["boot"].to_numpy()) != 0
        if not booted.any() or booted.all():
            return None
        run = float(np.median(gaps[~booted]))
        return max(float(np.median(gaps[booted])) - run, 0.0), run


def _variation(mine: Series, base: Series, *, alone: bool) -> Variation | None:
    """Of the differences of two series; alone: of one, taken twice."""
    if not alone and mine.boots & base.boots:
        width = 1 + max(mine.block.max(), base.block.max())
        here, there = (series.boot * width + series.block for series in (mine, base))
        _, i, j = np.intersect1d(here, there, return_indices=True)
        parts = [_parts(mine.logs[i] - base.logs[j], mine.boot[i], mine)]
    else:
        parts = [_parts(series.logs, series.boot, series) for series in (mine, base)]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None

    def deviation(name: str) -> float:
        return math.sqrt(sum(getattr(each, name) ** 2 for _, each in known))

    return Variation(
        deviation("between"),
        deviation("within"),
        known[0][0] if alone else sum(freedom for freedom, _ in known),
        min(round(each.boots) for _, each in known),
        not alone,
        deviation("apart"),
        min(each.builds for _, each in known),
    )


def _parts(logs: Numbers, boots: Places, of: Series) -> tuple[int, Split] | None:
    """Degrees of freedom, and deviations between builds, boots (in all) and within them; None with
    fewer than 2 runs in a boot.
    """
    units = len(set(boots.tolist()))
    if units == 1:
        if len(logs) < 2:
            return None
        within = float(followed(logs).error) * math.sqrt(len(logs))
        return len(logs) - 1, Split(1, len(logs), 0.0, NAN, within)
    found = split(logs, boots, builds=of.builds) or split(logs, boots)
    if found is None:
        return None
    # boots of builds that had one each are in what builds differ by
    between = 0.0 if math.isnan(found.between) else found.between
    return len(logs) - units, replace(found, boots=units, between=between)
