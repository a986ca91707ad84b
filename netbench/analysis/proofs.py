"""What proof counters mean, by the descriptors alone: whose they are, which must move, and of which
other one each is a part.

A counter whose `about` begins with another counter of its method is a part of that one: `copied`,
"completions that say ...", of `completions`. So `0 of 12,345 completions copied` needs no knowledge
of any method.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MUST_MOVE, MUST_NOT_MOVE = "must_move", "must_not_move"
SIDES = {"send": "sender", "receive": "receiver"}  # kinds of the rows of methods


@dataclass(frozen=True)
class Proof:
    """One counter: `owner` is its method ("" where rows do not tell), `part_of` the counter that it
    is a part of, or "".
    """

    name: str
    owner: str = ""
    flags: frozenset[str] = frozenset()
    part_of: str = ""

    def broken(self, counted: float) -> bool:
        """Whether so much in one run breaks its rule."""
        return MUST_MOVE in self.flags if counted <= 0 else MUST_NOT_MOVE in self.flags


class Declared:
    """The proof counters of a plan's rows; methods follow each other there, each before what it
    declares.
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._methods: dict[
            tuple[str, str], dict[str, Proof]
        ] = {}  # by side ("" for both) and owner
        self._found: dict[tuple[str, tuple[str, ...]], Mapping[str, Proof]] = {}
        side, method = "", ""
        each: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
        for row in rows:
            kind, owner = row.get("kind"), str(row.get("owner", ""))
            if kind in SIDES:
                side, method = SIDES[str(kind)], str(row["name"])
            elif kind == "proof":
                each.setdefault((side if owner == method else "", owner), []).append(row)
        for key, mine in each.items():
            self._methods[key] = {str(row["name"]): _proof(row, mine) for row in mine}

    def of(self, side: str, names: Iterable[str]) -> Mapping[str, Proof]:
        """What these counters of one side mean, which one method counted together."""
        key = side, tuple(names)
        if key not in self._found:
            self._found[key] = self._looked_up(*key)
        return self._found[key]

    def _looked_up(self, side: str, names: Sequence[str]) -> Mapping[str, Proof]:
        mine = [each for (where, _), each in self._methods.items() if where in (side, "")]
        whole = sorted((each for each in mine if each.keys() >= set(names)), key=len)
        known = whole[:1] or mine or list(self._methods.values())
        return {
            name: next((each[name] for each in known if name in each), Proof(name))
            for name in names
        }


def _proof(row: Mapping[str, Any], siblings: Sequence[Mapping[str, Any]]) -> Proof:
    name, first = str(row["name"]), str(row.get("about", "")).partition(" ")[0]
    whole = (
        first if first != name and any(first == str(other["name"]) for other in siblings) else ""
    )
    return Proof(name, str(row.get("owner", "")), frozenset(row.get("flags", ())), whole)
