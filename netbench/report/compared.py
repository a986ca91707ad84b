"""What `compare` answers: a sentence for each cell and metric, a table a metric, and what the gates
say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from netbench.analysis import independent
from netbench.analysis.cells import metric_order
from netbench.analysis.compare import Comparison
from netbench.analysis.gates import Gate, Outcome, judge
from netbench.analysis.independent import Difference
from netbench.analysis.result import Result
from netbench.analysis.words import bounds, change
from netbench.errors import ReportError
from netbench.report.blocks import Block, Column, Prose, Section, Table
from netbench.report.json import SCHEMA, plain
from netbench.report.label import label_of, labelled
from netbench.report.numbers import count, share
from netbench.report.sections.comparison import table
from netbench.report.sections.summary import EMULATED
from netbench.report.source import Source

Families = Mapping[str, Sequence[Comparison]]
UNPAIRED = (
    "The two ran at different times, so nothing is paired: each result is an independent sample"
    " (Welch), and what else changed between the two times is part of the difference."
)
SAID = 8  # of a gate, in words; the rest are counted


@dataclass(frozen=True)
class Compared:
    """Comparisons by metric, what they are of, and what gates say of them.

    `results`: names to result folders; `notes`: what was left out or assumed; `differing`: what two
    results differ in; `asked`: metrics that were named.
    """

    title: str
    results: Mapping[str, Result]
    families: Families
    gates: Sequence[Gate] = ()
    notes: Sequence[str] = ()
    differing: Sequence[Difference] = ()
    asked: Sequence[str] = ()

    @cached_property
    def outcomes(self) -> list[Outcome]:
        return [judge(gate, self.families) for gate in self.gates]

    @property
    def fell(self) -> bool:
        """Whether a gate fell."""
        return any(outcome.fell for outcome in self.outcomes)

    @property
    def label(self) -> str:
        """That of what was measured under emulation; "" else."""
        return label_of(*self.results.values())

    @property
    def sections(self) -> list[Section]:
        """Head with sentences, tables, differences, gates; those that have nothing to say are left
        out.
        """
        several = len({c.pair for family in self.families.values() for c in family}) > 1
        head = [f"{self.label[0].upper()}{self.label[1:]}. {EMULATED}"] if self.label else []
        if len(self.results) > 1:
            head += [f"{name}: {_described(result)}" for name, result in self.results.items()]
            head.append(UNPAIRED)
        blocks: list[Block] = [Prose(tuple(head))] if head else []
        blocks.append(Prose(tuple(self._sentences(several)), bullets=True))
        blocks += [
            table(metric, family, several) for metric, family in self.families.items() if family
        ]
        found = [Section("comparison", self.title, tuple(blocks))]
        if self.notes:
            found.append(
                Section(
                    "notes",
                    "What was left out, or assumed",
                    (Prose(tuple(self.notes), bullets=True),),
                )
            )
        if len(self.results) > 1:
            found.append(
                Section("differences", "What the two differ in besides", (self._differences(),))
            )
        if self.gates:
            lines = tuple(_said(outcome, several) for outcome in self.outcomes)
            found.append(Section("gates", "Gates", (Prose(lines, bullets=True),)))
        return [labelled(section, self.label) for section in found]

    def _sentences(self, several: bool) -> list[str]:
        """One a comparison. CPU busy says little where throughput differs: it is left to its table
        unless it was asked for.
        """
        asked = {*self.asked, *(gate.metric for gate in self.gates)}
        chosen = [
            family
            for name, family in self.families.items()
            if name in asked or not name.endswith("_cpu")
        ]
        found = []
        for c in (c for family in chosen for c in family):
            told = f"{c.sentence} ({c.verdict})" if c.verdict in ("better", "worse") else c.sentence
            found.append(f"{where(c, several)}: {told}." if where(c, several) else f"{told}.")
        return found

    def _differences(self) -> Block:
        if not self.differing:
            return Prose(
                (
                    (
                        "Nothing that was read: all facts that must match do, and the campaigns"
                        " write the same transfer."
                    ),
                )
            )
        columns = (
            Column("what", kind="key"),
            Column("of", kind="key"),
            Column("values", kind="prose"),
        )
        rows = tuple((d.what, d.where, f"{d.a} in A; {d.b} in B") for d in self.differing)
        return Table(
            "",
            columns,
            rows,
            ("Facts that must match, and what the campaigns say of transfer and settings.",),
        )

    def to_json(self) -> dict[str, Any]:
        """The same for programs; what there is none of is null."""
        return {
            "schema": SCHEMA,
            "title": self.title,
            "label": self.label,
            "results": {name: str(result.path) for name, result in self.results.items()},
            "paired": len(self.results) == 1,
            "comparisons": [comparison(c) for family in self.families.values() for c in family],
            "notes": list(self.notes),
            "differences": [asdict(d) for d in self.differing],
            "gates": [
                {
                    "gate": o.gate.text,
                    "metric": o.gate.metric,
                    "fell": [comparison(c) for c in o.fell],
                    "held": o.held,
                    "not_judged": [comparison(c) for c in o.unjudged],
                }
                for o in self.outcomes
            ],
            "fell": self.fell,
        }


def comparison(c: Comparison) -> dict[str, Any]:
    """A comparison as an object."""
    return {key: plain(value) for key, value in asdict(c).items()} | {"sentence": c.sentence}


def of_factor(
    source: Source,
    factor: str | None,
    baseline: str | None = None,
    margin: float | None = None,
    metrics: Sequence[str] = (),
    gates: Sequence[Gate] = (),
) -> Compared:
    """The levels of a factor of one result.

    factor None: the one that the campaign compares; baseline None: likewise, or the first level.
    metrics: those of the tables where none is named, and those of the gates. Errors: ReportError
    for what is not there.
    """
    result, chosen, base, within = (
        source.result,
        *_question(source.result, factor, baseline, margin),
    )
    families = {
        name: source.compare(chosen, base, name, within)
        for name in _metrics([source], metrics, gates)
    }
    return Compared(
        f"{result.name}: {chosen} compared with {base}",
        {"": result},
        families,
        gates,
        asked=tuple(metrics),
    )


def _question(
    result: Result, factor: str | None, baseline: str | None, margin: float | None
) -> tuple[str, str, float | None]:
    """Factor, baseline and margin."""
    asked = result.compare
    swept = ", ".join(result.swept) or "nothing was swept"
    if factor is None and asked is None:
        raise ReportError(
            f"{result.path}: its campaign compares nothing; --factor says what to compare ({swept})"
        )
    chosen = factor or (asked.factor if asked else "")
    if chosen not in result.swept:
        raise ReportError(f"{result.path}: no factor {chosen!r}; there are {swept}")
    levels = [str(level) for level in result.runs[chosen].cat.categories]
    if len(levels) < 2:
        raise ReportError(f"{result.path}: {chosen} has one level, {levels[0]}")
    meant = asked if asked is not None and asked.factor == chosen else None
    base = baseline or (meant.baseline if meant else levels[0])
    if base not in levels:
        raise ReportError(
            f"{result.path}: {base!r} is no level of {chosen}; its levels: {', '.join(levels)}"
        )
    return chosen, base, margin if margin is not None or meant is None else meant.margin


def of_two(
    a: Source,
    b: Source,
    margin: float | None = None,
    metrics: Sequence[str] = (),
    gates: Sequence[Gate] = (),
) -> Compared:
    """Two results, cell by cell. Errors: ReportError where they have no cell or not the metric in
    common.
    """
    matching = independent.match(a.result, b.result)
    if not matching.matches:
        why = "; ".join(matching.notes) or "they swept nothing alike"
        raise ReportError(f"{a.result.path} and {b.result.path} have no cell in common: {why}")
    families = {
        name: independent.compared(a.result, b.result, matching, name, margin)
        for name in _metrics([a, b], metrics, gates)
    }
    return Compared(
        f"{b.result.name} (B) compared with {a.result.name} (A)",
        {independent.A: a.result, independent.B: b.result},
        families,
        gates,
        matching.notes,
        independent.differences(a.result, b.result),
        tuple(metrics),
    )


def _metrics(sources: Sequence[Source], asked: Sequence[str], gates: Sequence[Gate]) -> list[str]:
    """The metrics to compare, each in all results."""
    named = list(dict.fromkeys((*asked, *(gate.metric for gate in gates))))
    for source in sources:
        there = source.result.metrics
        for name in (name for name in named if name not in there):
            known = ", ".join(metric_order(there))
            raise ReportError(
                f"{source.result.path}: no metric {name!r} was measured; there are {known}"
            )
    shown = [
        name
        for name in sources[0].metrics
        if all(name in source.result.metrics for source in sources)
    ]
    return list(dict.fromkeys((*(asked or shown), *named)))


def where(c: Comparison, several: bool) -> str:
    """Which of a family a comparison is: `send=splice pin=apart`; several: pairs of hosts, of which
    it says its own.
    """
    words = [f"{name}={level}" for name, level in c.context.items() if level]
    return " ".join([c.pair, *words] if several else words)


def _described(result: Result) -> str:
    started = result.runs["started"].dropna()
    when = f", begun {started.min():%Y-%m-%d %H:%M} UTC" if len(started) else ""
    return f"{result.path} ({result.name}{when}, {count(len(result.runs), 'run')})"


def _said(outcome: Outcome, several: bool) -> str:
    """A gate in words."""
    fell, unjudged = outcome.fell, outcome.unjudged
    total = len(fell) + outcome.held + len(unjudged)
    parts = []
    if fell:
        parts.append(
            f"FELL in {len(fell)} of {total}: {_listed([_change(c, several) for c in fell])}"
        )
    if outcome.held:
        parts.append(f"holds in {outcome.held} of {total}")
    if unjudged:
        whys = [f"{_of(c, several)}{c.why}" for c in unjudged]
        parts.append(
            f"cannot be judged{f' in {len(unjudged)} of {total}' if len(unjudged) < total else ''}:"
            f" {_listed(whys)}"
        )
    return f"{outcome.gate.text}: {'; '.join(parts) or 'cannot be judged: nothing was compared'}."


def _change(c: Comparison, several: bool) -> str:
    return (
        f"{_of(c, several)}{change(c.ratio)}, {share(c.confidence)} interval"
        f" {bounds(c.low, c.high)}"
    )


def _of(c: Comparison, several: bool) -> str:
    """The level and place before what is said of it; "" where there is one thing alone."""
    level = [f"{c.factor}={c.level}"] if c.against is None else []
    words = " ".join([*level, *([where(c, several)] if where(c, several) else [])])
    return f"{words}: " if words else ""


def _listed(texts: Sequence[str]) -> str:
    return "; ".join(texts[:SAID]) + (
        f"; and {len(texts) - SAID} more" if len(texts) > SAID else ""
    )
