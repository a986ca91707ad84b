"""Intervals that are wider than asked, or say less than they seem to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from netbench.base.units import count, listed, said_of
from netbench.read.cautions.rule import NAMED, Caution, Cautions, Evidence, caution
from netbench.read.cells import CellResult
from netbench.read.control import control_family, holds
from netbench.stats import series
from netbench.stats.by_boot import ENOUGH, KERNEL, half_width
from netbench.stats.words import signed

ENOUGH_RUNS = 5
SIGNS_NAMED = 3
DRIFT_SIZE = 0.01  # of the mean, over the whole campaign: less does not matter
PUBLISHED = (
    "Linux 09c60546f04f: forced alignment of functions alone moved TCP_RR by 2 to 18%, TCP_STREAM"
    " by -1 to +2%"
)


@caution(
    184,
    remedy="believe no difference of that size; find what a run leaves for the next; longer runs",
)
def control(evidence: Evidence) -> Cautions:
    """A control differs from its baseline, though both are the same."""
    result = evidence.result
    places, signs = [], []
    cell_of = {result.levels(each.factors): each.cell for each in result.controls}
    for metric in result.repeat.metrics:
        for c in control_family(result, metric):
            if c.low > 0 and not holds(c):
                levels = result.levels({**c.context, c.factor: c.baseline})
                places.append((cell_of[levels], c.pair))
                signs.append(f"{metric} {signed(c.ratio)}%, {signed(c.low)} to {signed(c.high)}%")
    if signs:
        yield Caution(
            "The baseline differs from itself, measured a second time as a control.",
            evidence.labels(places),
            "; ".join(signs),
        )


@caution(
    180,
    kinds=("unstable", "max", "interrupted"),
    remedy="raise repeat.max, transfer.duration or limit; find what changes during the campaign",
)
def not_converged(evidence: Evidence) -> Cautions:
    """Cells have wider intervals than the campaign asked for, or too few runs."""
    repeat = evidence.result.repeat
    in_boots = "boots (the table of boots says what that buys)"
    more = in_boots if evidence.result.in_boots else "max"
    written = {*(evidence.result.asked or {}), *(f"transfer.{f}" for f in evidence.result.swept)}
    again = "run the campaign anew" if evidence.result.ended == "done" else "resume the campaign"
    bounds = "bytes" if "transfer.bytes" in written else "duration"
    for status, what, remedy in (
        (
            "unstable",
            "are not precise enough, for want of independent runs",
            "find what changes during the campaign; longer runs",
        ),
        (
            "max",
            f"did not reach the {repeat.until} that was asked for",
            f"raise repeat.{more} or transfer.{bounds}, or accept a wider interval",
        ),
        ("interrupted", f"have fewer than {count(repeat.min, 'run')}", again),
    ):
        cells = [
            c
            for c in evidence.cells
            if c.status == status and (c.n or status != "interrupted" or not c.reasons)
        ]
        if not cells or (status == "max" and repeat.max == 1):
            continue  # where one run was asked for, no precision was
        out_of_time = evidence.result.ended == "limit" and status != "unstable"
        because = ": the time limit was reached" if out_of_time else ""
        yield Caution(
            f"{said_of(len(cells), 'cell', what)}{because}.",
            evidence.labels(c.place for c in cells),
            _widest(evidence, cells),
            "raise limit, or run fewer or shorter cells" if out_of_time else remedy,
            kind=status,
        )


def _widest(evidence: Evidence, cells: Sequence[CellResult]) -> str:
    """The widest interval that decides, what was asked for, and what makes these cells unstable."""
    repeat = evidence.result.repeat
    widest = max(((w, metric) for c in cells for metric, w in c.widths.items()), default=None)
    corrected = " of the ratio to the baseline, corrected for all comparisons"
    of = corrected if evidence.result.compare else ""
    text = f"widest ±{widest[0]:.1%} ({widest[1]}), " if widest else ""
    asked = f"±{repeat.precision:.1%}{of}" if repeat.until == "precision" else "a verdict"
    signs = sorted({sign for c in cells for sign in c.signs})[:SIGNS_NAMED]
    return "; ".join((f"{text}asked {asked}", *signs))


@caution(
    170,
    remedy="comparisons within blocks stand, means do not: warm up, fix clock speed and cooling",
)
def drift(evidence: Evidence) -> Cautions:
    """All cells together rise or fall by 1% or more over the campaign."""
    runs = evidence.result.ok
    # blocks of one boot are not independent
    unit = "boot" if len(evidence.result.kernels) > 1 else "block"
    for metric in (m for m in evidence.result.repeat.metrics if m in runs):
        means = runs.groupby(["cell", "pair"], observed=True)[metric].transform("mean")
        for pair, relative in (runs[metric] / means).groupby(runs["pair"], observed=True):
            units = relative.groupby(runs[unit]).mean().dropna()
            if min(len(relative), len(units)) < series.FEWEST:
                continue
            tau, p = series.drift(units.to_numpy(dtype=float))
            if p >= series.ALPHA:
                continue
            slope = float(np.polyfit(np.arange(len(units)), units, 1)[0])
            change = slope * (len(units) - 1)
            if abs(change) >= DRIFT_SIZE:
                yield Caution(
                    f"{metric} of all cells together {'rises' if tau > 0 else 'falls'} by"
                    f" {abs(change):.1%} of its mean over the campaign.",
                    (str(pair),),
                    f"{len(units)} {unit}s, Kendall's tau {tau:+.2f}, p {p:.1g}",
                )


@caution(
    160, remedy="the interval is too narrow: run longer or warm up longer, or find what switches"
)
def dependence(evidence: Evidence) -> Cautions:
    """Runs of a converged cell drift or follow each other."""
    for metric in evidence.result.repeat.metrics:
        signs = [
            (evidence.label(*c.place), sign)
            for c, _, values in evidence.values(metric)
            if c.status == "converged"
            for sign in series.instabilities(values)
        ]
        if signs:
            where = tuple(dict.fromkeys(label for label, _ in signs))
            yield Caution(
                f"The runs of {count(len(where), 'converged cell')} are not independent in"
                f" {metric}.",
                where,
                listed([f"{label} {sign}" for label, sign in signs], SIGNS_NAMED),
            )


@caution(140, remedy=f"raise repeat.min to {ENOUGH_RUNS} or more")
def few(evidence: Evidence) -> Cautions:
    """A cell has fewer than 5 runs."""
    for low, high, what in (
        (1, 1, "have one run, which has no interval"),
        (2, ENOUGH_RUNS - 1, f"have fewer than {ENOUGH_RUNS} runs"),
    ):
        cells = [c for c in evidence.cells if low <= c.n <= high and c.unit == "run"]
        if cells:
            yield Caution(
                f"{said_of(len(cells), 'cell', what)}.",
                evidence.labels(c.place for c in cells),
                "n is in the table of cells",
            )


@caution(130, remedy=f"repeat.boots: {ENOUGH} or more")
def boots(evidence: Evidence) -> Cautions:
    """Each kernel was booted fewer than 4 times, or a host was rebooted in between."""
    result = evidence.result
    if KERNEL in result.factors and result.repeat.boots == 1:
        yield Caution(
            "Each kernel was booted once. Any two boots of one kernel differ too, so a difference"
            " between kernels cannot be told from that.",
            evidence="one boot has no interval",
            remedy=f"repeat.boots: {ENOUGH} or more; the intervals here are over runs of one boot"
            " each",
        )
    by_boots: dict[int, list[tuple[str, str]]] = {}
    for c in evidence.cells:
        if c.unit == "boot" and c.intervals:
            most = max(interval.n for interval in c.intervals.values())
            by_boots.setdefault(most, []).append(c.place)
    for n, places in sorted(by_boots.items()):
        cells = f"{count(len(places), 'cell')} {'was' if len(places) == 1 else 'were'}"
        if not result.in_boots:
            yield Caution(
                f"{cells} run in {n} boots that the campaign did not ask for: the means are over"
                " boots, no precision closes a cell, and comparisons have no verdict.",
                evidence.labels(places),
                "boot ids",
                f"run the campaign anew without a reboot, or with repeat.boots: {ENOUGH}",
            )
        elif n < ENOUGH:
            yield Caution(
                f"{cells} run in {count(n, 'boot')}, which proves little.",
                evidence.labels(places),
                f"an interval over {n} boots is ±{half_width(n):.1f} standard deviations"
                if n > 1
                else "one boot has no interval",
            )


@caution(125, remedy="`builds: 4` of each kernel from git, or a list of builds")
def builds(evidence: Evidence) -> Cautions:
    """Compared kernels have one build each, or fewer than 4."""
    result = evidence.result
    booted = set(result.kernels.values())
    if KERNEL not in result.factors or len(booted) < 2:
        return
    levels = [str(level) for level in result.runs[KERNEL].cat.categories]
    number = {level: result.builds.get(level, 1) for level in levels if level in booted}
    if single := [level for level, n in number.items() if n == 1]:
        yield Caution(
            f"One build of {listed(single, NAMED, ', ')}: code layout alone may make a difference.",
            evidence=PUBLISHED,
        )
    fewest = min(number.values())
    if 1 < fewest < ENOUGH:
        yield Caution(
            f"The kernels have {fewest} builds, which proves little.",
            evidence=f"an interval over {fewest} builds is ±{half_width(fewest):.1f} standard"
            " deviations",
        )
