"""What a campaign can show before it runs, by an earlier result: the smallest difference in each of
its metrics, the runs that a difference takes, and the cheapest split of builds, boots and blocks.

The comparison that varies most stands for its family, at the level of Holm's first step: the one
that the smallest of all p values has to pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from netbench.model import Campaign
from netbench.read.pilot import Contrast, Pilot, Variation
from netbench.read.result import Result
from netbench.stats import power
from netbench.stats.boots import runs_a_boot
from netbench.stats.closing import groups
from netbench.stats.intervals import ratio_confidence

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


def outlook(campaign: Campaign, result: Result) -> Outlook:
    """What the campaign can show in each of its metrics, were its cells as those of the result."""
    contrasts = list(_contrasts(campaign))
    pilot = Pilot(result, campaign)
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
        if _builds(campaign) > 1 and any(math.isnan(v.apart) for v in known.values()):
            notes.append(
                f"{metric}: a kernel there has one build, so how far builds lie apart is not known,"
                " and what is told is of boots of one build; run it with builds: 3 once"
            )
        if known:
            found.append(_power(metric, campaign, known, len(contrasts), pilot))
    return Outlook(tuple(found), tuple(notes))


def _contrasts(campaign: Campaign) -> Iterator[Contrast]:
    """What the campaign compares; each cell alone where it compares nothing."""
    compare = campaign.compare
    keys = {(c.id, p.name): c.factors for c in campaign.cells for p in campaign.pairs}
    swept = [factor.name for factor in campaign.factors]
    for group in groups(keys, swept, compare):
        base = next(
            (key for key in group if compare and keys[key].get(compare.factor) == compare.baseline),
            None,
        )
        for key in group:
            if compare is None or base not in (None, key):
                yield Contrast(key[0], base[0] if base else None, key[1])


def _power(
    metric: str,
    campaign: Campaign,
    known: Mapping[Contrast, Variation],
    family: int,
    pilot: Pilot,
) -> MetricPower:
    repeat, by_boot = campaign.repeat, campaign.boots_hosts
    blocks, builds = runs_a_boot(repeat), _builds(campaign)
    by_build = builds > 1 and not any(math.isnan(v.apart) for v in known.values())
    deviations = {
        c: v.of_build(repeat.boots / builds, blocks)
        if by_build
        else v.of_boot(blocks)
        if by_boot
        else v.within
        for c, v in known.items()
    }
    worst = max(deviations, key=lambda c: deviations[c])
    sd, seen = deviations[worst], known[worst]
    unit, freedom, sizes = "block", seen.freedom, [repeat.min, repeat.max]
    if by_boot:
        unit, freedom, sizes = "boot", seen.boots - 1, [repeat.boots]
    if by_build:
        unit, freedom, sizes = "build", seen.builds - 1, [builds]
    count = family if campaign.compare else 1
    confidence = 1 - (1 - repeat.confidence) / count if by_boot else ratio_confidence(repeat, count)
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
        {
            n: math.expm1(power.smallest_difference(sd, n, confidence, blocks=not by_boot))
            for n in sizes
        },
        {
            d: power.units_needed(math.log1p(d), sd, confidence, blocks=not by_boot)
            for d in DIFFERENCES
        },
        _boot_plan(campaign, seen, confidence, pilot, by_build) if by_boot else None,
        seen.apart,
    )


def _builds(campaign: Campaign) -> int:
    """How many builds each kernel has; 1 where one has no more."""
    return min((len(kernel.each) for kernel in campaign.kernels.values()), default=1)


def _boot_plan(
    campaign: Campaign, seen: Variation, confidence: float, pilot: Pilot, by_build: bool
) -> BootPlan | None:
    costs = pilot.costs
    if costs is None:
        return None
    kernels = len({cell.kernel for cell in campaign.cells})
    boot = costs[0]
    block = costs[1] * len(campaign.cells) * len(campaign.pairs) / kernels
    blocks = power.cheapest(seen.between, seen.within, boot, block)
    sd, each, build = seen.of_boot(blocks), 1, 0.0
    if by_build:
        build = LINK_SECONDS if any(k.git for k in campaign.kernels.values()) else 0.0
        # a boot costs its blocks too
        each = power.cheapest(
            seen.apart,
            seen.of_boot(blocks),
            build,
            boot + blocks * block,
            power.MOST_BOOTS_A_BUILD,
        )
        sd = seen.of_build(each, blocks)
    units = {d: power.units_needed(math.log1p(d), sd, confidence) for d in DIFFERENCES}
    of_unit = build + each * (boot + blocks * block)
    return BootPlan(
        blocks,
        boot,
        block,
        {d: n and n * each for d, n in units.items()},
        {d: n and kernels * n * of_unit for d, n in units.items()},
        each if by_build else 0,
        build,
    )
