"""Reference of what netbench knows by name: methods, meters, settings, facts, metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from netbench.engine.catalogue import Named, Row
from netbench.engine.own_engine import local
from netbench.facts.fact import GROUPS, FactSource
from netbench.facts.registry import FACTS
from netbench.read.cautions.rule import rules
from netbench.read.metrics import METRICS
from netbench.settings.named import known
from tools.docs.markdown import code, join, prose, sentence, table

# Flags of methods, meters and their rows (native/include/netbench.h), as a reader needs them.
MEANINGS = {
    "from_memory": "`source: memory`",
    "from_zero": "`source: zero`",
    "from_file": "files as source",
    "to_discard": "`sink: discard`",
    "to_file": "a file as sink",
    "whole_file": "`chunk: file`",
    "no_data": "moves no data over the connection",
    "alone": "a thread for each stream",
    "fetches": "pairs with the method of the same name only",
    "always": "read in every run",
    "host_wide": "counts the whole kernel",
    "by_helper": "needs root, which a helper has",
    "without_soak": "never beside the meter soak",
    "sampled": "also read at every sample",
    "cpu_time": "CPU time",
    "gauge": "level at an instant",
    "must_move": "must not stay 0",
    "must_not_move": "must stay 0",
}
COSTS = {"run": "nothing", "link": "the link goes down for a moment", "host": "the host"}


def _flags(row: Row) -> str:
    return ", ".join(text for flag, text in MEANINGS.items() if flag in row.flags)


def _methods(methods: Mapping[str, Named]) -> str:
    return join(*(_method(method) for method in methods.values()))


def _method(method: Named) -> str:
    proofs = table(
        ("Proof", "Counts", "Unit", "Check"),
        [(code(p.name), prose(p.about), p.unit, _flags(p)) for p in method.counters],
    )
    options = table(
        ("Option", "Meaning", "Type", "Words"),
        [(code(o.name), prose(o.about), o.type, " ".join(o.words)) for o in method.options],
    )
    return join(
        f"### {method.name}",
        sentence(method.row.about),
        f"Flags: {_flags(method.row)}." if _flags(method.row) else "",
        proofs if method.counters else "This method has no proofs.",
        options if method.options else "",
    )


def send_methods() -> str:
    """A part for each send method of the engine."""
    return _methods(local().send)


def receive_methods() -> str:
    """A part for each receive method of the engine."""
    return _methods(local().receive)


def meters() -> str:
    """A part for each meter of the engine, with its counters."""
    per = {"run": "whole run", "stream": "each stream", "cpu": "each CPU"} | {
        "length": "each power of two"
    }
    return join(
        *(
            join(
                f"## {meter.name}",
                sentence(meter.row.about) + (f" Flags: {flags}." if flags else ""),
                table(
                    ("Counter", "Counts", "Unit", "Per", ""),
                    [
                        (code(c.name), prose(c.about), c.unit, per.get(c.per, c.per), _flags(c))
                        for c in meter.counters
                    ],
                ),
            )
            for meter in local().meters.values()
            for flags in [_flags(meter.row)]
        )
    )


def settings() -> str:
    """A table of every setting."""
    return table(
        ("Setting", "What it is", "Levels", "A change costs"),
        [
            (
                code(f"{name}NAME" if name.endswith(".") else name),
                prose(setting.about),
                prose(setting.levels),
                COSTS[setting.cost],
            )
            for name, setting in known().items()
        ],
    )


def _origins(sources: Iterable[FactSource]) -> str:
    return "<br>".join(
        code(" ".join(" ".join((source.op, *source.target)).split())) for source in sources
    )


def facts() -> str:
    """A table of facts for each group."""
    return join(
        *(
            join(
                f"## {group[0].upper()}{group[1:]}",
                table(
                    ("Fact", "What it is", "Must match", "Held by the setting", "Read by"),
                    [
                        (
                            code(fact.name),
                            prose(fact.about),
                            "yes" if fact.must_match else "",
                            code(fact.setting),
                            _origins(fact.sources) or "the worker's hello",
                        )
                        for fact in FACTS
                        if fact.group == group
                    ],
                ),
            )
            for group in GROUPS
        )
    )


def metrics() -> str:
    """A part for each metric: its formula, and where that comes from."""
    better = {1: "more is better", -1: "less is better", 0: ""}
    rows = [
        (
            code(metric.name),
            metric.unit,
            f"{prose(metric.about)}; {better[metric.better]}".rstrip("; "),
            f"{prose(metric.formula)}. Source: {prose(metric.source)}.",
        )
        for metric in METRICS.values()
    ]
    return table(("Metric", "Unit", "What it is", "Formula"), rows)


def cautions() -> str:
    """A table of every caution, the gravest first."""
    return table(
        ("Caution", "When", "Remedy"),
        [
            (
                " ".join(code(kind) for kind in rule.kinds or (rule.name,)),
                prose(rule.about),
                prose(rule.remedy),
            )
            for rule in rules()
        ],
    )
