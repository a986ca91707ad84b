"""The answer of `compare`: a sentence for each cell and metric, tables, outcomes of gates."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from netbench.base.names import PROGRAM, shell_word
from netbench.base.units import listed
from netbench.read.campaigns import History
from netbench.read.compare import ZERO
from netbench.read.gates import Gate, Outcome, judge
from netbench.read.matching import NAMED, A, B, Difference
from netbench.read.result import Result
from netbench.report.blocks import Block, Prose, Section, Table, keyed, prose, tabled
from netbench.report.json import SCHEMA, comparison, control
from netbench.report.label import explained, label_of, labelled
from netbench.report.numbers import count
from netbench.report.phrases import VOID, answering, control_lines, gate_line, in_context, title
from netbench.report.sections.level_tables import table
from netbench.stats.comparison import FEW_RUNS, Comparison

Families = Mapping[str, Sequence[Comparison]]
UNPAIRED = (
    "The two ran at different times, so nothing is paired: each result is an independent sample"
    " (Welch), and what else changed between the two times is part of the difference."
)
NOTHING = (
    "Nothing that was read: all facts that must match do, and the campaigns write the same"
    " transfer."
)


@dataclass(frozen=True)
class Compared:
    """Comparisons by metric, what they are of, and what gates say of them.

    `results`: names to result folders; `notes`: what was left out or assumed; `differing`: what two
    results differ in; `profiles`: which functions' costs changed; `asked`: metrics that were named;
    `offered`: what a rate did to throughput; `history`: earlier results; `forced`: gates are judged
    without them; `controls`: by metric, those beside its comparisons.
    """

    title: str
    results: Mapping[str, Result]
    families: Families
    gates: Sequence[Gate] = ()
    notes: Sequence[str] = ()
    differing: Sequence[Difference] = ()
    asked: Sequence[str] = ()
    offered: str = ""
    profiles: Sequence[Table] = ()
    history: History | None = None
    forced: bool = False
    controls: Families = field(default_factory=dict)

    @cached_property
    def outcomes(self) -> list[Outcome]:
        return [judge(gate, self.families, self.forced) for gate in self.gates]

    @property
    def refusal(self) -> str:
        """Why gates are not answered that earlier results or what was measured do not allow, and
        what to do; "" where each that has not fallen is judged for all levels.
        """
        unanswered = [(o.gate, o.unjudged) for o in self.outcomes if not o.fell]
        if texts := [gate.text for gate, of in unanswered if any(c.lacks_history for c in of)]:
            a = self.results[A]
            return (
                f"cannot judge {listed(texts, NAMED)}: {self._history_said}. Run {a.name} a few"
                " times more and name a folder with these results:"
                f" `compare A B --history {shell_word(a.path.parent)}`; --force judges the"
                " intervals as they are"
            )
        whys = [(gate, c.why or c.unsettled) for gate, of in unanswered for c in of]
        whys += [(o.gate, VOID) for o in self.outcomes if not (o.fell or o.held or o.unjudged)]
        refused = {
            gate.text: why
            for gate, why in whys
            if why not in ("", FEW_RUNS, "" if gate.below else ZERO)  # 0 lies above no limit
        }
        names = listed(list(refused), NAMED)
        return f"cannot judge {names}: {next(iter(refused.values()))}" if refused else ""

    @property
    def _history_said(self) -> str:
        if self.history is None:
            return "one campaign each cannot tell a change from what two campaigns differ by"
        there = count(len(self.history.results), "other result")
        return f"{self.history.folder} has {there} of {self.results[A].name} that can be used"

    @property
    def fell(self) -> bool:
        """Whether a gate fell."""
        return any(outcome.fell for outcome in self.outcomes)

    @property
    def label(self) -> str:
        """That of what was measured under emulation or in guests; "" else."""
        return label_of(*self.results.values())

    @property
    def sections(self) -> list[Section]:
        """Head with sentences, tables, differences, gates; what has nothing to say is left out."""
        several = len({c.pair for family in self.families.values() for c in family}) > 1
        head = explained(self.label)
        if len(self.results) > 1:
            head += [f"{name}: {_described(result)}" for name, result in self.results.items()]
            head += self._how_paired()
        head += [self.offered] if self.offered else []
        blocks: list[Block] = [Prose(tuple(head))] if head else []
        blocks.append(Prose(tuple(self._sentences(several)), bullets=True))
        for metric, family in self.families.items():
            what = title(metric, *self.results.values())
            blocks.append(table(what, family, several, self.controls.get(metric, ())))
        every = max(map(len, self.families.values()), default=0)
        gates = tuple(gate_line(outcome, several, every) for outcome in self.outcomes)
        sections = (
            Section("comparison", self.title, tuple(blocks)),
            Section("profile", "Where the cycles go", tuple(self.profiles)),
            Section("notes", "What was left out, or assumed", _points(self.notes)),
            Section("differences", "What the two differ in besides", tuple(self._differences())),
            Section("gates", "Gates", _points(gates)),
        )
        return [labelled(section, self.label) for section in sections if section.blocks]

    def text(self, width: int = 80) -> str:
        """The answer as text."""
        from netbench.report.text import section_lines

        sections = (section_lines(section, width) for section in self.sections)
        parts = ["\n".join(lines).rstrip() for lines in sections]
        return "\n\n".join([*parts, *(["\n".join(self.advice)] if self.advice else [])])

    def _repr_html_(self) -> str:
        from netbench.report.html import fragment

        return fragment(self.sections, self.label)

    def __repr__(self) -> str:
        return self.text()

    def _how_paired(self) -> list[str]:
        """What the results have to do with each other."""
        lines = [UNPAIRED]
        if self.history is not None and self.history.results:
            many = count(len(self.history.results), "earlier result")
            lines.append(
                f"Intervals hold the spread of {many} of {self.results[A].name} below"
                f" {self.history.folder}."
            )
        return lines

    @property
    def advice(self) -> list[str]:
        """Why two results have no verdicts, and the commands that give some, a line each."""
        if not any(c.lacks_history for family in self.families.values() for c in family):
            return []
        a, b = (shell_word(self.results[name].path) for name in (A, B))
        earlier = shell_word(self.results[A].path.parent)
        return [
            *textwrap.wrap(f"no verdict: {self._history_said}.", 80),
            "With two or more earlier results of the campaign, better five:",
            f"  {PROGRAM} compare {a} {b} --history {earlier}",
            "Of a change that a command makes, whose blocks have both states:",
            f"  {PROGRAM} ab {a}/campaign.yaml --change CMD",
        ]

    def _sentences(self, several: bool) -> list[str]:
        """One a comparison, of the metrics that answer the question."""
        asked = {*self.asked, *(gate.metric for gate in self.gates)}
        for result in self.results.values():
            asked |= set(result.repeat.metrics)
        sentences = []
        for name in answering(self.families, asked, self.offered):
            family = self.families[name]
            sentences += [in_context(c, several, *self.results.values()) for c in family]
            what = title(name, *self.results.values())
            sentences += control_lines(what, self.controls.get(name, ()))
        return sentences

    def _differences(self) -> Iterator[Block]:
        if len(self.results) < 2:
            return
        if not self.differing:
            yield Prose((NOTHING,))
            return
        rows = [
            {**keyed("what of", d.what, d.where), prose("values"): f"{d.a} in A; {d.b} in B"}
            for d in self.differing
        ]
        note = "Facts that must match, and what the campaigns say of transfer and settings."
        yield tabled("", rows, note)

    def to_json(self) -> dict[str, Any]:
        """The same for programs; what there is none of is null."""
        return {
            "schema": SCHEMA,
            "title": self.title,
            "label": self.label,
            "results": {name: str(result.path) for name, result in self.results.items()},
            "paired": len(self.results) == 1,
            "comparisons": [comparison(c) for family in self.families.values() for c in family],
            "controls": [control(c) for each in self.controls.values() for c in each],
            "notes": list(self.notes),
            "differences": [d._asdict() for d in self.differing],
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
            "history": self.history
            and {
                "folder": str(self.history.folder),
                "results": [str(result.path) for result in self.history.results],
                "notes": list(self.history.notes),
            },
            "forced": self.forced,
            "refusal": self.refusal,
        }


def _points(lines: Sequence[str]) -> tuple[Block, ...]:
    return (Prose(tuple(lines), bullets=True),) if lines else ()


def _described(result: Result) -> str:
    started = result.runs["started"].dropna()
    when = f", begun {started.min():%Y-%m-%d %H:%M} UTC" if len(started) else ""
    return f"{result.path} ({result.name}{when}, {count(len(result.runs), 'run')})"
