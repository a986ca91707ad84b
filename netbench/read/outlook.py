"""What a campaign can show before it runs, by an earlier result, the pilot: the smallest difference
in each of its metrics, and the runs that a difference takes.

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
from functools import partial

from netbench.base.units import listed
from netbench.model import Campaign
from netbench.read.compare import Place, by_place
from netbench.read.matching import NAMED
from netbench.read.result import Result
from netbench.stats import power
from netbench.stats.by_boot import Builds, Places, Split, runs_a_boot, split
from netbench.stats.closing import baseline_of, groups
from netbench.stats.dependence import followed
from netbench.stats.intervals import NAN, Numbers, ratio_confidence
from netbench.stats.pairs import Series, paired

DIFFERENCES = (0.01, 0.02, 0.05)


@dataclass(frozen=True)
class MetricPower:
    """What the campaign can show in one metric.

    `of`: the comparison that varies most, of `family` ones; `confidence`: of its interval, widened
    and corrected. `unit`: `block`, `boot` or `build`, with deviation `sd` from `freedom` degrees of
    freedom, at most `sd_at_most` (one-sided 80%). `smallest`: by n, the smallest difference that it
    shows with power.POWER, as a fraction; `needed`: n by difference, None beyond power.MOST_UNITS.
    `apart`, `between`, `within`: as in Split.
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
    apart: float = math.nan


