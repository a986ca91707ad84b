"""Counters added up over runs: what processes used, and proofs. What a proof means is in the
descriptors alone: whose it is, whether it must move, and of which other one it is a part.

A counter whose `about` begins with another counter of its method is a part of that one: `copied`,
"completions that say ...", of `completions`. So `0 of 12,345 completions copied` needs no knowledge
of any method.

Earlier versions counted calls by powers of two, `splice_out.64K`; these are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from netbench.read.counters import total, window_seconds
from netbench.result.files import EngineRow
from netbench.result.record import SIDES, Record, SideName

MUST_MOVE, MUST_NOT_MOVE = "must_move", "must_not_move"
METHOD_SIDES = {"send": "sender", "receive": "receiver"}  # kinds of the rows of methods
Numbers = npt.NDArray[Any]
CounterKey = tuple[str, str, str, str]
"""Cell, pair, side and counter."""


class Proof(NamedTuple):
    """A counter: `owner` is its method ("": rows do not tell), `part_of` what it is a part of."""

    name: str
    owner: str = ""
    flags: frozenset[str] = frozenset()
    part_of: str = ""

    def broken(self, counted: Numbers) -> npt.NDArray[np.bool_]:
        """At which runs, each with so much, its rule is broken."""
        return np.where(counted <= 0, MUST_MOVE in self.flags, MUST_NOT_MOVE in self.flags)


class Declared:
    """The proof counters of a plan's rows, in which each method stands before its own."""

    def __init__(self, rows: Iterable[EngineRow]) -> None:
        self._found: dict[tuple[str, tuple[str, ...]], Mapping[str, Proof]] = {}
        self._methods: dict[
            tuple[str, str], dict[str, Proof]
        ] = {}  # by side, "" for both, and owner
        side, method = "", ""
        each: dict[tuple[str, str], list[EngineRow]] = {}
        for row in rows:
            if row.kind in METHOD_SIDES:
                side, method = METHOD_SIDES[row.kind], row.name
            elif row.kind == "proof":
                each.setdefault((side if row.owner == method else "", row.owner), []).append(row)
        for key, proofs in each.items():
            self._methods[key] = {row.name: _proof(row, proofs) for row in proofs}

    def of(self, side: str, names: Iterable[str]) -> Mapping[str, Proof]:
        """What these counters of one side mean, which one method counted together."""
        key = side, tuple(names)
        if key not in self._found:
            candidates = [each for (where, _), each in self._methods.items() if where in (side, "")]
            whole = sorted((each for each in candidates if each.keys() >= set(key[1])), key=len)
            known = whole[:1] or candidates or list(self._methods.values())
            self._found[key] = {
                name: next((each[name] for each in known if name in each), Proof(name))
                for name in key[1]
            }
        return self._found[key]


def _proof(row: EngineRow, siblings: Sequence[EngineRow]) -> Proof:
    first = row.about.partition(" ")[0]
    is_part = first != row.name and any(first == other.name for other in siblings)
    return Proof(row.name, row.owner, frozenset(row.flags), first if is_part else "")


class Total(NamedTuple):
    """A counter over the runs of one (cell, pair, side) that have it: their number, its total in
    the window, and of a proof the runs in which its rule was broken.
    """

    runs: int = 0
    total: float = 0
    broken: int = 0

    @property
    def mean(self) -> float:
        return self.total / self.runs


class Totals:
    """Adds up the counters of runs that count. `proofs`: those of methods; `used`: those of rusage,
    and `seconds`, the measured window.
    """

    def __init__(self, declared: Declared) -> None:
        self._declared = declared
        self.proofs: dict[CounterKey, Total] = {}
        self.used: dict[CounterKey, Total] = {}

    def add(self, record: Record) -> dict[int, str]:
        """Take in the record of several runs. Says of which the mechanism did not engage
        (`must_move` stayed 0, `must_not_move` moved), by their places from 0, and how.
        """
        why: dict[int, str] = {}
        for who in SIDES:
            if side := record.side(who):
                counters = side.meters.get("rusage", {})
                used = {name: closing - opening for name, (opening, closing) in counters.items()}
                used["seconds"] = np.atleast_1d(window_seconds(side))
                for name, amounts in used.items():  # below 0 where it was reset
                    _add(self.used, (record.cell, record.pair, who, name), amounts[amounts >= 0])
            self._add_proofs(record, who, why)
        return why

    def _add_proofs(self, record: Record, who: SideName, why: dict[int, str]) -> None:
        counters = {n: edges for n, edges in record.proof.of(who).items() if "." not in n}
        meanings = self._declared.of(who, counters)
        for name, edges in counters.items():
            if len(edges) < 2:
                continue  # one edge alone shows nothing
            opening, closing, *_ = values = [total(edge) for edge in edges]
            counted = values[-1] - opening  # late completions count
            broken = np.flatnonzero(meanings[name].broken(counted)).tolist()
            for i in broken:
                what = "stayed 0" if counted[i] <= 0 else f"counted {counted[i]:.0f}"
                why[i] = f"{why[i]}; " if i in why else ""
                why[i] += f"{who}: {name} {what}"
            key = record.cell, record.pair, who, name
            _add(self.proofs, key, closing - opening, len(broken))


def _add(
    totals: dict[CounterKey, Total], key: CounterKey, counted: Numbers, broken: int = 0
) -> None:
    if len(counted):
        before = totals.get(key, Total())
        amount = sum(counted.tolist(), before.total)
        totals[key] = Total(before.runs + len(counted), amount, before.broken + broken)
