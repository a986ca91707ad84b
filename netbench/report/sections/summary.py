"""Summary: the answers first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from netbench.analysis import offered
from netbench.analysis.cells import CellResult
from netbench.analysis.comparison import VERDICTS, Comparison
from netbench.analysis.meter_choice import LEAST
from netbench.analysis.words import amount
from netbench.report.blocks import Block, Prose, Section
from netbench.report.label import label_of
from netbench.report.numbers import count, words
from netbench.report.source import Source
from netbench.report.titles import sentence, title
from netbench.units import format_duration

EMULATED = "A program emulates the CPU: no time, rate or cost below is that of a machine."
SENTENCES = 8  # sentences that are all said; more are told as ranges
STATUS_ORDER = ("converged", "max", "unstable", "failed", "refused", "unsupported", "interrupted")


def summary(source: Source) -> Section:
    """The question and its answer: comparison sentences, or highest and lowest cells; then the
    state of the campaign.
    """
    result = source.result
    label = label_of(result)
    blocks: list[Block] = [Prose((f"{label[0].upper()}{label[1:]}. {EMULATED}",))] if label else []
    blocks += [Prose((result.about,))] if result.about else []
    answers = tuple(_compared(source) if source.comparisons else _overview(source))
    blocks.append(Prose(answers or ("No run has given a result.",), bullets=bool(answers)))
    fixed = (source.offered,) if source.offered else ()
    blocks.append(Prose((_state(source), *fixed, *_sides(source), *_warned(source))))
    return Section("summary", f"{result.name}: summary", tuple(blocks))


def _compared(source: Source) -> Iterator[str]:
    names = answering(source.comparisons, source.result.repeat.metrics, source.offered)
    answers = {metric: source.comparisons[metric] for metric in names}
    each = sum(len(family) for family in answers.values()) <= SENTENCES
    for metric, family in answers.items():
        if each:
            yield from (_in_context(source, c) for c in family)
            continue
        for level in dict.fromkeys(c.level for c in family):
            mine = [c for c in family if c.level == level]
            many = len(mine) > 1
            yield (
                _ranged(title(metric, source.result), mine) if many else _in_context(source, *mine)
            )


def answering(metrics: Collection[str], asked: Collection[str], rate: str) -> list[str]:
    """The metrics whose comparisons answer the question. CPU busy says little where throughput
    differs: it is left to its table, unless it was asked for or a `rate` fixes all throughput; then
    demand would say the same again.
    """
    fixed = bool(rate) and offered.METRIC not in metrics
    return [
        metric
        for metric in metrics
        if metric in asked or not metric.endswith("_demand" if fixed else "_cpu")
    ]


def _in_context(source: Source, c: Comparison) -> str:
    where = " ".join(f"{k}={v}" for k, v in c.context.items() if v)
    if len(source.result.plan.pairs) > 1:
        where = f"{c.pair} {where}".strip()
    told = sentence(c, source.result)
    return f"{where}: {told}." if where else f"{told}."


def _ranged(what: str, family: Sequence[Comparison]) -> str:
    """One level in many contexts: the verdicts, and the least and greatest ratio."""
    first = family[0]
    tally = Counter(c.verdict for c in family)
    verdicts = ", ".join(f"{v} in {tally[v]}" for v in VERDICTS if tally[v])
    ratios = sorted(c.ratio for c in family if c.ratio == c.ratio)
    span = f"; from {amount(ratios[0])} to {amount(ratios[-1])}" if ratios else ""
    return f"{what}: {' against '.join(first.names)} is {verdicts} of {len(family)} contexts{span}."


def _overview(source: Source) -> Iterator[str]:
    """Without a question: the highest and the lowest cell of each metric, and how many can't be
    told from the highest.
    """
    fixed = source.offered and not offered.free(source.result, source.cells)
    for metric in source.metrics:
        if metric == offered.METRIC and fixed:
            continue
        measured = [c for c in source.cells if metric in c.intervals]
        if not measured:
            continue
        unit = source.result.describe(metric).unit
        ranked = sorted(measured, key=lambda c: c.intervals[metric].mean)
        low, high = ranked[0], ranked[-1]
        what = title(metric, source.result)
        if len(ranked) == 1:
            yield f"{what}: {words(high.intervals[metric])} {unit}."
            continue
        near = sum(c.intervals[metric].high >= high.intervals[metric].low for c in ranked[:-1])
        also = (
            f" ({count(near, 'other cell')} overlap{'s' if near == 1 else ''} it)" if near else ""
        )
        yield (
            f"{what}: most {words(high.intervals[metric])} {unit} with"
            f" {_name(source, high)}{also}; least {words(low.intervals[metric])} with"
            f" {_name(source, low)}."
        )


def _name(source: Source, cell: CellResult) -> str:
    return f"{cell.cell} {cell.pair}" if len(source.result.plan.pairs) > 1 else cell.cell


def _state(source: Source) -> str:
    runs = source.result.runs
    tally = Counter(c.status for c in source.cells)
    statuses = ", ".join(f"{tally[s]} {s}" for s in STATUS_ORDER if tally[s])
    text = f"{count(len(source.cells), 'cell')} ({statuses}), {count(len(runs), 'run')}"
    started = runs["started"].dropna()
    if len(started) == 0:
        return text + "."
    took = (started.max() - started.min()).total_seconds()
    boots = source.result.kernels
    if len(boots) > 1 or source.result.in_boots:
        kernels = set(boots.values()) - {""}
        text += f" in {count(len(boots), 'boot')}" + (
            f" of {count(len(kernels), 'kernel')}" if kernels else ""
        )
    return (
        f"{text}, begun {started.min():%Y-%m-%d %H:%M} UTC, {format_duration(took)} from the first"
        " run to the start of the last."
    )


def _sides(source: Source) -> Iterator[str]:
    """Whether the sides' CPU can be told apart, where a meter of the whole kernel ran."""
    shared, whole = source.result.shared, _host_meter(source)
    if shared and whole and not any(shared.values()):
        yield (
            f"Each side has its own kernel: {whole} tells sender and receiver CPU apart, with all"
            " that each kernel did (softirq too)."
        )
    elif shared and whole and all(shared.values()):
        yield (
            f"Both sides share a kernel: {whole} sees them together (system CPU), rusage each"
            " process alone, without softirq."
        )


def _host_meter(source: Source) -> str:
    """The meter of whole hosts that system CPU is by; "" where none is."""
    there = source.result.metrics
    order = source.result.meters["system_cpu"]
    best = next((meter for meter in order if f"system_cpu.{meter}" in there), LEAST)
    return "" if best == LEAST else best


def _warned(source: Source) -> Iterator[str]:
    cautions = source.cautions
    if cautions:
        kinds = ", ".join(dict.fromkeys(c.kind for c in cautions))
        yield (
            f"{count(len(cautions), 'caution')} below ({kinds}): read"
            f" {'it' if len(cautions) == 1 else 'them'} before the numbers."
        )
