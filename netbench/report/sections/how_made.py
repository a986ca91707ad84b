"""Cautions, and how the numbers were made."""

from __future__ import annotations

import math
from dataclasses import replace

from netbench.read.accounts import METER_ORDER
from netbench.read.cells import metric_order
from netbench.read.shown_levels import shown
from netbench.report.blocks import Block, Cautions, Prose, Section, Table, keyed, prose, tabled
from netbench.report.numbers import count, share
from netbench.report.source import Source
from netbench.result.files import PlannedTool
from netbench.stats.by_boot import KERNEL, runs_a_boot
from netbench.stats.intervals import sequential_confidence, t_quantile


def cautions(source: Source) -> Section:
    """All cautions with their remedies; says so when there is none."""
    items = tuple(replace(one, where=tuple(map(shown, one.where))) for one in source.cautions)
    none = Prose(("None: no check found anything to warn of.",))
    return Section("cautions", "Cautions", (Cautions(items) if items else none,))


def method(source: Source) -> Section:
    """Design, stopping rule, intervals, and the definition of every metric of this report."""
    repeat, plan = source.result.repeat, source.result.plan
    widened = sequential_confidence(repeat.confidence, repeat.min, repeat.max)
    at = f"Intervals: arithmetic mean and Student's t at {share(repeat.confidence)}"
    why = (
        f", computed at {share(widened)} because a cell that stops at a narrow interval would else"
        " be covered too rarely"
    )
    lines = [
        (
            f"Randomised complete blocks, seed {plan.seed}: each block runs every open cell"
            " once, on a fresh connection."
        ),
        *_boots(source),
        _rule(source),
        *([f"{plan.pilot}."] if plan.pilot else []),
        f"{at}{why if widened != repeat.confidence else ''}{_followed(source, widened)}.",
        "No run was dropped, repeated or smoothed for its value. What is missing was not measured.",
        *(_tool(name, lines) for name, lines in plan.tools.items()),
    ]
    if source.result.compare:
        lines.append(
            f"Comparisons: differences of logarithms {_pairing(source)}; their mean with Student's"
            " t gives the ratio and its interval, wider likewise. Both are corrected for all"
            " comparisons of one metric (Holm): any verdict is false as seldom as said, and all"
            " intervals at once hold a little less often."
        )
    blocks: list[Block] = [Prose(tuple(lines), bullets=True), *_definitions(source)]
    return Section("method", "How the numbers were made", tuple(blocks))


def _followed(source: Source, confidence: float) -> str:
    """Which intervals are wider than Student's t, since runs follow the run before them."""
    told = [
        i.half_width > (1 + 1e-9) * t_quantile(i.n - 1, confidence) * i.sd / math.sqrt(i.n)
        for c in source.cells
        for name, i in c.intervals.items()
        if i.known and name in source.metrics and not source.result.describe(name).is_count
    ]
    how = "wider where the runs of a cell show that they follow each other (lag-1 correlation)"
    return f"; {how}: {sum(told)} of {len(told)} in the table of cells"


def _tool(name: str, lines: PlannedTool) -> str:
    server = f", its server `{lines.server}`" if lines.server else ""
    return f"The tool {name} is `{lines.client}`{server}."


def _boots(source: Source) -> list[str]:
    """How boots were used, where there are several."""
    result = source.result
    if len(result.kernels) < 2 and not result.in_boots:
        return []
    lines = []
    if result.in_boots:
        whose = "of each kernel, in random order" if KERNEL in result.factors else "of the hosts"
        lines.append(
            f"{count(result.repeat.boots, 'boot')} {whose}; a block runs the cells of the kernel"
            " that is booted."
        )
    if (builds := max(result.builds.values(), default=1)) > 1:
        lines.append(
            f"Kernels have {builds} builds, which take turns from one round of"
            " boots to the next. Where a cell's runs, or both levels of a comparison, have several"
            " builds, the build is the unit: boots of one build share where its code lies."
        )
    lines.append(
        "Where a cell's runs lie in several boots the boot is the unit: its interval is over the"
        " means of boots, since runs of one boot share what that boot happened to be."
    )
    return lines


def _pairing(source: Source) -> str:
    """What comparisons pair."""
    compare, result = source.result.compare, source.result
    if compare is not None and compare.factor == KERNEL:
        builds = ", averaged by build" if min(result.builds.values(), default=1) > 1 else ""
        return f"of boots, the n-th of one kernel with the n-th of the other{builds}"
    if len(result.kernels) > 1:
        return (
            "within a block, so that what drifts between blocks cancels, averaged by boot where"
            " there are several"
        )
    return "within a block, so that what drifts between blocks cancels"


def _definitions(source: Source) -> list[Table]:
    names = dict.fromkeys(name.partition(".")[0] for name in source.result.metrics)
    known = (source.result.describe(name) for name in metric_order(list(names)))
    rows = [
        {**keyed("metric", m.name), "unit": m.unit, prose("definition"): m.about} for m in known
    ]
    note = (
        "CPU metrics exist also by meter, as NAME.METER (CSV, notebooks); the bare name is by the"
        f" first that ran of {', '.join(METER_ORDER)}, but for those that counted less than the"
        " processes used."
    )
    return [tabled("Metrics", rows, note)] if rows else []


def _rule(source: Source) -> str:
    repeat = source.result.repeat
    if source.result.in_boots:
        each = runs_a_boot(repeat)
        return (
            f"Each cell was to have {count(each, 'run')} in each boot, {each * repeat.boots} in"
            " all, whatever they show."
        )
    if repeat.max <= repeat.min:
        return f"Each cell was to have {repeat.min} runs, whatever they show."
    metrics = ", ".join(repeat.metrics)
    runs = f"after {repeat.min} to {repeat.max} runs, as soon as"
    if source.result.compare:
        reached = (
            f"has an interval of at most ±{share(repeat.precision)}, corrected for all comparisons,"
            if repeat.until == "precision"
            else "is better, worse or equivalent, by an interval that holds at every look,"
        )
        return (
            f"A level closes {runs} its ratio to the baseline {reached} in {metrics}, and the"
            " baseline with the last of its levels; the means in the table may be less precise."
        )
    return (
        f"A cell closes {runs} the half-width of {metrics} is at most {share(repeat.precision)} of"
        " the mean (for CPU, or at most 0.005 CPUs)."
    )
