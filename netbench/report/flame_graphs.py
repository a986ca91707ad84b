"""The flame graphs of a report: one a cell and kernel, and one for each comparison with the
baseline.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from netbench.analysis.profiles import CellProfile
from netbench.report.flame_graph import differential, flame_graph
from netbench.report.profile_words import cell_words, change_words
from netbench.report.source import Source

_UNFIT = re.compile(r"[^A-Za-z0-9=._-]+")
NAME_LENGTH = 100


@dataclass(frozen=True)
class FlameGraph:
    """A drawing that is a file of its own."""

    file: str
    title: str
    draw: Callable[[], str]


def flame_graphs(source: Source) -> Iterator[FlameGraph]:
    """Those of a result. Numbers in the names of files keep them apart."""
    at = 0
    for at, cell in enumerate(source.profiles.cells, 1):
        words = cell_words(source, cell)
        title = f"Flame graph of {words}"
        draw = partial(flame_graph, cell.stacks, title, _unit(cell))
        yield FlameGraph(_file(at, words), title, draw)
    for number, change in enumerate(source.profile_differences, at + 1):
        words = change_words(source, change)
        title = f"Differential flame graph of {words}"
        draw = partial(
            differential, change.before.stacks, change.after.stacks, title, _unit(change.after)
        )
        yield FlameGraph(_file(number, words), title, draw)


def _unit(cell: CellProfile) -> str:
    return f"{cell.unit} per GiB"


def _file(number: int, words: str) -> str:
    return f"{number:02d}-{_UNFIT.sub('-', words).strip('-')[:NAME_LENGTH]}.svg"
