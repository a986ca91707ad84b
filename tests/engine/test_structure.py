"""The structure of native/src: no circle between files, one file that changes a run's phase.

A file pair (`flow.c` and `flow.h`) is one node, named without its suffix. It depends on the pairs
whose headers it includes and on those that define the symbols that its object file needs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.support.hooks import objects
from tests.support.local import out
from tests.support.paths import ROOT

SOURCES = ROOT / "native" / "src"
PHASE_OWNER = "phase.c"
PHASE_CHANGE = re.compile(r"(->|\.)phase\s*(=[^=]|\+\+|--|[-+|&^]=)")


@dataclass(frozen=True)
class Symbols:
    """What an object file defines for others, and what it needs of them."""

    defined: frozenset[str]
    needed: frozenset[str]


def node(path: Path) -> str:
    return str(path.relative_to(SOURCES).with_suffix(""))


def files() -> dict[Path, str]:
    """The text of each C file and header."""
    return {path: path.read_text() for path in sorted(SOURCES.rglob("*.[ch]"))}


def includes(path: Path, text: str) -> set[str]:
    """The nodes whose headers a file includes."""
    names = re.findall(r'^#include "(.+?)"', text, re.MULTILINE)
    places = [(folder / name).resolve() for name in names for folder in (path.parent, SOURCES)]
    return {node(place) for place in places if place.exists()}


def symbols(compiled: Path) -> Symbols:
    """Of an object file."""
    entries = [line.split()[-2:] for line in out("nm", str(compiled)).splitlines()]
    return Symbols(
        frozenset(name for kind, name in entries if kind.isupper() and kind != "U"),
        frozenset(name for kind, name in entries if kind == "U"),
    )


def graph(texts: Mapping[Path, str], listed: Mapping[str, Symbols]) -> dict[str, set[str]]:
    """The nodes that each node depends on."""
    edges: dict[str, set[str]] = {node(path): set() for path in texts}
    owners = {name: owner for owner, one in listed.items() for name in one.defined}
    for path, text in texts.items():
        edges[node(path)] |= includes(path, text) & edges.keys()
    for user, one in listed.items():
        edges[user] |= {owners[name] for name in one.needed if name in owners}
    return {name: others - {name} for name, others in edges.items()}


def phase_changes(texts: Mapping[Path, str]) -> dict[str, int]:
    """How often each file assigns a phase."""
    counts = {path.name: len(PHASE_CHANGE.findall(text)) for path, text in texts.items()}
    return {name: count for name, count in counts.items() if count}


def test_no_file_depends_on_itself_through_others(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    compiled = objects(tmp_path_factory)
    edges = graph(files(), {node(ROOT / name): symbols(one) for name, one in compiled.items()})
    assert edges["serve"] >= {"wire", "ops/request"}, "both kinds of edges are seen"
    assert "methods/send_write" in edges["methods/table"]
    TopologicalSorter(edges).prepare()  # a CycleError names the circle


def test_one_file_changes_the_phase_of_a_run() -> None:
    texts = files()
    assert phase_changes(texts) == {PHASE_OWNER: 1}
    texts[SOURCES / "orders.c"] += "\trun->phase = NB_DONE;\n"
    assert phase_changes(texts) == {PHASE_OWNER: 1, "orders.c": 1}
