"""From comparisons and cells to findings: a sentence, and what it is drawn from."""

from __future__ import annotations

from collections.abc import Sequence

from netbench.read.cells import CellResult
from netbench.read.shown_levels import shown
from netbench.report.blocks import Finding, Levels, Span
from netbench.stats.comparison import Comparison
from netbench.stats.words import percent


def of_comparisons(sentence: str, family: Sequence[Comparison], several: bool) -> Finding:
    """A sentence on comparisons of one metric; several: pairs of hosts, so that each says its
    own.
    """
    levels = len({c.level for c in family}) > 1
    return Finding(
        sentence,
        tuple(
            Span(
                _label(c, several, levels),
                percent(c.ratio),
                percent(c.low),
                percent(c.high),
                c.verdict,
            )
            for c in family
        ),
        "%",
        0.0,
        None if family[0].margin is None else percent(1 + family[0].margin),
        tuple(place_of(c, several) for c in family),
    )


def of_cells(
    sentence: str, named: Sequence[tuple[str, CellResult]], metric: str, unit: str
) -> Finding:
    """A sentence on the means of some cells, by their names."""
    intervals = [(name, cell.intervals[metric]) for name, cell in named]
    return Finding(
        sentence,
        tuple(Span(name, i.mean, i.low, i.high) for name, i in intervals),
        unit,
        places=tuple({"cell": cell.cell, "pair": cell.pair} for _, cell in named),
    )


def place_of(c: Comparison, several: bool) -> Levels:
    """The cells that a comparison is of: those of its level and of its baseline."""
    levels = {name: level for name, level in c.context.items() if level}
    pair = {"pair": c.pair} if several else {}
    return {**pair, **levels, c.factor: f"{c.level}|{c.baseline}"}


def _label(c: Comparison, several: bool, levels: bool) -> str:
    """What tells a comparison from others of its finding."""
    words = [c.pair] if several else []
    words += [f"{name}={shown(level)}" for name, level in c.context.items() if level]
    return " ".join(words if words and not levels else [*words, f"{c.factor}={shown(c.level)}"])
