"""Cautions, and how the numbers were made."""

from __future__ import annotations

from dataclasses import replace

from netbench.read.accounts import METER_ORDER
from netbench.read.cells import metric_order
from netbench.read.shown_levels import shown
from netbench.report.blocks import Block, Cautions, Prose, Section, Table, keyed, prose, tabled
from netbench.report.numbers import count, share
from netbench.report.source import Source
from netbench.result.files import PlannedTool
from netbench.stats.by_boot import runs_a_boot
from netbench.stats.intervals import sequential_confidence

BOOTS = (
    "A block runs the cells of the kernel that is booted. Where runs lie in several boots the boot"
    " is the unit of means and of comparisons, since runs of one boot share what that boot happened"
    " to be; where a kernel has several builds, the build is."
)


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
        *([BOOTS] if source.result.in_boots or len(source.result.kernels) > 1 else []),
        _rule(source),
        *([f"{plan.pilot}."] if plan.pilot else []),
        f"{at}{why if widened != repeat.confidence else ''}; wider where"
        " the runs of a cell show that they follow each other (lag-1 correlation).",
        "No run was dropped, repeated or smoothed for its value. What is missing was not measured.",
        *(_tool(name, lines) for name, lines in plan.tools.items()),
    ]
    if source.result.compare:
        lines.append(
            "Comparisons: differences of logarithms within a block, or between boots of the same"
            " round, so that what drifts cancels; their mean with Student's t"
            " gives the ratio and its interval, wider likewise. Both are corrected for all"
            " comparisons of one metric (Holm): any verdict is false as seldom as said, and all"
            " intervals at once hold a little less often."
        )
    blocks: list[Block] = [Prose(tuple(lines), bullets=True), *_definitions(source)]
    return Section("method", "How the numbers were made", tuple(blocks))


def _tool(name: str, lines: PlannedTool) -> str:
    server = f", its server `{lines.server}`" if lines.server else ""
    return f"The tool {name} is `{lines.client}`{server}."


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
