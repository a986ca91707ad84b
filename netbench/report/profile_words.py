"""Profiles in words: a cell, a function, a difference."""

from __future__ import annotations

import math
from collections.abc import Sequence

from netbench.read.profile_difference import ProfileDifference, geometric_mean
from netbench.read.profiles import CellProfile
from netbench.report.numbers import share, signed
from netbench.report.source import Source
from netbench.result.profile_files import KERNEL_MARK
from netbench.stats.words import bounds

SYSTEM = "system"
NAMED = 3
"""Functions that a sentence names."""


def cell_words(source: Source, cell: CellProfile) -> str:
    """A profile's cell in words: `send=sendfile pin=apart`, with the side where both have one."""
    return _with_side(_words(cell, source.keys), cell)


def distinct_words(source: Source, cells: Sequence[CellProfile]) -> list[str]:
    """Cells in words, without what all have in common; with all of it where nothing is left."""
    keys = [name for name in source.keys if len({_words(cell, [name]) for cell in cells}) > 1]
    words = [_with_side(_words(cell, keys), cell) for cell in cells]
    return words if all(words) else [cell_words(source, cell) for cell in cells]


def distinct_levels(source: Source, cells: Sequence[CellProfile]) -> list[str]:
    """The same as short as a drawing needs it: `sendfile · on`, numbered as in tables of many."""
    words = distinct_words(source, cells)
    return [
        f"{n}  {' · '.join(part.partition('=')[2] or part for part in each.split())}"
        for n, each in enumerate(words, 1)
    ]


def change_words(source: Source, change: ProfileDifference) -> str:
    """`send=sendfile against send=readwrite (pin=apart, sender)`."""
    after, before, swept = change.after, change.before, source.result.swept
    keys = [name for name in source.keys if name == "pair" or name in swept]
    same = [name for name in keys if _words(after, [name]) == _words(before, [name])]
    named = [name for name in keys if name not in same]
    where = [_words(after, same), after.side if after.side != SYSTEM else ""]
    context = ", ".join(filter(None, where))
    told = f"{_words(after, named)} against {_words(before, named)}"
    return f"{told} ({context})" if context else told


def _words(cell: CellProfile, keys: Sequence[str]) -> str:
    words = {"pair": cell.pair, "cell": cell.cell, **cell.factors}
    parts = (
        words[name] if name in ("pair", "cell") else f"{name}={words[name]}"
        for name in keys
        if words.get(name)
    )
    return " ".join(parts)


def _with_side(words: str, cell: CellProfile) -> str:
    return words if cell.side == SYSTEM else f"{words} ({cell.side})".lstrip()


def function_words(frame: str) -> str:
    """A frame for a table: a function of the kernel is the usual one, user code says so."""
    if frame.endswith(KERNEL_MARK):
        return frame.removesuffix(KERNEL_MARK)
    return f"{frame} (user)"


def ratio_sentence(change: ProfileDifference, confidence: float) -> str:
    """`3222/2874 = 1.12 by geometric means, 95% interval 8.0 to 16.4% more.`"""
    before, after = (geometric_mean(p.totals) for p in (change.before, change.after))
    several = len(change.before.totals) + len(change.after.totals) > 2
    told = f"{after:.0f}/{before:.0f} = {change.ratio:.2f}{' by geometric means' * several}"
    if math.isnan(change.low):
        return f"{told}; one profile run a cell tells no interval."
    return f"{told}, {share(confidence)} interval {bounds(change.low, change.high)}."


def change_sentence(source: Source, change: ProfileDifference) -> str:
    """The ratio of the totals, and the largest changes whose intervals leave out 0."""
    known = [f for f in change.functions if f.change.low > 0 or f.change.high < 0]
    most = [f"{function_words(f.name)} {signed(f.change)}" for f in known[:NAMED]]
    told = f"; most by {', '.join(most)}" if most else ""
    ratio = ratio_sentence(change, source.result.repeat.confidence).removesuffix(".")
    return f"{change_words(source, change)}: {change.after.unit} per GiB {ratio}{told}."
