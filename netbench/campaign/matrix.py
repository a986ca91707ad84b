"""Factors -> combinations of levels, with include and exclude as in a GitHub Actions matrix.

exclude comes first; an include entry extends every combination whose swept levels it does not
contradict (it may overwrite what an earlier entry added), and becomes a combination of its own
where there is none.
https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-syntax#jobsjob_idstrategymatrixinclude
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from netbench.campaign.factors import Level, Reader
from netbench.campaign.messages import listed, nearest
from netbench.campaign.problems import Problems
from netbench.campaign.tree import Loc, Plain

CELLS_MAX = 10_000
NO_FACTORS = "transfer"  # the id of the only cell where nothing is swept
Combination = dict[str, Level]
_UNSAFE = re.compile(r"[\s,%\x00-\x1f\x7f]|^[{\[]")
_UNSAFE_INSIDE = re.compile(r"[\s,%\x00-\x1f\x7f:;{}\[\]]")


def _encoded(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())


def _id_word(written: Plain, inside: bool = False) -> str:
    """A level in a cell's id: no comma, no space; `{files: 6, size: 3K}` -> `{files:6;size:3K}`."""
    if isinstance(written, dict):
        return (
            "{"
            + ";".join(f"{_id_word(k, True)}:{_id_word(v, True)}" for k, v in written.items())
            + "}"
        )
    if isinstance(written, list):
        return "[" + ";".join(_id_word(v, True) for v in written) + "]"
    return (_UNSAFE_INSIDE if inside else _UNSAFE).sub(_encoded, str(written))


def cell_id(combination: Combination) -> str:
    """The id of a cell: `send=sendfile,pin=apart`; `transfer` when nothing is swept."""
    return (
        ",".join(f"{key}={_id_word(level.written)}" for key, level in combination.items())
        or NO_FACTORS
    )


class Matrix:
    """Crosses factors, then excludes, then includes."""

    def __init__(
        self, factors: Mapping[str, list[Level]], reader: Reader, problems: Problems
    ) -> None:
        self.factors = factors
        self.reader = reader
        self.problems = problems

    def cells(
        self, include: Sequence[Mapping[str, Any]], exclude: Sequence[Mapping[str, Any]]
    ) -> list[Combination]:
        """All combinations, in file order; those of include that match none come last."""
        size = math.prod(len(levels) for levels in self.factors.values())
        if size > CELLS_MAX:
            self.problems.add(("sweep",), f"expected at most {CELLS_MAX} cells, got {size}")
            return []
        crossed = [
            dict(zip(self.factors, row, strict=True))
            for row in itertools.product(*self.factors.values())
        ]
        left = self._exclude(crossed if self.factors else [], exclude)
        cells = self._include(left, include)
        if not self.factors and not include:
            cells = [{}]
        if not cells and self.problems.clean("sweep", "include", "exclude"):
            self.problems.add(
                ("exclude",), "expected at least one cell, got none: every combination is excluded"
            )
        if len(cells) > CELLS_MAX:
            self.problems.add(("include",), f"expected at most {CELLS_MAX} cells, got {len(cells)}")
            return []
        self._refuse_repeated(cells)
        return cells

    def _exclude(
        self, crossed: list[Combination], exclude: Sequence[Mapping[str, Any]]
    ) -> list[Combination]:
        excluded: set[int] = set()
        for i, entry in enumerate(exclude):
            words = {key: self.reader.word(key, value) for key, value in entry.items()}
            if self._excludable(words, ("exclude", i)):
                excluded |= {
                    n
                    for n, cell in enumerate(crossed)
                    if all(cell[k].word == word for k, word in words.items())
                }
        return [cell for n, cell in enumerate(crossed) if n not in excluded]

    def _excludable(self, wanted: Mapping[str, str], at: Loc) -> bool:
        """Swept keys with levels that exist match something, since factors are crossed."""
        if not self.problems.clean("sweep"):
            return False
        excludable = True
        for key, word in wanted.items():
            levels = [level.word for level in self.factors.get(key, [])]
            if key not in self.factors:
                swept = (
                    listed(self.factors) if self.factors else "a swept key, but `sweep:` has none"
                )
                self.problems.add(
                    (*at, key),
                    f"this key is not swept, expected {swept}",
                    nearest(key, self.factors),
                )
            elif word not in levels:
                message = (
                    f"this excludes nothing: expected a level of {key} ({listed(levels)}),"
                    f" got {word!r}"
                )
                self.problems.add((*at, key), message, nearest(word, levels))
            excludable = excludable and key in self.factors and word in levels
        return excludable

    def _include(
        self, crossed: list[Combination], include: Sequence[Mapping[str, Any]]
    ) -> list[Combination]:
        extended = [dict(cell) for cell in crossed]
        added: list[Combination] = []
        for i, written in enumerate(include):
            entry = {  # a swept level is the same however it is spelled
                key: next((x for x in self.factors.get(key, ()) if x.value == level.value), level)
                for key, level in self.reader.entry(written, ("include", i)).items()
            }
            if len(entry) < len(written):
                continue
            swept = {key: level.word for key, level in entry.items() if key in self.factors}
            matches = [
                n
                for n, cell in enumerate(crossed)
                if all(cell[k].word == word for k, word in swept.items())
            ]
            missing = [key for key in self.factors if key not in entry]
            if not matches and missing:
                self.problems.add(
                    ("include", i),
                    "this matches no cell, and a cell of its own needs a level of each factor:"
                    f" expected {listed(missing)} too",
                )
            elif not matches:
                keys = [
                    *(key for key in self.factors if key in entry),
                    *(key for key in entry if key not in self.factors),
                ]
                added.append({key: entry[key] for key in keys})
            elif len(swept) == len(entry):
                self.problems.add(
                    ("include", i),
                    "this adds nothing: expected a key that is not swept in addition to the swept"
                    " levels",
                )
            for n in matches:
                extended[n].update({key: level for key, level in entry.items() if key not in swept})
        return extended + added

    def _refuse_repeated(self, cells: Sequence[Combination]) -> None:
        seen: set[str] = set()
        for cell in cells:
            name = cell_id(cell)
            if name in seen:
                last = next(reversed(cell.values())).at
                self.problems.add(last[:2], f"expected each cell once, got {name} again")
            seen.add(name)
