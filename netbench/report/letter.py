"""A comparison as text for a patch's cover letter: plain, 72 columns, and with what reviewers ask
for beside numbers: spread, what could have been seen, and what was copied.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from netbench.base.control_characters import escape_controls
from netbench.base.errors import ReportError
from netbench.base.terminal import fold
from netbench.read.result import Result
from netbench.read.shown_levels import shown
from netbench.report.blocks import Column, Table, keyed, tabled
from netbench.report.build import Report
from netbench.report.label import explained, label_of
from netbench.report.numbers import MISSING, count, number, share
from netbench.report.phrases import control_lines, fixed, releases, title, where
from netbench.report.sections.proof_and_settings import COPIED, counters
from netbench.report.sections.summary import gone_along
from netbench.report.source import Source
from netbench.report.text import block_lines
from netbench.stats import power
from netbench.stats.by_boot import KERNEL, runs_a_boot
from netbench.stats.comparison import FLAGS, NO_VERDICT, Comparison
from netbench.stats.words import signed

WIDTH = 72
LONGEST = 10  # of a level's name that heads a column
TELLING = {"Gb/s": "Gb/s", "CPUs": "CPUs", "µs/KB": "us/KB", "cycles/byte": "cycles/byte"}
"""Units that say what is measured, in plain text."""


def render(report: Report) -> str:
    """The letter. Errors: ReportError where the campaign compares nothing."""
    source = report.source
    family = compared(source)
    parts = [
        folded(_head(source, family), ""),
        block_lines(_table(source, family), WIDTH),
        folded(_shown(source, family)),
        folded(_cautions(source)),
    ]
    return "\n\n".join(filter(None, map("\n".join, parts)))


def folded(paragraphs: Iterable[str], indent: str = "  ") -> Iterator[str]:
    """The lines of some paragraphs."""
    for text in paragraphs:
        yield from fold(escape_controls(text), indent, WIDTH).splitlines()


def compared(source: Source) -> list[Comparison]:
    """All comparisons of the campaign. Errors: as render."""
    family = [c for each in source.comparisons.values() for c in each]
    if not family:
        raise ReportError(
            f"{source.result.path}: letters, KTAP and JUnit tell a comparison, and this campaign"
            " has none; give it `compare: {factor: F, baseline: LEVEL}`"
        )
    return family


def _head(source: Source, family: Sequence[Comparison]) -> Iterator[str]:
    """What was measured on, what is compared, and how often."""
    result = source.result
    yield from explained(label_of(result))
    yield hardware(result)
    yield releases(result, (cell.factors.get(KERNEL, "") for cell in source.cells))
    yield fixed(result)
    first = family[0]
    levels = dict.fromkeys(c.level for c in family)
    named = ", ".join(f"{first.factor}={shown(level)}" for level in levels)
    repeat = result.repeat
    sizes = sorted({c.n for c in family})
    runs = count(sizes[-1], first.unit)
    if len(sizes) > 1:
        runs = f"{sizes[0]} to {runs}"
    blocks = count(runs_a_boot(repeat), "block")
    if first.unit == "build":
        boots = f"{repeat.boots / max(result.builds.values()):.3g} boots"
        runs += f" x {boots} x {blocks}"
    elif result.in_boots:
        runs += f" of {blocks} each"
    yield (
        f"{named} against {first.factor}={shown(first.baseline)} (base); {runs};"
        f" {share(repeat.confidence)} intervals; verdicts hold for all rows of a metric together;"
        " changes are of geometric means"
    )


def _table(source: Source, family: Sequence[Comparison]) -> Table:
    """A row a context, level and metric: both means, the change, its interval and its verdict."""
    first = family[0]
    names = [name for name in first.context if any(c.context.get(name) for c in family)]
    names += [first.factor] if len({c.level for c in family}) > 1 else []
    short = first.factor not in names and max(map(len, (first.level, first.baseline))) <= LONGEST
    base, level = (first.baseline, first.level) if short else ("base", "level")
    rows = []
    for c in sorted(family, key=lambda c: (c.pair, [*c.context.values()], c.level)):
        words = {"pair": c.pair} if source.several else {}
        words |= {name: shown({**c.context, c.factor: c.level}[name]) for name in names}
        interval, doubt = (f"{signed(c.low)} .. {signed(c.high)}", "*" if c.flags else "")
        if math.isnan(c.low):
            interval, doubt = MISSING, ""
        rows.append(
            {
                **keyed([*words, ""], *words.values(), _label(source, c)),
                Column(base): _mean(source, c, c.baseline),
                Column(level): _mean(source, c, c.level),
                "change": f"{signed(c.ratio)}%" if c.ratio > 0 else MISSING,
                f"{share(first.confidence)} interval": interval,
                "verdict": f"{c.verdict}{doubt}",
            }
        )
    return tabled("", rows)


def _label(source: Source, c: Comparison) -> str:
    """The unit where that says what it is (`Gb/s`, `sender us/KB`), else title and unit."""
    unit = source.result.describe(c.metric).unit
    who, _, what = c.metric.partition("_")
    if unit in TELLING and what in ("", "cpu", "demand", "cycles_per_byte"):
        return f"{'' if what == '' or who == 'system' else f'{who} '}{TELLING[unit]}"
    return f"{title(c.metric, source.result)}{f', {unit}' if unit else ''}"


def _mean(source: Source, c: Comparison, level: str) -> str:
    """The mean of the cell of a comparison that has a level."""
    cell = source.cell_of(c, level)
    return number(cell.intervals[c.metric].mean) if cell and c.metric in cell.intervals else MISSING


def _shown(source: Source, family: Sequence[Comparison]) -> Iterator[str]:
    """What the numbers alone do not say."""
    marks = dict.fromkeys(flag for c in family for flag in c.flags)
    if marks:
        yield f"* {'; '.join(FLAGS[flag] for flag in marks)}"
    for why in dict.fromkeys(c.unsettled for c in family if c.refused):
        yield f"{NO_VERDICT}: {why}."
    for c in (c for c in family if c.failures):
        yield f"{where(c, source.several)} {c.sentence}".strip() + "."
    yield from gone_along(source, source.answers)
    yield _copied(source)
    yield f"Could have shown, with 80% power: {_seen(source)}."
    controls = [
        line
        for metric, each in source.answers.items()
        for line in control_lines(title(metric, source.result), source.controls(each))
    ]
    yield from controls or ["No control ran (compare: {control: true})."]
    yield "Repeat: python -m netbench run campaign.yaml, of the result's folder"


def _copied(source: Source) -> str:
    """What methods that spare a copy copied after all, by side."""
    copies = [
        f"{side} {method} {each.total:,.0f} of {each.whole:,.0f} {each.proof.part_of or 'bytes'}"
        for (side, method, name), each in counters(source).items()
        if name in COPIED and each.whole
    ]
    return f"Copied by the kernel after all: {'; '.join(copies)}." if copies else ""


def _seen(source: Source) -> str:
    """The smallest difference in each metric that answers, of the row that varies most."""
    moved = []
    for metric, family in source.answers.items():
        known = [
            power.smallest_difference(c.error * math.sqrt(c.n), c.n, c.corrected)
            for c in family
            if c.n > 1 and not math.isnan(c.low)
        ]
        if known:
            moved.append(f"{title(metric, source.result)} {share(math.expm1(max(known)))}")
    return ", ".join(moved) or "nothing, for want of runs"


def _cautions(source: Source) -> Iterator[str]:
    """Each caution in a line or two, with the cells that it is about unless it is all of them."""
    compared = {f"{c.cell} {c.pair}" if source.several else c.cell for c in source.cells}
    for caution in source.cautions:
        where = [shown(each) for each in caution.where if each in compared]
        of_all = len(where) in (0, len(compared))
        place = "" if of_all else f" ({', '.join(where[:3])}{', ...' if len(where) > 3 else ''})"
        yield f"Caution: {caution.what.rstrip('.')}{place}."


FACTS = {
    "kernel": "Linux {}",
    "nic_driver": "{}",
    "speed": "{} Mb/s",
    "nic_firmware": "firmware {}",
    "pci_width": "PCIe x{}",
    "pci_speed": "{}",
    "nic_numa_node": "on NUMA node {}",
    "mtu": "MTU {}",
}
"""Facts of a host as a letter tells them, those that are known."""
NONE = ("", "-1", "0", "None", "unknown")  # of a number that there is none of
_NOISE = re.compile(r"\((?:R|TM|r|tm)\)|\bCPU\b|\bProcessor\b|@.*")


def hardware(result: Result) -> str:
    """`2x EPYC 9454 (96 cores), Linux 6.12.4, mlx5_core, MTU 4096`, by host where these differ."""
    facts = [entry.facts for host in result.hosts for entry in result.in_force(host)[-1:]]
    machines = Counter(", ".join(_machine(known, KERNEL in result.factors)) for known in facts)
    if len(machines) == 1:
        ((machine, hosts),) = machines.items()
        return machine if hosts == 1 else f"{hosts} hosts, each {machine}"
    return "; ".join(machines) or "hardware unknown"


def _machine(facts: Mapping[str, Any], many: bool) -> Iterator[str]:
    """A host in words; many: kernels are compared, so that it has several."""
    cpus = " ".join(_NOISE.sub("", str(facts.get("cpu_model") or "unknown CPU")).split())
    cores = str(facts.get("cores") or "")
    yield f"{facts.get('sockets') or 1}x {cpus}" + (f" ({cores} cores)" if cores else "")
    for name, words in FACTS.items():
        if name == "nic_driver" and facts.get("interface") == "lo":
            yield "loopback"
        elif str(facts.get(name)) not in NONE and not (many and name == "kernel"):
            yield words.format(facts[name])
