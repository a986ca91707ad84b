"""How the numbers were made, so that a reader can judge or repeat them."""

from __future__ import annotations

from netbench.analysis.intervals import sequential_confidence
from netbench.analysis.metrics import METER_ORDER, METRICS
from netbench.report.blocks import Block, Column, Prose, Section, Table
from netbench.report.numbers import share
from netbench.report.source import Source


def method(source: Source) -> Section:
    """Design, stopping rule, intervals, and the definition of every metric of this report."""
    repeat, plan = source.loaded.repeat, source.loaded.plan
    widened = sequential_confidence(repeat.confidence, repeat.min, repeat.max)
    at = f"Intervals: arithmetic mean and Student's t at {share(repeat.confidence)}"
    why = f", computed at {share(widened)} because a cell that stops at a narrow interval would else be covered too rarely"
    lines = [
        f"Randomised complete blocks, seed {plan.get('seed')}: each block runs every open cell once, on a fresh connection.",
        _rule(source),
        f"{at}{why if widened != repeat.confidence else ''}.",
        "No run was dropped, repeated or smoothed for its value. What is missing was not measured.",
    ]
    if source.loaded.compare:
        lines.append(
            "Comparisons: differences of logarithms within a block, so that what drifts between blocks cancels; their mean with "
            "Student's t gives the ratio and its interval. All comparisons of one metric are one family (Holm)."
        )
    blocks: list[Block] = [Prose(tuple(lines), bullets=True), *_definitions(source)]
    return Section("method", "How the numbers were made", tuple(blocks))


def _definitions(source: Source) -> list[Table]:
    names = dict.fromkeys(name.partition(".")[0] for name in source.loaded.metrics)
    rows = tuple((name, METRICS[name].unit, METRICS[name].about) for name in METRICS if name in names)
    columns = (Column("metric", kind="key"), Column("unit"), Column("definition", kind="prose"))
    note = "CPU metrics exist also by meter, as NAME.METER (CSV, notebooks); the bare name is by the best that ran: "
    return [Table("Metrics", columns, rows, (f"{note}{', '.join(METER_ORDER)}.",))] if rows else []


def _rule(source: Source) -> str:
    repeat = source.loaded.repeat
    if repeat.max <= repeat.min:
        return f"Each cell was to have {repeat.min} runs, whatever they show."
    metrics, runs = ", ".join(repeat.metrics), f"after {repeat.min} to {repeat.max} runs, as soon as"
    if source.loaded.compare:
        return (
            f"Cells that are compared close together, {runs} the ratio of each to the baseline has an interval of at most "
            f"±{share(repeat.precision)} in {metrics}; the means in the table may be less precise."
        )
    return (
        f"A cell closes {runs} the half-width of {metrics} is at most {share(repeat.precision)} of the mean "
        "(for CPU, or at most 0.005 CPUs)."
    )
