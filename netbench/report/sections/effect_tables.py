"""Which factor matters: what each swept factor does to a metric, and two of them together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from netbench.read.effects import AND, TOGETHER, Effect, Effects
from netbench.read.shown_levels import shown
from netbench.report.blocks import Block, Prose, Row, Section, Table, keyed, tabled
from netbench.report.numbers import share
from netbench.report.phrases import title
from netbench.report.sections.level_tables import probability
from netbench.report.source import Source
from netbench.stats.comparison import Comparison
from netbench.stats.words import bounds, percent, signed

MOST = 3  # levels that a sentence tells one by one; of more, the least and the greatest change


def effects(source: Source) -> Section | None:
    """A sentence an effect, and tables, for each metric that the campaign asked for; None where
    fewer than two factors were swept.
    """
    blocks: list[Block] = []
    notes: dict[str, list[str]] = {}  # with the metrics that they are of
    whys: dict[str, None] = {}
    for metric, found in source.effects.items():
        what, known = title(metric, source.result), [each for each in found if each.effects]
        if known:
            lines = [line for each in known for line in sentences(each, what, source.several)]
            blocks += [Prose(tuple(lines), bullets=True), _contrasts(known, what, source.several)]
        for each in found:
            at = _at(each, source.several)
            for note in each.notes:
                notes.setdefault(f"{at}{note}", []).append(source.result.describe(metric).title)
            if each.why:
                whys[f"{at}{what}: {each.why}."] = None
    if not blocks:
        return None
    of = (
        f"{', '.join(what)}: {note}." if len(source.effects) > 1 else f"{note}."
        for note, what in notes.items()
    )
    told = (*_how(source, source.several), *of, *whys)
    return Section("effects", "Which factor matters", (*blocks, Prose(told)))


def sentences(each: Effects, what: str, several: bool) -> Iterator[str]:
    """One an effect, factors before what two do together, the largest change first.

    what: the metric in words.
    """
    where = _at(each, several)
    for place, effect in enumerate(each.main):
        head = f"{effect.name} {_rank(effect, each.main)}" if place == 0 else f"{effect.name}:"
        yield f"{where}{head} {what} {_changes(effect)}."
    for effect in each.interactions:
        yield f"{where}{effect.name} together: {_differs(each, effect)}."


def _rank(first: Effect, every: Sequence[Effect]) -> str:
    """What can be said of the factor with the largest change."""
    clear = all(first.size[1] > effect.size[2] for effect in every if effect is not first)
    return "matters most:" if clear else "comes first, though not clearly:"


def _changes(effect: Effect) -> str:
    """What the levels of a factor do: `sendfile +84.1% against write (80.2 to 88.1% more)`."""
    told = [f"{shown(c.level)} {_ratio(c)}" for c in _few(effect.contrasts)]
    return f"{', '.join(told)} against {shown(effect.contrasts[0].baseline)}"


def _few(contrasts: Sequence[Comparison]) -> Sequence[Comparison]:
    """All contrasts, or of many the least and the greatest."""
    if len(contrasts) <= MOST:
        return contrasts
    in_order = sorted(contrasts, key=lambda c: c.ratio)
    return in_order[0], in_order[-1]


def _ratio(c: Comparison) -> str:
    return f"{signed(c.ratio)}% ({bounds(c.low, c.high)})"


def _differs(each: Effects, effect: Effect) -> str:
    """What the last factor does at the levels of the first, where that differs."""
    first, last = effect.factors
    seen = [c for c in effect.contrasts if c.low > 1 or c.high < 1]
    c = max(seen or effect.contrasts, key=lambda c: abs(math.log(c.ratio)))
    if not seen:
        return f"what {last} does is not seen to differ between levels of {first}: {_ratio(c)}"
    (low, base), (high, level) = c.baseline.split(AND), c.level.split(AND)
    means = each.means(first, last)
    at = " and ".join(
        f"{shown(place)} by {signed(means[place, level].mean / means[place, base].mean)}%"
        for place in (low, high)
    )
    return (
        f"what {last} does differs between levels of {first}: {last}={shown(level)} changes {at}"
        f" against {shown(base)}, between them {_ratio(c)}"
    )


def _contrasts(found: Sequence[Effects], what: str, several: bool) -> Table:
    """Each contrast with its interval."""
    rows: list[Row] = [
        {
            **(keyed("pair", each.pair) if several else {}),
            **keyed("effect", _levels(effect, c.level, TOGETHER)),
            "change [%]": f"{percent(c.ratio):+.1f}",
            "interval": bounds(c.low, c.high),
            "p": probability(c.p),
            "n": c.n,
        }
        for each in found
        for effect in (*each.main, *each.interactions)
        for c in effect.contrasts
    ]
    against = dict.fromkeys(
        _levels(effect, effect.contrasts[0].baseline, " ") for each in found for effect in each.main
    )
    return tabled(f"{what}: effects", rows, f"Against {', '.join(against)}.")


def _levels(effect: Effect, words: str, between: str) -> str:
    """`send=sendfile`, `send=sendfile × tso=on`."""
    levels = words.split(AND) if len(effect.factors) > 1 else [words]
    named = zip(effect.factors, levels, strict=True)
    return between.join(f"{name}={shown(level)}" for name, level in named)


def _how(source: Source, several: bool) -> Iterator[str]:
    """How to read it: what it is over, once where that is the same for all."""
    known = [e for found in source.effects.values() for e in found if e.effects]
    bases = {_basis(each): each for each in known}
    for basis, each in bases.items():
        place = f"{_at(each, several)}{title(each.metric, source.result)}: "
        yield basis if len(bases) == 1 else f"{place}{basis}"
    unit, confidence = known[0].unit, share(source.result.repeat.confidence)
    yield (
        "A factor's change is the mean over the levels of the others; the change of two together is"
        f" a ratio of ratios. Intervals are paired by {unit} and corrected for all rows of their"
        f" metric (Holm, {confidence}), p is uncorrected."
    )


def _basis(each: Effects) -> str:
    """The cells and units that an analysis is of."""
    at = f", at {each.crossed.where}" if each.crossed.where else ""
    levels = [f"{len(v)} levels of {k}" for k, v in each.crossed.levels.items()]
    return (
        f"Of logarithms, over {each.n} {each.unit}s in which all {len(each.crossed.cells)} crossed"
        f" cells ran ({', '.join(levels)}{at})."
    )


def _at(each: Effects, several: bool) -> str:
    return f"{each.pair}: " if several else ""