@dataclass(frozen=True)
class Outlook:
    """What a campaign can show by an earlier result, and in words what that does not tell."""

    metrics: tuple[MetricPower, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Variation(Split):
    """How far log differences of two cells vary, with `freedom` degrees of freedom within a boot;
    what is not known is NaN. `paired`: seen as differences.
    """

    freedom: int = 0
    paired: bool = False


Contrast = tuple[str, str, str]
"""A cell, the baseline that it is compared with ("": its campaign compares nothing), and the pair
of hosts.
"""


def outlook(campaign: Campaign, result: Result) -> Outlook:
    """What the campaign can show in each of its metrics, were its cells as those of the result."""
    contrasts = list(_contrasts(campaign))
    pilot = _Pilot(result, campaign)
    notes, found = list(pilot.notes()), []
    for metric in campaign.repeat.metrics:
        if metric not in result.metrics:
            notes.append(f"{metric} was not measured there")
            continue
        runs = by_place(result.ok, metric)
        usable = {at: series for at, series in runs.items() if (series.values > 0).all()}
        known = {c: v for c in contrasts if (v := pilot.variation(c, usable))}
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


def _contrasts(campaign: Campaign) -> Iterator[Contrast]:
    """What the campaign compares; each cell alone where it compares nothing."""
    keys = {(c.id, p.name): c.factors for c in campaign.cells for p in campaign.pairs}
    for group in groups(keys, [factor.name for factor in campaign.factors], campaign.compare):
        base = baseline_of({key: keys[key] for key in group}, campaign.compare)
        for key in group:
            if campaign.compare is None or base not in (None, key):
                yield key[0], base[0] if base else "", key[1]


def _power(
    metric: str, known: Mapping[Contrast, Variation], family: int, pilot: _Pilot
) -> MetricPower:
    campaign, builds = pilot.campaign, pilot.builds
    repeat, by_boot = campaign.repeat, campaign.boots_hosts
    unit, sizes = ("boot", [repeat.boots]) if by_boot else ("block", [repeat.min, repeat.max])
    if builds > 1 and not any(math.isnan(v.apart) for v in known.values()):
        unit, sizes = "build", [builds]
    deviations = {
        c: v.deviation(unit, runs_a_boot(repeat), repeat.boots / builds) for c, v in known.items()
    }
    worst = max(known, key=deviations.__getitem__)
    seen, sd = known[worst], deviations[worst]
    freedom = {"block": seen.freedom, "boot": round(seen.boots) - 1, "build": seen.builds - 1}[unit]
    count = family if campaign.compare else 1
    confidence = ratio_confidence(repeat, count, fixed=by_boot)
    smallest = partial(power.smallest_difference, sd, confidence=confidence, blocks=not by_boot)
    needed = partial(power.units_needed, sd=sd, confidence=confidence, blocks=not by_boot)
    cell, base, _ = worst
    return MetricPower(
        metric,
        f"{cell or 'the one cell'}{f' against {base}' if base else ''}",
        count,
        confidence,
        unit,
        sd,
        power.upper_deviation(sd, freedom),
        freedom,
        seen.paired,
        seen.between,
        seen.within,
        {n: math.expm1(smallest(n)) for n in sizes},
        {d: needed(math.log1p(d)) for d in DIFFERENCES},
        seen.apart,
    )


class _Pilot:
    """An earlier result as a campaign that has not run sees it."""

    def __init__(self, result: Result, campaign: Campaign) -> None:
        self.result, self.campaign = result, campaign
        self.builds = min((len(kernel.each) for kernel in campaign.kernels.values()), default=1)
        swept = [factor.name for factor in campaign.factors]
        self._ours = [name for name in swept if name not in result.swept]
        self._common = [name for name in swept if name in result.swept]
        self._theirs = [name for name in result.swept if name not in self._common]
        self._matches = {
            cell.id: [
                c.cell
                for c in result.cells
                if all(c.factors.get(n, "") == cell.factors.get(n, "") for n in self._common)
            ]
            for cell in campaign.cells
        }

    def notes(self) -> Iterator[str]:
        """What does not match."""
        if alone := [cell for cell, found in self._matches.items() if not found]:
            yield f"no cell there has the levels of {listed(alone, NAMED)}"
        if self._ours:
            names = ", ".join(self._ours)
            yield f"{names}: not swept there, so what there is stands for each level"
        if self._theirs:
            names = ", ".join(self._theirs)
            yield f"{names}: swept there alone, and the level that varies most counts"
        if self.campaign.pairs[0].name not in self.result.plan.pairs:
            yield f"other pairs of hosts there: {listed(self.result.plan.pairs, NAMED)}"

    def variation(self, contrast: Contrast, runs: Mapping[Place, Series]) -> Variation | None:
        """How far the differences of a comparison vary there, where they vary most; None where the
        result does not tell. runs: of one metric.
        """
        there = list(self.result.plan.pairs)
        found = [
            _variation(runs[one, pair], runs[two, pair])
            for pair in ([contrast[2]] if contrast[2] in there else there)
            for one, two in self._cells(contrast)
            if (one, pair) in runs and (two, pair) in runs
        ]

        return max(filter(None, found), key=lambda v: v.deviation("boot"), default=None)

    def _cells(self, contrast: Contrast) -> list[tuple[str, str]]:
        """The two cells there of a comparison; one cell twice where there is only one."""
        mine, bases = (self._matches.get(cell, []) for cell in contrast[:2])
        theirs = {c.cell: [c.factors.get(n, "") for n in self._theirs] for c in self.result.cells}
        both = [(x, y) for x in mine for y in bases if x != y and theirs[x] == theirs[y]]
        return both or [(x, x) for x in (mine or bases)]


def _variation(mine: Series, base: Series) -> Variation | None:
    """Of the differences of two series; of one series, of two such."""
    alone = mine is base
    if not alone and mine.boots & base.boots:
        _, boots, found, builds = paired(mine, base, 1, {})
        parts = [_part(found, boots, builds)]
    else:
        parts = [_part(series.logs, series.boot, series.builds) for series in (mine, base)]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    names = ("between", "within", "apart")
    deviations = {n: math.sqrt(sum(getattr(each, n) ** 2 for each in known)) for n in names}
    return replace(
        known[0],
        **deviations,
        boots=min(each.boots for each in known),
        builds=min(each.builds for each in known),
        freedom=known[0].freedom if alone else sum(each.freedom for each in known),
        paired=not alone,
    )


def _part(logs: Numbers, boots: Places, builds: Builds) -> Variation | None:
    """Of one series, its boots counted in all; None with fewer than 2 runs in a boot."""
    n, units = len(logs), len(set(boots.tolist()))
    if units == 1:
        within = float(followed(logs).error) * math.sqrt(n)
        return Variation(1, n, 0.0, NAN, within, freedom=n - 1) if n > 1 else None
    found = split(logs, boots, builds) or split(logs, boots)
    if found is None:
        return None
    # boots of builds that had one each are in what builds differ by
    between = 0.0 if math.isnan(found.between) else found.between
    return Variation(**vars(replace(found, boots=units, between=between)), freedom=n - units)
